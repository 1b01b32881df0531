#!/bin/bash
# Stores, datasets and branches on the command line.
# shellcheck disable=SC2016  # expanded by the inner shell
. "$(dirname "$0")/lib.sh"
. "$SRCDIR/tests/sh/cli.sh"

t_exit 3 "without a store" "$INCRCTL" dataset list
t_grep "no store: says what to do" "hint: .*init" "$INCRCTL" dataset list
mkdir plain
t_exit 3 "a directory that is no store" "$INCRCTL" -S plain dataset list
t_exit 3 "a store that is not there" "$INCRCTL" -S nothing dataset list
t_exit 0 "init makes ./.incr" "$INCRCTL" init
t "the nearest .incr is found from below" sh -c \
	'mkdir -p a/b && cd a/b && "$INCRCTL" dataset create up && "$INCRCTL" dataset list'
t_out "a .incr that is no store is passed over" "up" sh -c \
	'mkdir -p a/b/.incr && cd a/b && "$INCRCTL" dataset list'
t_exit 4 "init refuses a directory that is not empty" "$INCRCTL" init
t_exit 0 "init makes the store of the environment" env INCR_STORE=by-env "$INCRCTL" init
t "and no other" [ -e by-env/format ]
touch plain/file
t_exit 4 "init refuses somebody's directory" "$INCRCTL" init plain
t "init into an empty directory" sh -c 'mkdir empty && "$INCRCTL" init empty'
t_grep "init --json names the store" '"uuid":"[0-9a-f-]{36}"' "$INCRCTL" init other --json
export INCR_STORE=$PWD/empty
t_out "\$INCR_STORE before the nearest .incr" "" "$INCRCTL" dataset list
t_out "--store before \$INCR_STORE" "up" "$INCRCTL" -S .incr dataset list

fresh_store
t "create several at once" "$INCRCTL" dataset create b a/x a/y --description "of two" --meta k=v
t_out "list is sorted" "$(printf '%s\n' a/x a/y b)" "$INCRCTL" dataset list
t_exit 4 "create one that exists" "$INCRCTL" dataset create a/x
t_exit 4 "create none if one exists" "$INCRCTL" dataset create new b
t_out "nothing was made by that" "$(printf '%s\n' a/x a/y b)" "$INCRCTL" dataset list
t_grep "its JSON error" '"code":"dataset-exists"' "$INCRCTL" dataset create a/x --json
long=$(printf 'x%.0s' {1..256})
for name in "" / /a a/ a//b .. a/.. ./a a/current current -a " a" "a " "a /b" "a/b " "a
b" "$(printf 'a\xff')" "$long" 'a:b' 'a*'; do
	t_exit 2 "bad name $(printf %.20q "$name")" "$INCRCTL" dataset create -- "$name"
done
t_exit 0 "names that are good" "$INCRCTL" dataset create 'A_1.+ -' 'größe/数据' "${long%x}"
t_out "names with other letters come back" 'größe/数据' sh -c '"$INCRCTL" dataset list | grep gr'
t_json "show --json" "['a/x', 'of two', None, 0, 0, ['main'], {'k': 'v'}]" \
	'[d["dataset"], d["description"], d["head"], d["files"], d["bytes"], d["branches"], d["meta"]]' \
	"$INCRCTL" dataset show a/x --json
t_json "keys of a dataset" "True" \
	'set(["dataset","rid","description","branches","head","files","bytes"]) <= set(d)' \
	"$INCRCTL" dataset show a/x --json
t_json "what is absent is null" "None None" 'str(d["head"])+" "+str(d["description"])' \
	sh -c '"$INCRCTL" dataset create bare && "$INCRCTL" dataset show bare --json'
t_exit 3 "show one that is not there" "$INCRCTL" dataset show nothing

t "rename" "$INCRCTL" dataset rename b c/b
t_exit 3 "the old name is gone" "$INCRCTL" dataset show b
t_exit 4 "rename onto another" "$INCRCTL" dataset rename c/b a/x
t_exit 2 "rename to a bad name" "$INCRCTL" dataset rename c/b /x
t_error 2 bad-dataset-name "or to one that ends in a space" "$INCRCTL" dataset rename c/b 'x '
t_error 2 bad-branch-name "a branch that does" "$INCRCTL" branch c/b create 'x '
t_error 2 bad-transform-name "a transform that does" "$INCRCTL" plan 'x ' -i i=c/b -o o=a/x
t_error 2 bad-branch-name "the branch of a build that does" \
	"$INCRCTL" plan x -i i=c/b -o o=a/x --branch 'x '
t_error 2 bad-alias "an alias that does" "$INCRCTL" plan x -i 'i =c/b' -o o=a/x
rid=$("$INCRCTL" dataset show c/b --json | json 'd["rid"]')
"$INCRCTL" dataset rename c/b b
t_json "a rename keeps the rid" "$rid" 'd["rid"]' "$INCRCTL" dataset show b --json
t "set metadata" "$INCRCTL" dataset set b --meta x=1 --meta y= --unset k
t_json "metadata is as set" "[('x', '1'), ('y', '')]" 'sorted(d["meta"].items())' "$INCRCTL" dataset show b --json
t_exit 2 "metadata without =" "$INCRCTL" dataset set b --meta x

t_exit 2 "delete without a terminal needs --yes" "$INCRCTL" dataset delete b
t_grep "and says what it would do" "delete the dataset b: 1 branch; main holds 0 files" "$INCRCTL" dataset delete b
t_grep "--dry-run says it too" "would delete the dataset b" "$INCRCTL" dataset delete b --dry-run
t "it is still there" "$INCRCTL" dataset show b
t "delete --yes" "$INCRCTL" dataset delete b --yes
t_exit 3 "it is gone" "$INCRCTL" dataset show b
t_exit 3 "delete again" "$INCRCTL" dataset delete b --yes
"$INCRCTL" dataset create b
t "a new dataset under an old name is another" \
	[ "$("$INCRCTL" dataset show b --json | json 'd["rid"]')" != "$rid" ]

# Branches
echo 1 >f1 && echo 2 >f2
"$INCRCTL" commit a/x f1 >/dev/null
t_grep "branch create from main" "dev: t[0-9]+, 1 file, 2 B" "$INCRCTL" branch a/x create dev
t_exit 4 "a branch that exists" "$INCRCTL" branch a/x create dev
"$INCRCTL" commit a/x f2 --branch dev >/dev/null
t_out "main is as it was" f1 "$INCRCTL" ls a/x
t_out "the branch went on" "$(printf 'f1\nf2')" "$INCRCTL" ls a/x:dev
t_out "commit to NAME:BRANCH" "" "$INCRCTL" commit a/x:dev --name f3 - -q </dev/null
t_out "list of branches" "dev main" sh -c '"$INCRCTL" branch a/x | cut -d: -f1 | xargs'
first=$("$INCRCTL" log a/x --json | json 'd["transaction"]')
t_grep "create at a transaction" "old: $first, 1 file" "$INCRCTL" branch a/x create old --at "$first"
t_grep "create at a branch" "dev2: t[0-9]+, 3 files" "$INCRCTL" branch a/x create dev2 --at dev
t_exit 3 "create at no branch" "$INCRCTL" branch a/x create y --at nothing
t_exit 3 "create at no transaction" "$INCRCTL" branch a/x create y --at t999
t_exit 2 "a bad branch name" "$INCRCTL" branch a/x create a/b
t "reset" "$INCRCTL" branch a/x reset dev "$first"
t_out "it went back" f1 "$INCRCTL" ls a/x:dev
t_exit 3 "reset to what is not there" "$INCRCTL" branch a/x reset dev t999
t_exit 2 "delete of a branch needs --yes" "$INCRCTL" branch a/x delete dev
t "delete of a branch" "$INCRCTL" branch a/x delete dev --yes
t_exit 2 "main is not deleted" "$INCRCTL" branch a/x delete main --yes
t_grep "and the message says why" "unless told otherwise" "$INCRCTL" branch a/x delete main --yes
t_grep "a missing argument is named" "NEW is missing" \
	"$INCRCTL" dataset rename a/x
t_exit 3 "it is gone" "$INCRCTL" ls a/x:dev
t_exit 2 "an unknown form" "$INCRCTL" branch a/x frobnicate
t_exit 2 "a form without its argument" "$INCRCTL" branch a/x create
t_exit 2 "too many arguments" "$INCRCTL" branch a/x list more
t_exit 3 "branches of no dataset" "$INCRCTL" branch nothing

# A store that a later version wrote: a feature bit that is unknown here.
"$INCRCTL" init newer >/dev/null
if command -v xxhsum >/dev/null; then
	python3 - newer/format <<'END'
import subprocess, sys
path = sys.argv[1]
b = bytearray(open(path, "rb").read())
b[23] |= 0x80
open(path + ".head", "wb").write(b[:120])
out = subprocess.run(["xxhsum", "-H3", path + ".head"], capture_output=True, text=True).stdout
digest = [w for w in out.replace("=", " ").replace("_", " ").split() if len(w) == 16][0]
b[120:128] = bytes.fromhex(digest)[::-1]
open(path, "wb").write(b)
END
	t_error 1 newer-format "a store of a newer format" "$INCRCTL" -S newer dataset list
else
	skip "a store of a newer format" "no xxhsum"
fi
printf 'x' | dd of=other/format conv=notrunc bs=1 seek=100 2>/dev/null
t_exit 6 "a store whose format is damaged" "$INCRCTL" -S other dataset list

# Schemas
echo '{"columns":[{"name":"id","type":"long"}]}' >s1
echo '{"columns":[{"name":"id","type":"string","nullable":true}]}' >s2
echo '{"columns":[{"name":"id"}]}' >bad
"$INCRCTL" dataset create d
t_exit 3 "no schema yet" "$INCRCTL" schema show d
t "schema set" "$INCRCTL" schema set d s1
t_out "schema show" "$(cat s1)" "$INCRCTL" schema show d
"$INCRCTL" commit d f1 >/dev/null
t "another schema" "$INCRCTL" schema set d - <s2
t_exit 2 "a schema that is none" "$INCRCTL" schema set d bad
t_exit 2 "a schema file that is not there" "$INCRCTL" schema set d nothing
t_exit 3 "the schema of no dataset" "$INCRCTL" schema set nothing s1
t_json "schema show --json" "string" 'd["columns"][0]["type"]' "$INCRCTL" schema show d --json

done_testing
