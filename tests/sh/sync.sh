#!/bin/bash
# sync: a folder to the smallest transaction, in every mode.
# shellcheck disable=SC2016  # commands of other shells
. "$(dirname "$0")/lib.sh"

fresh_store
"$INCRCTL" dataset create d >/dev/null

sync() {
	"$INCRCTL" sync d folder "$@"
}

# last N FIELD...: fields of the N-th newest transaction.
last() {
	local n=$1
	shift
	"$INCRCTL" log d --json | sed -n "${n}p" |
		python3 -c 'import json, sys
t = json.load(sys.stdin)
print(*[t[k] for k in sys.argv[1:]])' "$@"
}

# The dataset holds what the folder does.
same() {
	rm -rf copy && "$INCRCTL" export d copy >/dev/null &&
		diff -r folder copy
}

# old FILE...: as if written long ago, so that its times can be trusted.
old() {
	touch -d '2026-01-05 12:00' "$@"
}

mkdir -p folder/sub
echo one >folder/one.csv
echo two >folder/sub/two.csv
echo log >folder/run.log
old folder/one.csv folder/sub/two.csv folder/run.log

t "the first mirror commits everything" sync --mode mirror
t_out "as an UPDATE of three files" "UPDATE 3 0" last 1 type files removed
t "and the view is the folder" same
t_out "a second one commits nothing" "d: nothing changed" sync --mode mirror
head=$(last 1 transaction)

sleep 2.1 # so that a change time is old enough to be believed
sync --mode mirror >/dev/null
strace -f -e trace=openat -o trace "$INCRCTL" sync d folder --mode mirror >/dev/null 2>&1
if [ -s trace ]; then
	t_exit 1 "an unchanged folder is not read" grep -q 'one.csv' trace
else
	skip "an unchanged folder is not read" "no strace"
fi

echo changed >folder/one.csv
rm folder/run.log
echo new >folder/new.csv
t "a mirror of a change, an addition and a removal" sync --mode mirror
t_out "is a DELETE first" "DELETE 0 1" last 2 type files removed
t_out "and an UPDATE after it" "UPDATE 2 0" last 1 type files removed
t "and the view is the folder" same
t_out "diff says what changed" "$(printf 'A new.csv\nM one.csv\nR run.log')" \
	sh -c '"$INCRCTL" diff d "$1..$2" --name-status | tr "\t" " "' sh "$head" \
	"$(last 1 transaction)"

rm -r folder/sub
echo file >folder/sub
t "a directory becomes a file" sync --mode mirror
t "and the view is the folder" same
rm folder/sub
mkdir folder/sub
echo again >folder/sub/two.csv
t "and a directory again" sync --mode mirror
t "and the view is the folder" same

head=$(last 1 transaction)
echo same size >folder/one.csv
echo same_size >folder/one.csv
sync --mode mirror >/dev/null
t "a change that keeps the size is seen" same
touch folder/one.csv
t_out "a new time on old bytes is no change" "d: nothing changed" sync --mode mirror
chmod 755 folder/one.csv
t_grep "new permission bits are one" "UPDATE d: 1 file" sync --mode update

rm folder/new.csv
t_out "update removes nothing" "d: nothing changed" sync --mode update
t_out "the file is still there" new "$INCRCTL" cat d new.csv
t_out "a dry run tells" "$(printf 'R\tnew.csv')" sync --mode mirror --dry-run
t_out "and changes nothing" new "$INCRCTL" cat d new.csv

echo keep >folder/keep.tmp
t_out "what is excluded takes no part" "d: nothing changed" \
	sync --mode mirror --exclude '*.tmp' --exclude new.csv
t_out "and is not removed" new "$INCRCTL" cat d new.csv
t "only what is included does" sync --mode update --include '*.tmp'
t_out "one file" "UPDATE 1 0" last 1 type files removed

echo young >folder/young.csv
t_out "a young file is left for next time" "d: nothing changed, 1 left for next time" \
	sync --mode update --include young.csv --settle 3600
t "and taken when it has settled" sh -c 'touch -d 2026-01-05 folder/young.csv &&
	"$INCRCTL" sync d folder --mode update --include young.csv'

"$INCRCTL" dataset create a >/dev/null
rm -rf folder && mkdir folder && echo 1 >folder/1 && echo 2 >folder/2
t "append takes new paths" "$INCRCTL" sync a folder --mode append
echo changed >folder/1
echo 3 >folder/3
t "and again" "$INCRCTL" sync a folder --mode append
t_out "a changed file is not taken again" 1 "$INCRCTL" cat a 1
t_out "as an APPEND" "APPEND a: 1 file, 2 B" sh -c \
	'"$INCRCTL" log a --limit 1 | sed "s/.*APPEND */APPEND a: /"'
"$INCRCTL" rm a 2 >/dev/null
t_out "what was deleted from the dataset is not taken again" "a: nothing changed" \
	"$INCRCTL" sync a folder --mode append
"$INCRCTL" commit a folder/3 --type snapshot >/dev/null
t_out "nor what an older view had" "a: nothing changed" "$INCRCTL" sync a folder --mode append

"$INCRCTL" dataset create s >/dev/null
"$INCRCTL" sync s folder --mode snapshot >/dev/null
t_out "a snapshot of an unchanged folder is none" "s: nothing changed" \
	"$INCRCTL" sync s folder --mode snapshot
rm folder/3
t "a snapshot when a file is gone" "$INCRCTL" sync s folder --mode snapshot
t_out "holds what is there" "$(printf '1\n2')" "$INCRCTL" ls s

t_exit 2 "without a mode" "$INCRCTL" sync s folder
t_exit 2 "with an unknown mode" "$INCRCTL" sync s folder --mode both
t_exit 3 "of a missing folder" "$INCRCTL" sync s nowhere --mode mirror
echo file >file
t_exit 2 "of a file" "$INCRCTL" sync s file --mode mirror
t_exit 3 "into an unknown dataset" "$INCRCTL" sync unknown folder --mode mirror
ln -s 1 folder/link
t_exit 2 "a link in the folder is an error" "$INCRCTL" sync s folder --mode mirror
t "unless special files are left out" "$INCRCTL" sync s folder --mode mirror --skip-special
t "verify is content" "$INCRCTL" verify --data

# What cannot be read is taken from the folder again.
# hurt FILE...: damage the content in packs, not the list of files behind it.
hurt() {
	chmod u+w "$@" && python3 - "$@" <<'EOF'
import sys
for name in sys.argv[1:]:
    with open(name, "r+b") as f:
        for at in range(30000, 330001, 30000):
            f.seek(at)
            byte = f.read(1)[0]
            f.seek(at)
            f.write(bytes([byte ^ 4]))
EOF
}

for mode in mirror update snapshot; do
	fresh_store
	"$INCRCTL" dataset create d >/dev/null
	rm -rf folder copy && mkdir folder
	for i in 1 2 3; do
		head -c $((i * 60000)) /dev/urandom >folder/$i
	done
	old folder/*
	sleep 2.1 # as above
	sync --mode "$mode" >/dev/null
	hurt "$INCR_STORE"/packs/*
	t_exit 6 "$mode: the content is damaged" "$INCRCTL" export d copy
	"$INCRCTL" repair >/dev/null
	t_grep "$mode: what a repair gave up is committed again" "3 files" \
		sync --mode "$mode"
	t "$mode: and can be read" same
	t_out "$mode: that is all of it" "d: nothing changed" sync --mode "$mode"

	hurt "$INCR_STORE"/packs/*
	rm -f "$INCR_STORE"/sync/*
	t_grep "$mode: so is what is found damaged" "3 files" sync --mode "$mode"
	t "$mode: and can be read" same
done

done_testing
