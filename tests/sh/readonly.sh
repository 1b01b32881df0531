#!/bin/bash
# A store that cannot be written, on a read-only file system and for another
# user: what reads works, what writes says so, and nothing tries to write.
# shellcheck disable=SC2016  # commands of runs
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" = 0 ] || skip_all "needs root"
id nobody >/dev/null 2>&1 || skip_all "no user nobody"
command -v mkfs.ext4 >/dev/null || skip_all "no mkfs.ext4"

disk=$TMP/disk
mnt=$TMP/mnt
mkdir disk mnt tree tmp
export TMPDIR=$TMP/tmp
for i in 1 2 3 4 5; do
	seq "$i" 2000 >"tree/f$i"
done
head -c 300000 /dev/urandom >tree/large
truncate -s 64M image
mkfs.ext4 -q image && new_loop image && mount "$LOOP" disk || skip_all "no loop devices"

export INCR_STORE=$disk/store
make_store() {
	"$INCRCTL" init "$INCR_STORE" && "$INCRCTL" dataset create in out &&
		"$INCRCTL" commit in tree && echo changed >tree/f1 && rm tree/f2 &&
		"$INCRCTL" sync in tree --mode mirror &&
		"$INCRCTL" run tr --view copy -i in=in -o out=out -- sh -c 'echo x >$INCR_OUT_OUT/x' &&
		"$INCRCTL" txn begin out && "$INCRCTL" txn put t5 y tree/f1
} >make.log 2>&1
t "a store" make_store
chmod a+rx "$top" "$TMP" disk
chmod 1777 tmp
cp "$INCRCTL" "$top/incrctl" && chmod a+rx "$top/incrctl"
find "$INCR_STORE" -type f -exec sha256sum {} + | sort >before

# How a user runs the program: run VERB...
as_root() {
	"$INCRCTL" "$@"
}
as_nobody() {
	setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups "$top/incrctl" "$@"
}

reads() {
	local run=$1 who=$2 n
	t_grep "$who: log" "^t3 .*UPDATE" "$run" log in
	t_grep "$who: show" "^R .*f2" "$run" show t2
	t_grep "$who: ls" "^large" "$run" ls in
	t_out "$who: cat" changed "$run" cat in f1
	t_out "$who: diff" "R	f2" "$run" diff in t1..t2 --name-status
	t_grep "$who: dataset show" in "$run" dataset show in
	t_grep "$who: branch" main "$run" branch in
	t_grep "$who: build list" "^b1 .*committed" "$run" build list
	t_grep "$who: txn list" "^t5" "$run" txn list
	t_grep "$who: status" tr "$run" status
	t_grep "$who: plan" . "$run" plan tr
	t_exit 0 "$who: verify --data" "$run" verify --data
	n=$(mktemp -d "$TMP/got.XXXXXX")
	chmod 777 "$n"
	t_exit 0 "$who: export" "$run" export in "$n/in"
	t "$who: what was exported" diff -r tree "$n/in"
}
writes() {
	local run=$1 who=$2 verb
	while read -r verb; do
		# shellcheck disable=SC2086  # words of a verb
		t_exit 1 "$who: $verb: fails" "$run" --wait 0 $verb
		# shellcheck disable=SC2086
		t_grep "$who: $verb: says why" '"code":"read-only"' "$run" --json --wait 0 $verb
	done <<-END
		commit in $INCRCTL
		rm in f1
		sync in $TMP/mnt --mode mirror
		txn begin in
		txn put t5 z $TMP/tree/f1
		txn commit t5
		txn abort t5
		dataset create new
		dataset delete in --yes
		dataset rename in new
		branch in create b
		branch in reset main t1
		mount $mnt tr
	END
	t_exit 125 "$who: run: fails" "$run" --wait 0 run tr --force -- true
	t_grep "$who: run: says why" '"code":"read-only"' "$run" --json --wait 0 run tr --force -- true
}
mounts() {
	local run=$1 who=$2
	if ! can_mount; then
		skip "$who: mount" "no FUSE here"
		return
	fi
	t_exit 0 "$who: mount of the whole store" "$run" mount "$mnt" -q
	t_out "$who: shows files" changed "$run" cat in f1
	t "$who: as they are" diff -r tree "$mnt/in/current"
	t_exit 0 "$who: unmount" "$run" unmount "$mnt"
	t_exit 0 "$who: mount --read-only of a transform" "$run" mount "$mnt" tr --read-only -q
	t "$who: shows views" diff -r tree "$mnt/in/current"
	t_exit 0 "$who: unmount" "$run" unmount "$mnt"
	t_out "$who: run --preview" changed "$run" run tr --preview --force -q -- cat '{in.current}/f1'
	t_out "$who: leaves nothing behind" "" ls -A tmp
}
# Calls below the store that write, or open anything but `lock` for writing:
# whether that can be written is how the store finds out.
write_attempts() {
	local verb
	for verb in "log in" "cat in f1" "ls in" "verify --data" "status" "plan tr" "build list" "commit in tree"; do
		# shellcheck disable=SC2086
		strace -f -y -qq -o trace "$INCRCTL" --wait 0 $verb >/dev/null 2>&1
		grep -F "$INCR_STORE" trace |
			grep -E '^[0-9]+ +(pwrite|write|ftruncate|truncate|fallocate|rename|unlink|mkdir|rmdir|link|symlink|fsync|fdatasync|fchmod|chmod|utimens)|O_WRONLY|O_RDWR|O_CREAT' |
			grep -v '"lock", O_RDWR|O_CLOEXEC' || :
	done
}

mount -o remount,ro disk
reads as_root "read-only disk"
writes as_root "read-only disk"
mounts as_root "read-only disk"
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
	t_out "read-only disk: nothing tries to write" "" write_attempts
else
	skip "read-only disk: nothing tries to write" "no strace"
fi
mount -o remount,rw disk

if as_nobody --version >/dev/null 2>&1; then
	reads as_nobody "another user"
	writes as_nobody "another user"
	# the permissions of its files may differ
	chmod a+rw "$INCR_STORE/lock"
	reads as_nobody "another user, who may write the lock file alone"
	writes as_nobody "another user, who may write the lock file alone"
	chmod go-w "$INCR_STORE/lock"
else
	skip "another user" "setpriv cannot be one"
fi
find "$INCR_STORE" -type f -exec sha256sum {} + | sort >after
t "no byte of the store has changed" cmp before after
t_exit 0 "and it can be written again" "$INCRCTL" txn commit t5

done_testing
