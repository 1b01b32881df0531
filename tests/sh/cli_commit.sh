#!/bin/bash
# commit, rm and txn on the command line.
# shellcheck disable=SC2016  # expanded by the inner shell
. "$(dirname "$0")/lib.sh"
. "$SRCDIR/tests/sh/cli.sh"

fresh_store
mkdir -p src/sub && echo one >src/a && echo two >src/sub/b && chmod 750 src/a
"$INCRCTL" dataset create d e

t_error 3 no-such-dataset "commit to no dataset" "$INCRCTL" commit nothing src
t_grep "its hint" "hint: incrctl dataset create nothing" "$INCRCTL" commit nothing src
t_out "commit prints one line" "t1 APPEND d: 2 files, 8 B" "$INCRCTL" commit d src
t_out "its files" "$(printf 'a\nsub/b')" "$INCRCTL" ls d
t_error 4 append-collision "append of paths that exist" "$INCRCTL" commit d src
t_grep "the first collision is listed" "^  a$" "$INCRCTL" commit d src
t_grep "and the last" "^  sub/b$" "$INCRCTL" commit d src
t_out "an update of nothing new is empty" "t2 UPDATE d: 0 files, 0 B" \
	"$INCRCTL" commit d src --type update
t_out "--rewrite records it" "t3 UPDATE d: 2 files, 8 B" \
	"$INCRCTL" commit d src --type update --rewrite
t_out "--skip-empty commits nothing" "d: nothing to commit" \
	"$INCRCTL" commit d src --type update --skip-empty
t_out "--quiet prints nothing" "" "$INCRCTL" commit d src --type update --skip-empty -q
t_json "commit --json" "['t4', 'UPDATE', 'd', 'main', 'COMMITTED', 'gdpr', 2, 8, 'why', {'k': 'v=w'}, None]" \
	'[d[k] for k in "transaction type dataset branch status origin files bytes message meta build".split()]' \
	"$INCRCTL" commit d src --type update --rewrite --origin gdpr -m why --meta k=v=w --json
t_grep "its rid" 'ri.incr.[0-9a-f-]{36}.transaction.4"' "$INCRCTL" show t4 --json
t_exit 2 "an origin that is none" "$INCRCTL" commit d src --type update --origin 'No!'
t_exit 2 "an unknown type" "$INCRCTL" commit d src --type delete
t_exit 2 "metadata without a value" "$INCRCTL" commit d src --meta k
t_exit 2 "no source" "$INCRCTL" commit d
t_exit 0 "a file and a directory, below a prefix" "$INCRCTL" commit d --prefix p/q src/a src/sub
t "they are below it" sh -c '"$INCRCTL" ls d p | grep -qx p/q/b'
t_exit 0 "a prefix with a slash at its end" "$INCRCTL" commit d --prefix slash/ src/a
t_out "which does not count" "slash/a" "$INCRCTL" ls d slash
t_exit 0 "standard input" sh -c 'echo stream | "$INCRCTL" commit d - --name in/stream'
t_out "its bytes" stream "$INCRCTL" cat d in/stream
t_exit 2 "standard input without a name" "$INCRCTL" commit d - </dev/null
t_exit 2 "--name with two sources" "$INCRCTL" commit d src/a src/sub --name x
t_exit 0 "a file under another name" "$INCRCTL" commit d src/a --name other/name
for name in /x ../x a/../x a//b ./x x/ ""; do
	t_exit 2 "path $(printf %q "$name")" "$INCRCTL" commit d src/a --name "$name"
done
t_exit 2 "a path that is too long" "$INCRCTL" commit d src/a --name "$(printf 'x%.0s' {1..256})"
t_exit 4 "a file below a file" "$INCRCTL" commit d src/a --name a/below
t_exit 3 "a source that is not there" "$INCRCTL" commit d nothing
odd=$(printf 'n\xff\nx')
mkdir odd && printf 'x' >"odd/$odd"
t_exit 0 "a name that is not UTF-8" "$INCRCTL" commit d odd
t_json "comes back" "bv8KeA==" 'd.get("path_b64")' "$INCRCTL" ls d "$odd" --json
t_out "is quoted in text" '"n\377\nx"' "$INCRCTL" ls d "$odd"
t_out "is itself with -z" "$odd" sh -c '"$INCRCTL" ls d "$1" -z | tr -d "\0"' sh "$odd"
t_out "cat takes it" x "$INCRCTL" cat d "$odd"

# What is no file
mkdir special && echo f >special/file
mkfifo special/fifo
t_exit 2 "a FIFO in a source" "$INCRCTL" commit e special
t_grep "it is named" "fifo" "$INCRCTL" commit e special
rm special/fifo && ln -s file special/link
t_error 2 special-file "a symbolic link in a source" "$INCRCTL" commit e special
rm special/link
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("special/socket")'
t_exit 2 "a socket in a source" "$INCRCTL" commit e special
rm special/socket
if mknod special/null c 1 3 2>/dev/null; then
	t_exit 2 "a device in a source" "$INCRCTL" commit e special
	rm special/null
else
	skip "a device in a source" "not allowed here"
fi
mkfifo special/fifo
t_out "--skip-special leaves them out" "file" sh -c \
	'"$INCRCTL" commit e special --skip-special -q && "$INCRCTL" ls e'
t_exit 2 "a FIFO as source" "$INCRCTL" commit e special/fifo

# Expectation, branches, snapshots
head=$("$INCRCTL" dataset show e --json | json 'd["head"]')
t_exit 0 "--expect the head" "$INCRCTL" commit e src/a --expect "$head"
t_error 4 branch-moved "--expect an older one" "$INCRCTL" commit e src/sub --expect "$head"
t_exit 2 "--expect no transaction" "$INCRCTL" commit e src/sub --expect 7
t_exit 3 "a branch that is not there" "$INCRCTL" commit e src/sub --branch nothing
t_grep "a snapshot" "SNAPSHOT e: 1 file" "$INCRCTL" commit e --type snapshot src/sub
t_out "holds just that" "b" "$INCRCTL" ls e
mkdir nothing
t_grep "a snapshot of nothing empties" "SNAPSHOT e: 0 files" "$INCRCTL" commit e --type snapshot nothing
t_out "it is empty" "" "$INCRCTL" ls e

# rm
"$INCRCTL" commit e src --type snapshot >/dev/null
mkdir -p g/x/y && touch g/1.csv g/x/2.csv g/x/y/3.csv g/x/y/4.txt
"$INCRCTL" commit e g >/dev/null
t_grep "rm of a path" "DELETE e: 1 file removed" "$INCRCTL" rm e a
t_error 3 no-such-path "rm of what is not there" "$INCRCTL" rm e 1.csv nothing
t "nothing was removed by that" sh -c '"$INCRCTL" ls e | grep -qx 1.csv'
t_exit 2 "rm of a directory" "$INCRCTL" rm e x
t_grep "rm by glob" "1 file removed" "$INCRCTL" rm e '*.csv'
t_grep "** crosses directories" "2 files removed" "$INCRCTL" rm e '**/*.csv'
t_grep "rm --recursive" "1 file removed" "$INCRCTL" rm e x --recursive
t_json "rm --ignore-missing" "['DELETE', 1, 'retention']" '[d["type"], d["removed"], d["origin"]]' \
	"$INCRCTL" rm e sub/b nothing --ignore-missing --origin retention --json
t_out "it is empty again" "" "$INCRCTL" ls e

# The store among its sources
mkdir -p own/sub && echo x >own/sub/x
"$INCRCTL" init own/.incr -q
"$INCRCTL" -S own/.incr dataset create d
t_exit 0 "a directory that holds the store" sh -c 'cd own && "$INCRCTL" -S .incr commit d .'
t_out "it is left out" "sub/x" "$INCRCTL" -S own/.incr ls d
t_out "sync leaves it out too" "d: nothing changed" sh -c 'cd own && "$INCRCTL" -S .incr sync d . --mode mirror'
t_error 2 source-is-store "the store as a source" "$INCRCTL" -S own/.incr commit d own/.incr
t_exit 0 "another store is a source like any" "$INCRCTL" commit d own --prefix own

# Files that hide their bytes
if [ "$(stat -c %s /proc/version)" = 0 ]; then
	t_error 2 no-size "a file that does not tell its size" "$INCRCTL" commit d /proc/version
	t_exit 0 "as its hint says" sh -c 'cat /proc/version | "$INCRCTL" commit d - --name version'
	t_out "it has its bytes" "$(cat /proc/version)" "$INCRCTL" cat d version
fi

# Transactions by hand
t_grep "txn begin prints its number" '^t[0-9]+$' "$INCRCTL" txn begin e
txn=$("$INCRCTL" txn list --json | json 'd["transaction"]')
t_error 4 open-transaction "a second one" "$INCRCTL" txn begin e
t_error 4 open-transaction "a commit beside it" "$INCRCTL" commit e src
t_exit 4 "a removal beside it" "$INCRCTL" rm e a
t_exit 0 "put" "$INCRCTL" txn put "$txn" dir/a src/a
t_error 4 already-staged "put it again" "$INCRCTL" txn put "$txn" dir/a src/a
t_exit 0 "put --overwrite" sh -c 'echo new | "$INCRCTL" txn put '"$txn"' dir/a - --overwrite'
t_exit 0 "put another" "$INCRCTL" txn put "$txn" dir/b src/sub/b
t_exit 0 "rm unstages" "$INCRCTL" txn rm "$txn" dir/b
ln -s src/a put-link
t_exit 2 "put of a symbolic link" "$INCRCTL" txn put "$txn" link put-link
t_grep "names it" "symbolic link is no data: put-link" "$INCRCTL" txn put "$txn" link put-link
t_exit 2 "put at a bad path" "$INCRCTL" txn put "$txn" ../x src/a
t_out "an open one shows nothing" "" "$INCRCTL" ls e
t_json "show of an open one" "['OPEN', None]" '[d["status"], d["entries"]]' "$INCRCTL" show "$txn" --json
t_out "txn commit" "$txn APPEND e: 1 file, 4 B" "$INCRCTL" txn commit "$txn"
t_out "its last bytes" new "$INCRCTL" cat e dir/a
t_exit 4 "commit it again" "$INCRCTL" txn commit "$txn"
t_exit 4 "abort it afterwards" "$INCRCTL" txn abort "$txn"
t_exit 3 "no such transaction" "$INCRCTL" txn commit t999
t_exit 2 "not a transaction" "$INCRCTL" txn commit 5
txn=$("$INCRCTL" txn begin e --type delete -m gone)
t_exit 0 "a removal is staged" "$INCRCTL" txn rm "$txn" dir/a
t_out "and committed" "$txn DELETE e: 1 file removed" "$INCRCTL" txn commit "$txn"
txn=$("$INCRCTL" txn begin e)
t_exit 0 "abort" "$INCRCTL" txn abort "$txn"
t_json "it is aborted" "ABORTED" 'd["status"]' "$INCRCTL" show "$txn" --json
t_out "no transaction is open" "" "$INCRCTL" txn list

done_testing
