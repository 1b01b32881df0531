#!/bin/bash
# Few file descriptors, and short files: what does not work says why, and
# nothing is left over.
# shellcheck disable=SC2016  # expanded by the inner shell
. "$(dirname "$0")/lib.sh"

mnt=$TMP/mnt
mkdir "$mnt"
fresh_store
"$INCRCTL" dataset create in out
echo 1 >a && "$INCRCTL" commit in a -q
"$INCRCTL" run t -i in=in -o out=out -q -- sh -c 'cp "$INCR_ADDED_IN/a" "$INCR_OUT_OUT/"' 2>/dev/null ||
	skip_all "no build here"

# limited N COMMAND...: with N descriptors it works, or says that they are too
# few.
limited() {
	(ulimit -n "$1" && exec "${@:2}") >limited.out 2>limited.err ||
		grep -q "Too many open files" limited.err
}
unexplained=
for n in $(seq 5 24); do
	limited "$n" "$INCRCTL" commit in a --type update --rewrite -q ||
		unexplained="$unexplained commit:$n"
	limited "$n" "$INCRCTL" cat in a || unexplained="$unexplained cat:$n"
	limited "$n" "$INCRCTL" run t --force -q --allow-empty -- true || unexplained="$unexplained run:$n"
	can_mount || continue
	limited "$n" "$INCRCTL" mount "$mnt" -q || unexplained="$unexplained mount:$n"
	if mountpoint -q "$mnt"; then
		[ "$(cat "$mnt/in/current/a" 2>err.txt)" = 1 ] || grep -q "Too many" err.txt ||
			unexplained="$unexplained read:$n"
		"$INCRCTL" unmount "$mnt" || unexplained="$unexplained unmount:$n"
	fi
done
t_out "with 5 to 24 descriptors each failure is explained" "" echo "$unexplained"
t_exit 0 "and nothing is damaged" "$INCRCTL" verify --data
t_out "no transaction is left open" "" "$INCRCTL" txn list

if can_mount; then
	(ulimit -Sn 40 && exec "$INCRCTL" mount "$mnt" t --staging=fuse --force-snapshot -q) 2>/dev/null
	t "a mount takes as many files as it may have" python3 - "$mnt/out/staging" <<'END'
import os, sys
files = [open("%s/f%d" % (sys.argv[1], i), "w") for i in range(300)]
for i, f in enumerate(files):
    f.write(str(i))
    f.close()
END
	t_grep "and commits them" "300 files" "$INCRCTL" unmount "$mnt"
fi

# A limit of the size of files: an error, not a signal, and nothing left behind
fresh_store
"$INCRCTL" dataset create in out
"$INCRCTL" commit in a -q
head -c 100000 /dev/urandom >large
for blocks in 0 1 16 50; do
	t_exit 1 "a commit where files end at $blocks KiB" \
		bash -c "ulimit -f $blocks && exec \"\$INCRCTL\" commit in large"
done
t_grep "it says what is wrong" "File too large: packs/" \
	bash -c 'ulimit -f 50 && exec "$INCRCTL" commit in large'
t_exit 153 "a command has the signal as always" bash -c 'ulimit -f 16 &&
	exec "$INCRCTL" run t -i in=in -o out=out -q -- sh -c "exec head -c 50000 large >\"\$INCR_OUT_OUT/x\""'
t_out "nothing is left over" "" sh -c '"$INCRCTL" verify --data | grep "left over"; :'
t "without the limit it is committed" "$INCRCTL" commit in large

done_testing
