#!/bin/bash
# Random file operations in staging, on the disk itself and through the mount,
# compared with a plain directory; and what is committed is what was written.
#
# INCR_MODEL_OPS is how many operations, each of two times both ways.
. "$(dirname "$0")/lib.sh"

can_mount || skip_all "no FUSE here"
model=${INCR_BUILDDIR:?where tests/model_staging was built}/tests/model_staging
[ -x "$model" ] || skip_all "tests/model_staging is not built"

n_ops=${INCR_MODEL_OPS:-2500}
mnt=$TMP/mnt
staging=$mnt/out/staging
mkdir mnt
fresh_store
"$INCRCTL" dataset create in out

begin() {
	"$INCRCTL" mount "$mnt" tr -i in=in -o out=out --write-mode out=replace --force-snapshot --allow-empty \
		"--staging=$1" -q 2>/dev/null
	rm -rf plain && mkdir plain
}
# What was committed equals the directory $1; empty directories are no part.
same_files() {
	rm -rf got
	find "$1" -type d -empty -delete
	mkdir -p "$1" && "$INCRCTL" export out got >/dev/null && diff -r "$1" got
}

for how in link fuse link fuse; do
	begin $how
	seed=$((RANDOM * 32768 + RANDOM))
	if "$model" "$staging" plain "$n_ops" $seed >model.log 2>&1; then
		pass "--staging=$how: $(tail -n 1 model.log)"
	else
		fail "--staging=$how, seed $seed" "$(tail -n 5 model.log)"
	fi
	t "--staging=$how: it commits" "$INCRCTL" unmount "$mnt"
	t "--staging=$how: what was written" same_files plain
done

# What others have to check files with
begin fuse
if command -v fio >/dev/null; then
	t "fio finds what it wrote" fio --name=verify "--directory=$staging" --size=8m --bs=4k \
		--rw=randrw --verify=crc32c --do_verify=1 --verify_fatal=1 --fallocate=none \
		"--output=$TMP/fio.log" --loops=2
else
	skip "fio finds what it wrote" "no fio"
fi
if command -v stress-ng >/dev/null; then
	t "stress-ng finds what it wrote" stress-ng --temp-path "$staging" --verify --hdd 1 \
		--hdd-bytes 8m --hdd-ops 2000 --rename 1 --rename-ops 500 \
		--fallocate 1 --fallocate-bytes 4m --fallocate-ops 20 --mmap 1 --mmap-file \
		--mmap-bytes 1m --mmap-ops 5 --quiet
else
	skip "stress-ng finds what it wrote" "no stress-ng"
fi
t "the mount is alive" ls "$mnt/in/added"
"$INCRCTL" unmount "$mnt" --abort >/dev/null 2>&1

done_testing
