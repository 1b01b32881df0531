#!/bin/bash
# verify and repair on the command line: what is damaged, what is mended.
# shellcheck disable=SC2016  # expanded by the inner shell
. "$(dirname "$0")/lib.sh"
. "$SRCDIR/tests/sh/cli.sh"

fresh_store
log=$INCR_STORE/log/0000000000000000.log
mkdir files
head -c 100000 /dev/urandom >files/large
echo small >files/small
"$INCRCTL" dataset create d >/dev/null
"$INCRCTL" commit d files >/dev/null
echo more >files/more
"$INCRCTL" commit d files/more >/dev/null

t_exit 0 "a whole store verifies" "$INCRCTL" verify --data
t_exit 0 "a whole store needs no repair" "$INCRCTL" repair
t_grep "and says so" "^0 things mended; no damage is left" "$INCRCTL" repair

# ---- a torn tail, and staging of nothing ----

size=$(stat -c %s "$log")
truncate -s +5000 "$log"
t_grep "zeros behind the log are none" "^0 things mended" "$INCRCTL" repair
t_grep "also in a dry run" "^0 things" "$INCRCTL" repair --dry-run
truncate -s "$size" "$log"
head -c 60 "$log" >torn && cat torn >>"$log"
mkdir -p "$INCR_STORE/spool/t99/put"
size=$(stat -c %s "$log")
t_grep "a dry run names the tail" "would move its torn tail" "$INCRCTL" repair --dry-run
t "and changes nothing" [ "$(stat -c %s "$log")" = "$size" ]
t_json "a repair names both" "staging torn-tail" \
	'" ".join(sorted(x["action"] for x in d["done"]))' "$INCRCTL" repair --json
t "the tail is cut" [ "$(stat -c %s "$log")" = $((size - 60)) ]
t "its bytes are in lost/" sh -c 'cat "$INCR_STORE"/lost/torn-* | wc -c | grep -qx 60'
t "the staging is gone" [ ! -e "$INCR_STORE/spool/t99" ]
t_exit 0 "nothing is left" "$INCRCTL" repair

# ---- content ----

# flip FILE OFFSET
flip() {
	python3 - "$1" "$2" <<'EOF'
import os, sys
os.chmod(sys.argv[1], 0o644)
with open(sys.argv[1], "r+b") as f:
    f.seek(int(sys.argv[2]))
    byte = f.read(1)[0]
    f.seek(int(sys.argv[2]))
    f.write(bytes([byte ^ 4]))
EOF
}

pack=$(echo "$INCR_STORE"/packs/*)
flip "$pack" 50000
t_json "verify names file, transaction and pack of damaged content" \
	"damaged-frame packs/$(basename "$pack") t1 large" \
	'" ".join("%s %s %s %s" % (x["code"], x["file"], x["transaction"], x["path"]) for x in d["findings"])' \
	"$INCRCTL" verify --data --json
t_out "what is whole can be read" "small" "$INCRCTL" cat d small
t_error 6 damaged-frame "what is not is an error" "$INCRCTL" cat d large
t_grep "that says what to do" "^hint: incrctl verify --data " "$INCRCTL" cat d large
flip "$pack" 50000
t_exit 0 "a copy of the pack puts it right" "$INCRCTL" verify --data
flip "$pack" 50000
t_grep "repair says which file is lost" "large: .*, given up" "$INCRCTL" repair
t_exit 0 "then verify finds no damage" "$INCRCTL" verify --data
t_grep "and counts what was given up" "1 loss given up by an earlier repair" \
	"$INCRCTL" verify --data
t_error 6 damaged-frame "the file stays an error" "$INCRCTL" cat d large
t_grep "a second repair does nothing" "^0 things mended; no damage is left" "$INCRCTL" repair
flip "$pack" 50000
t "a copy of the pack still puts it right" sh -c '"$INCRCTL" cat d large | cmp - files/large'

# ---- what the disk does not give ----

# eio FILE COMMAND...: each read of that file fails.
eio() {
	strace -f -qq -o /dev/null -P "$1" -e inject=pread64:error=EIO "${@:2}"
}
if command -v strace >/dev/null && ! eio "$pack" "$INCRCTL" cat d large >/dev/null 2>&1; then
	pack_name=packs/$(basename "$pack")
	t_exit 6 "what cannot be read is damage" eio "$pack" "$INCRCTL" verify --data
	t_grep "verify names file and place, and goes on" "^read-error: $pack_name at byte 0, d, t1" \
		eio "$pack" "$INCRCTL" verify --data
	t_grep "to the end" "^checked 2 transactions" eio "$pack" "$INCRCTL" verify --data
	t_exit 6 "a log that cannot be read, too" eio "$log" "$INCRCTL" verify
	t_grep "is named" "^read-error: log/0000000000000000.log at byte 64" eio "$log" "$INCRCTL" verify
	before=$(stat -c %s "$log")
	t_exit 6 "repair gives nothing up for that" eio "$pack" "$INCRCTL" repair
	t_exit 1 "nor for the log" eio "$log" "$INCRCTL" repair
	t "nor changes it" [ "$(stat -c %s "$log")" = "$before" ]
	t_exit 0 "nothing is lost by that" "$INCRCTL" verify --data
else
	skip "reads that fail" "no strace"
fi

# ---- the log ----

# The file offset of the record of log $log that makes commit $1.
record_of() {
	python3 - "$log" "$1" <<'EOF'
import struct, sys
data, at, n = open(sys.argv[1], "rb").read(), 64, 0
while data[at:at + 4] == b"INCR":
    kind, size = struct.unpack_from("<HxxI", data, at + 4)
    n += kind == 11
    if kind == 11 and n == int(sys.argv[2]):
        print(at)
    at += 64 + (size + 7) // 8 * 8
EOF
}

fresh_store
log=$INCR_STORE/log/0000000000000000.log
"$INCRCTL" dataset create d >/dev/null
"$INCRCTL" dataset create out >/dev/null
for i in 1 2 3 4; do
	echo "content $i" >files/$i
	"$INCRCTL" commit d files/$i >/dev/null
done
build() {
	"$INCRCTL" run copy -i d=d -o out=out --json -- \
		sh -c 'cp "$INCR_ADDED_D"/* "$INCR_OUT_OUT"'
}
t "a build reads four files" build
"$INCRCTL" commit d files/more >/dev/null
t_json "what comes next is read alone" "incremental" 'd["decision"]' \
	"$INCRCTL" plan copy --json

at=$(record_of 2)
flip "$log" $((at + 80))
cp "$log" damaged
t_exit 6 "a damaged log does not open" "$INCRCTL" log d
t_json "verify names segment, offset and transaction" \
	"corrupt-log $at None lost-transaction 0 t2" \
	'" ".join("%s %s %s" % (x["code"], x["offset"], x["transaction"]) for x in d["findings"])' \
	"$INCRCTL" verify --json
t_grep "a dry run says what would be given up" "would give up its damaged records" \
	"$INCRCTL" repair --dry-run
t "and changes nothing" cmp damaged "$log"
t_grep "repair names the lost transaction" "^lost-transaction: d, t2: .*given up" \
	"$INCRCTL" repair
t "no byte of the log changes" cmp -n "$(stat -c %s damaged)" damaged "$log"
t "the damaged bytes are in lost/" \
	sh -c 'cat "$INCR_STORE"/lost/damaged-* >lost && grep -q "content 2" lost'
t_exit 0 "then verify finds no damage" "$INCRCTL" verify --data
t_out "every other file is there" "1
3
4
more" "$INCRCTL" ls d
t_grep "the view says what it lacks" "warning: t2 is lost" "$INCRCTL" ls d
t_grep "the history shows the gap" "^t2 +lost" "$INCRCTL" log d
t_out "a view before it says nothing" "" sh -c '"$INCRCTL" ls d@t1 2>&1 >/dev/null'
t_json "a build that rests on it reads everything" "snapshot transaction-lost t2" \
	'"%s %s %s" % (d["decision"], d["reasons"][0]["code"], d["reasons"][0]["transaction"])' \
	"$INCRCTL" plan copy --json
t "and runs" build
"$INCRCTL" commit d files/2 >/dev/null
t_json "once" "incremental" 'd["decision"]' "$INCRCTL" plan copy --json
"$INCRCTL" commit d files/1 files/2 files/3 files/4 --type snapshot >/dev/null
t_out "a SNAPSHOT makes the view whole" "" sh -c '"$INCRCTL" ls d 2>&1 >/dev/null'
t_exit 0 "and all of it verifies" "$INCRCTL" verify --data

# ---- the last record, and the header ----

last=$("$INCRCTL" log d --json | json 'd["transaction"]' | sed -n 1p)
flip "$log" $(($(record_of 9) + 80))
t_exit 6 "damage to the last record is no torn tail" "$INCRCTL" log d
t_exit 0 "repair gives it up" "$INCRCTL" repair
next=$("$INCRCTL" commit d files/small --json | json 'd["transaction"]')
t "its number is not used again" [ "${next#t}" -gt "${last#t}" ]
flip "$log" 20
t_exit 6 "a damaged header does not open" "$INCRCTL" log d
t_grep "repair writes it again" "wrote its header again" "$INCRCTL" repair
t_exit 0 "and all of it verifies" "$INCRCTL" verify --data

# ---- the list of a transaction's files ----

fresh_store
mkdir many
for i in $(seq 2000); do echo "$i" >"many/m$i"; done
"$INCRCTL" dataset create d >/dev/null
"$INCRCTL" dataset create other >/dev/null
"$INCRCTL" commit other files/small >/dev/null
"$INCRCTL" commit d files/1 >/dev/null
"$INCRCTL" commit d many >/dev/null
"$INCRCTL" commit d files/more >/dev/null
pack=$(echo "$INCR_STORE"/packs/*)
# the manifest is what a pack ends with
end=$(($(stat -c %s "$pack") - 100))
flip "$pack" $end
rm -f "$INCR_STORE"/index/*
t_out "the store opens, and all else is there" "small" "$INCRCTL" ls other
t_grep "verify names the transaction" "^damaged-(manifest|frame): .*, d, t3: " \
	"$INCRCTL" verify
t_error 6 damaged-manifest "a view that needs it is refused" "$INCRCTL" ls d
t_out "one that does not is shown" "1" "$INCRCTL" ls d@t2
flip "$pack" $end
t "with a copy of the pack it is shown again" sh -c '"$INCRCTL" ls d | grep -qx m2000'
flip "$pack" $end
rm -f "$INCR_STORE"/index/*
t_exit 0 "repair gives the list up" "$INCRCTL" repair
t_exit 0 "verify finds no damage" "$INCRCTL" verify --data
t_grep "the view is shown, and says what it lacks" "warning: t3 is lost" "$INCRCTL" ls d
t_out "with the files of all others" "1
more" sh -c '"$INCRCTL" ls d 2>/dev/null'
done_testing
