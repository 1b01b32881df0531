#!/bin/bash
# A reader of the disk format that was written from docs/format.md alone sees
# what this program's own reader sees.
. "$(dirname "$0")/lib.sh"

maker=${INCR_BUILDDIR:-.}/tests/test_format
reader=$SRCDIR/tests/format/read_store.py

[ -x "$maker" ] || skip_all "tests/test_format is not built"
for program in python3 xxhsum zstd; do
	command -v $program >/dev/null || skip_all "$program is not installed"
done

read_store() {
	python3 "$reader" "$1"
}

# The file that is read, with one byte at an offset set to another value.
patch_byte() {
	printf '%b' "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

mkdir scratch
t "a store with one of everything is made" "$maker" make-full store scratch
"$maker" list store >mine
t_out "both readers see the same" "$(cat mine)" read_store store
rm -rf store/index
t_out "the index says nothing new" "$(cat mine)" read_store store

rm -rf scratch store
mkdir scratch
t "the store of the document is made" "$maker" make-example store scratch
"$maker" list store >mine
t_out "both readers see the same two transactions" "$(cat mine)" \
	read_store store

good=$SRCDIR/tests/stores/good-1
t_out "the committed store reads as it did" "$(cat "$good.list")" \
	read_store "$good"

cp -R "$good" copy
chmod -R u+w copy
log=copy/log/0000000000000000.log
truncate -s +20000 $log
t_out "zeros at the end are room" "$(cat "$good.list")" read_store copy
printf 'torn' >>$log
t_out "a torn tail is ignored" "$(cat "$good.list")" read_store copy
patch_byte $log 200 '\x00\xff'
t_exit 1 "damage is refused" read_store copy
t_grep "and named" "corrupt-log" read_store copy

rm -rf copy
cp -R "$good" copy
chmod -R u+w copy
patch_byte copy/format 16 '\x01'
t_grep "a changed format file is refused" "damaged-format" read_store copy
patch_byte copy/format 8 '\x02'
t_grep "a newer version is refused" "newer-format" read_store copy

rm -rf copy
cp -R "$good" copy
chmod -R u+w copy
for pack in copy/packs/*; do
	patch_byte "$pack" 150 '\x00\xff\x00'
done
t_grep "a damaged frame is refused" "damaged-frame" read_store copy
rm -f copy/packs/*
t_grep "a missing pack is refused" "missing-pack" read_store copy

done_testing
