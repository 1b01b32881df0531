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
t_exit 6 "repair cannot bring it back" "$INCRCTL" repair
t_out "what is whole can be read" "small" "$INCRCTL" cat d small
t_error 6 damaged-frame "what is not is an error" "$INCRCTL" cat d large
flip "$pack" 50000
t_exit 0 "a copy of the pack puts it right" "$INCRCTL" repair

# ---- the log ----

flip "$log" 300
t_exit 6 "a damaged log does not open" "$INCRCTL" log d
t_grep "verify names segment and offset" \
	"^corrupt-log: log/0000000000000000.log at byte [0-9]+" "$INCRCTL" verify
t_exit 6 "repair leaves it alone" "$INCRCTL" repair
flip "$log" 300
t_exit 0 "a copy of the log puts it right" "$INCRCTL" repair
done_testing
