#!/bin/bash
# What killed processes leave: verify lists it and finds no damage, repair
# removes it, and neither touches what somebody is making.
# shellcheck disable=SC2016  # expanded by the inner shell
. "$(dirname "$0")/lib.sh"
. "$SRCDIR/tests/sh/cli.sh"

mkfifo pipe
head -c 8000000 /dev/urandom >large
head -c 100000 /dev/urandom >first

new_store() {
	fresh_store
	"$INCRCTL" dataset create d out >/dev/null
	"$INCRCTL" commit d first -q
}
n_packs() {
	find "$INCR_STORE/packs" -name '*.pack' | wc -l
}
# Files of the store, but not what every command may write.
files() {
	(cd "$INCR_STORE" && find packs spool sync format* lost -type f | sort)
}
has_packs() {
	[ "$(n_packs)" = "$1" ]
}
# A commit that has made its pack and waits for more; sets pid.
begin_commit() {
	"$INCRCTL" commit d - --name "$1" -q <pipe &
	pid=$!
	kill_later "$pid"
	exec 8>pipe
	cat large >&8
	wait_until 60 has_packs "$2"
}
left_over='" ".join(x["file"] for x in d["left_over"])'

# ---- a pack ----

new_store
t "a commit is under way, with a pack" begin_commit streamed 2
t_json "verify does not take its pack for left over" "" "$left_over" "$INCRCTL" verify --json
t_grep "repair leaves it" "^0 things mended; no damage is left" "$INCRCTL" repair
exec 8>&-
t "and it ends well" wait "$pid"
t "with all of its bytes" sh -c '"$INCRCTL" cat d streamed | cmp - large'
t "another one is under way" begin_commit killed 3
kill -KILL "$pid"
wait "$pid" 2>/dev/null
exec 8>&-
named=$(python3 "$SRCDIR/tests/format/read_store.py" --packs "$INCR_STORE")
pack=$(cd "$INCR_STORE" && echo "$named" | comm -3 - <(ls packs/*))
pack=${pack//[[:space:]]/}
size=$(stat -c %s "$INCR_STORE/$pack")
t_exit 0 "killed, it leaves no damage" "$INCRCTL" verify --data
t_json "but a pack that no record names" "True $pack $size $size" \
	'" ".join(str(x) for x in (d["ok"], d["left_over"][0]["file"], d["left_over"][0]["bytes"], d["left_over_bytes"]))' \
	"$INCRCTL" verify --json
t_grep "as text" "^left over: $pack \(.* MiB\): the process that made it is gone" "$INCRCTL" verify
t_grep "with the sum, and what to do" "^1 left over by processes that are gone, .*: incrctl repair removes" \
	"$INCRCTL" verify
t_out "quietly nothing is said" "" "$INCRCTL" verify -q
t_json "of one dataset, packs are not judged" "" "$left_over" "$INCRCTL" verify d --json
t_grep "a dry run names it" "^$pack: would remove it" "$INCRCTL" repair --dry-run
t "and removes nothing" has_packs 3
t_json "repair removes it" "left-over $pack $size" \
	'" ".join("%s %s %s" % (x["action"], x["file"], x["bytes"]) for x in d["done"])' "$INCRCTL" repair --json
t_out "what records name is left" "$named" sh -c 'cd "$INCR_STORE" && ls packs/*'
t_exit 0 "and is whole" "$INCRCTL" verify --data
t_json "nothing is left over" "" "$left_over" "$INCRCTL" verify --json

# ---- everything else ----

# with a checkpoint of the index
mkdir many
for i in $(seq 400); do echo "$i" >"many/$i"; done
"$INCRCTL" commit out many -q
t "the index has a checkpoint" [ -e "$INCR_STORE/index/current" ]
tag=0123456789abcdef
mkdir -p "$INCR_STORE"/spool/{t99/put,b99/staging/out,p$tag/staging/out} "$INCR_STORE/sync"
echo content >"$INCR_STORE/spool/p$tag/staging/out/file"
for name in "spool/changes-1-0" "index/$tag.table" "index/current.$tag.tmp" "sync/$tag.next" \
	"format.$tag.tmp"; do
	echo content >"$INCR_STORE/$name"
done
# names that nothing of ours has
for name in spool/other spool/t07 "spool/p$tag.x" packs/other packs/$tag.tmp sync/$tag.table format.tmp; do
	echo content >"$INCR_STORE/$name"
done
others=$(files)
t_json "files and staging of nothing are listed" \
	"format.$tag.tmp index/$tag.table index/current.$tag.tmp spool/b99 spool/changes-1-0 spool/p$tag spool/t99 sync/$tag.next 48" \
	'" ".join(sorted(x["file"] for x in d["left_over"]) + [str(d["left_over_bytes"])])' \
	"$INCRCTL" verify --json
t_out "verify removes nothing" "$others" files
t_grep "repair removes them" "^8 things mended; no damage is left" "$INCRCTL" repair
t_out "and nothing else" \
	"$(echo "$others" | grep -vE "changes-1|$tag/|current|$tag.next|format.$tag|$tag.table" &&
		echo sync/$tag.table)" files
t_json "nothing is left over" "" "$left_over" "$INCRCTL" verify --json

# ---- what is in use ----

new_store
txn=$("$INCRCTL" txn begin out)
"$INCRCTL" txn put "$txn" staged first
look='"$INCRCTL" verify --json >looked && "$INCRCTL" repair >mended'
"$INCRCTL" dataset create result >/dev/null
"$INCRCTL" run tr --view copy --preview -i d=d -o out=result -- sh -c "
	echo 1 >\"\$INCR_OUT_OUT/file\" && $look && cat \"\$INCR_OUT_OUT/file\"" >said
t_out "a preview that runs is not left over" "1" cat said
t_json "verify says so" "" "$left_over" cat looked
t_grep "and repair" "^0 things mended" cat mended
"$INCRCTL" run tr --view copy -i d=d -o out=result -- sh -c "
	echo 2 >\"\$INCR_OUT_OUT/file\" && $look" >said 2>&1
t_out "a build that runs is not" "2" "$INCRCTL" cat result file
t_json "verify says so" "" "$left_over" cat looked
"$INCRCTL" run tr2 --view copy --keep-failed -i d=d -o out=result -- \
	sh -c 'echo 3 >"$INCR_OUT_OUT/kept"; exit 1' >said 2>&1
t_grep "one that is open and has no process is not" "^0 things mended" "$INCRCTL" repair
build=$("$INCRCTL" build list | awk '/ open / { print $1 }')
t_exit 0 "it can still be committed" "$INCRCTL" build commit "$build" -q
t_out "with what was staged" "3" "$INCRCTL" cat result kept
t_exit 0 "an open transaction is not" "$INCRCTL" txn commit "$txn" -q
t "what was put is in it" sh -c '"$INCRCTL" cat out staged | cmp - first'

# ---- what may yet be somebody's ----

log=$INCR_STORE/log/0000000000000000.log
stray=packs/00000000000000aa.pack
cp "$(find "$INCR_STORE/packs" -name '*.pack' | head -n 1)" "$INCR_STORE/$stray"
head -c 60 "$log" >torn && cat torn >>"$log"
t_grep "with bytes of the log in lost/, a pack stays" "^left over: $stray .*: it stays while lost/" \
	"$INCRCTL" repair
t "it is there" [ -e "$INCR_STORE/$stray" ]
rm "$INCR_STORE"/lost/torn-*
t_grep "without, it goes" "^$stray: removed it" "$INCRCTL" repair
cp "$(find "$INCR_STORE/packs" -name '*.pack' | head -n 1)" "$INCR_STORE/$stray"
python3 - "$log" <<'EOF'
import struct, sys
with open(sys.argv[1], "r+b") as f:
    data, at = f.read(), 64
    while struct.unpack_from("<H", data, at + 4)[0] != 11:
        at += 64 + (struct.unpack_from("<I", data, at + 8)[0] + 7) // 8 * 8
    f.seek(at + 80)
    f.write(bytes([data[at + 80] ^ 4]))
EOF
t_json "of a damaged log no pack is said to be left over" "" "$left_over" \
	sh -c '"$INCRCTL" verify --json; true'
"$INCRCTL" repair >said
rm -f "$INCR_STORE"/lost/*
t_json "nor where something was given up" "" "$left_over" "$INCRCTL" verify --json
t_grep "so it stays" "^0 things mended" "$INCRCTL" repair
t "and is there" [ -e "$INCR_STORE/$stray" ]

done_testing
