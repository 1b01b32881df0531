#!/bin/bash
# What a commit pays for being durable: its syncs, as the kernel sees them.
. "$(dirname "$0")/lib.sh"

strace -o /dev/null true 2>/dev/null || skip_all "no strace"

fresh_store
mkdir many
for ((i = 0; i < 600; i++)); do
	head -c 500 /dev/urandom >"many/$i"
done
head -c 300 /dev/urandom >small
head -c 3000000 /dev/urandom >large

# syncs COMMAND...: the calls and the folder of the store that each is about.
syncs() {
	strace -f -y -qq -o trace \
		-e trace=fsync,fdatasync,sync,syncfs,sync_file_range,msync \
		"$@" >/dev/null || return
	sed -E 's|^[0-9]* *||
		s|^(\w+)\([0-9]+<.*/(log\|packs)(/[0-9a-f]+\.\w+)?>.*|\1 \2|' \
		trace | sort | paste -sd,
}

t_out "the first record of a segment syncs its name too" \
	"fdatasync log,fdatasync log,fsync log" \
	syncs "$INCRCTL" dataset create d
t_out "a small commit syncs the log, once" "fdatasync log" \
	syncs "$INCRCTL" commit d small
t_out "so does the next" "fdatasync log" \
	syncs "$INCRCTL" commit d small --name again
t_out "a large one syncs its pack, the name of that, and the log" \
	"fdatasync log,fdatasync packs,fsync packs" \
	syncs "$INCRCTL" commit d large
t_out "many files take no more" "fdatasync log,fdatasync packs,fsync packs" \
	syncs "$INCRCTL" commit d many
t_out "looking takes none" "" syncs "$INCRCTL" log d
done_testing
