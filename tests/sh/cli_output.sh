#!/bin/bash
# Options of every verb, help, and what happens to the output.
# shellcheck disable=SC2016  # expanded by the inner shell
. "$(dirname "$0")/lib.sh"
. "$SRCDIR/tests/sh/cli.sh"

fresh_store
"$INCRCTL" dataset create d
echo x >x && "$INCRCTL" commit d x >/dev/null

# Help
t_exit 0 "--help" "$INCRCTL" --help
t_exit 0 "-h" "$INCRCTL" -h
t_grep "--version" "^incrctl [0-9]" "$INCRCTL" --version
verbs="init commit rm log show ls cat diff export branch plan run mount unmount status changes verify"
for verb in $verbs "dataset create" "dataset list" "dataset show" "dataset rename" \
	"dataset delete" "dataset set" "txn begin" "txn put" "txn rm" "txn commit" "txn abort" \
	"txn list" "schema set" "schema show" "build list" "build show" "build commit" \
	"build abort" "build report" dataset txn schema build; do
	# shellcheck disable=SC2086  # two words are two arguments
	t_exit 0 "$verb --help" "$INCRCTL" $verb --help
	# shellcheck disable=SC2086
	t_grep "$verb: its usage" "^usage: incrctl $verb" "$INCRCTL" $verb --help
done
t_exit 2 "no verb" "$INCRCTL"
t_exit 2 "an unknown verb" "$INCRCTL" frobnicate
t_exit 2 "an unknown sub-verb" "$INCRCTL" dataset frobnicate
t_exit 2 "a verb without its sub-verb" "$INCRCTL" dataset
t_exit 2 "an unknown option" "$INCRCTL" ls d --frobnicate
t_exit 2 "an unknown letter" "$INCRCTL" ls d -Y
t_exit 2 "an option without its value" "$INCRCTL" log d --limit
t_exit 2 "too many arguments" "$INCRCTL" show t1 t2
t_exit 2 "a wrong --progress" "$INCRCTL" ls d --progress=sometimes
t_exit 2 "a wrong --wait" "$INCRCTL" ls d --wait=long
t_json "a usage error is JSON" "usage" 'd["error"]["code"]' sh -c '"$INCRCTL" ls --json 2>&1; :'
t_json "also of an unknown option" "usage" 'd["error"]["code"]' sh -c '"$INCRCTL" ls --frobnicate --json 2>&1; :'

# Options anywhere
t_out "options before the verb" "x" "$INCRCTL" -S "$INCR_STORE" --wait 1 ls d
t_out "options between" "x" "$INCRCTL" ls --wait=1 d -q
t_out "after -- all are arguments" "x" "$INCRCTL" ls -- d
t_exit 3 "also what looks like an option" "$INCRCTL" cat d -- --json
t_exit 125 "usage errors of run" "$INCRCTL" run
t_exit 125 "unknown options of run" "$INCRCTL" run t --frobnicate -- true

# Every other failure of a write is an error
t_exit 1 "a full disk" sh -c '"$INCRCTL" ls d >/dev/full'
t_exit 1 "a full disk, cat" sh -c '"$INCRCTL" cat d x >/dev/full'
t_exit 1 "a full disk, help" sh -c '"$INCRCTL" --help >/dev/full'
t_exit 1 "a closed standard output" sh -c '"$INCRCTL" ls d >&-'
t_exit 0 "a closed standard input" sh -c '"$INCRCTL" ls d <&-'
t_exit 3 "a closed standard error" sh -c '"$INCRCTL" ls nothing 2>&-'

# A reader that goes away ends it quietly
seq -f 'many/%.0f' 5000 >names && mkdir many && xargs touch <names
"$INCRCTL" commit d many >/dev/null
for verb in "ls d" "ls d --json" "show t2" "diff d .."; do
	t_out "$verb | head -n 1 is quiet" "" sh -c "\"\$INCRCTL\" $verb 2>&1 >/dev/null | cat; \"\$INCRCTL\" $verb 2>err | head -n 1 >/dev/null; cat err"
done

# Progress and colour
t_out "no progress without a terminal" "" sh -c '"$INCRCTL" commit d many --type update --rewrite -q 2>&1'
t_grep "--progress=always" "commit: " "$INCRCTL" commit d many --type update --rewrite --progress=always
t_out "--progress=never" "" sh -c '"$INCRCTL" commit d many --type update --rewrite -q --progress=never 2>&1'
t_out "never an escape sequence" "" sh -c '"$INCRCTL" log d | grep "$(printf "\033")"; :'

# Locks
t_exit 0 "--wait 0 with nobody there" "$INCRCTL" commit d x --type update --rewrite --wait 0

# An error about many paths can still be read
t_exit 4 "an append of 5000 paths that exist" "$INCRCTL" commit d many
"$INCRCTL" commit d many 2>err
t_out "shows 20 of them" "20" grep -c '^  many\|^  [0-9]' err
t_grep "and says how many more" "^  and 4980 more; --json lists all" cat err
t_grep "and what to do" "^hint: " cat err
t_json "JSON has all" 5000 'len(d["error"]["paths"])' \
	sh -c '"$INCRCTL" commit d many --json 2>&1; :'

done_testing
