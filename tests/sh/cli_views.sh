#!/bin/bash
# log, show, ls, cat, diff and export on the command line.
# shellcheck disable=SC2016  # expanded by the inner shell
. "$(dirname "$0")/lib.sh"
. "$SRCDIR/tests/sh/cli.sh"

fresh_store
"$INCRCTL" dataset create d e
mkdir -p one/sub && echo 1 >one/a && echo 2 >one/sub/b && echo 3 >one/sub.c && chmod 640 one/a
touch -d 2001-02-03T04:05:06.789Z one/a
"$INCRCTL" commit d one -m "first line
second line" >/dev/null
mkdir -p two/sub && echo 22 >two/sub/b && echo 4 >two/z
"$INCRCTL" commit d two --type update >/dev/null
"$INCRCTL" rm d a >/dev/null

# log
t_out "log, newest first" "$(printf 't3\nt2\nt1')" sh -c '"$INCRCTL" log d | cut -d" " -f1'
t_grep "a line of text for each" '^t1 +20.*Z  APPEND    3 files, 6 B  first line$' "$INCRCTL" log d
t_grep "a DELETE counts what it removed" "t3 .*DELETE    1 file removed" "$INCRCTL" log d
t_json "log --json" "$(printf '%s\n' "('t3', 'DELETE', 0, 1)" "('t2', 'UPDATE', 2, 0)" "('t1', 'APPEND', 3, 0)")" \
	'(d["transaction"], d["type"], d["files"], d["removed"])' "$INCRCTL" log d --json
t_out "--limit" "t3" sh -c '"$INCRCTL" log d --limit 1 | cut -d" " -f1'
t_out "--range is half open" "t2" sh -c '"$INCRCTL" log d --range t1..t2 | cut -d" " -f1'
t_out "--range to the head" "$(printf 't3\nt2')" sh -c '"$INCRCTL" log d --range t1.. | cut -d" " -f1'
t_out "--range by time" "" "$INCRCTL" log d --range ..2001-01-01T00:00:00Z
t_exit 2 "a range that is none" "$INCRCTL" log d --range t1
t_exit 2 "a range that goes back" "$INCRCTL" log d --range t3..t1
t_exit 3 "log of no dataset" "$INCRCTL" log nothing
t_out "log of an empty one" "" "$INCRCTL" log e

# show
t_out "show lists what it did" "$(printf 'M       3 B sub/b\nA       2 B z' | tr -s ' ')" \
	sh -c '"$INCRCTL" show t2 | sed "1,/^\$/d" | tr -s " "'
t_out "show -z" "sub/b z " sh -c '"$INCRCTL" show t2 -z | tr "\0" " "'
t_json "show --json" "[('sub/b', 'modified', 3, 't2'), ('z', 'added', 2, 't2')]" \
	'[(e["path"], e["status"], e["size"], e["transaction"]) for e in d["entries"]]' "$INCRCTL" show t2 --json
t_json "what a DELETE removed" "[('a', 'removed', 't1')]" \
	'[(e["path"], e["status"], e["transaction"]) for e in d["entries"]]' "$INCRCTL" show t3 --json
t_exit 3 "show no transaction" "$INCRCTL" show t99
t_exit 2 "show what is none" "$INCRCTL" show d

# ls
t_out "ls" "$(printf 'sub.c\nsub/b\nz')" "$INCRCTL" ls d
t_out "ls at a transaction" "$(printf 'a\nsub.c\nsub/b')" "$INCRCTL" ls d@t1
t_out "ls at a time before" "" "$INCRCTL" ls d@2001-01-01T00:00:00Z
t_out "ls at a time after" "$(printf 'sub.c\nsub/b\nz')" "$INCRCTL" ls d@2100-01-01T00:00:00+01:00
t_out "ls of a directory" "sub/b" "$INCRCTL" ls d sub
t_out "ls of a directory with a slash" "sub/b" "$INCRCTL" ls d sub/
t_out "ls of a file" "z" "$INCRCTL" ls d z
t_out "ls by glob" "sub.c" "$INCRCTL" ls d '*.c'
t_out "** crosses directories" "sub/b" "$INCRCTL" ls d '**/b'
t_exit 3 "ls of what is not there" "$INCRCTL" ls d nothing
t_exit 3 "ls of no dataset" "$INCRCTL" ls nothing
t_exit 3 "ls at a transaction of another dataset" "$INCRCTL" ls e@t1
t_exit 3 "ls at no transaction" "$INCRCTL" ls d@t99
t_exit 3 "ls of no branch" "$INCRCTL" ls d:dev
t_exit 2 "ls at a point that is none" "$INCRCTL" ls d@yesterday
t_grep "ls -l" '^-rw-r-----        2 B  2001-02-03T04:05:06Z  t1     a$' "$INCRCTL" ls d@t1 -l
t_json "ls --json" "('a', 2, '2001-02-03T04:05:06.789Z', '0640', 't1', 32)" \
	'(d["path"], d["size"], d["mtime"], d["mode"], d["transaction"], len(d["hash"]))' "$INCRCTL" ls d@t1 a --json
if command -v xxhsum >/dev/null; then
	want=$(xxhsum -H128 two/z | grep -oE '[0-9a-f]{32}')
	t_json "the hash is XXH3-128" "$want" 'd["hash"]' "$INCRCTL" ls d z --json
else
	skip "the hash is XXH3-128" "no xxhsum"
fi
t_out "ls -z" "sub.c sub/b z " sh -c '"$INCRCTL" ls d -z | tr "\0" " "'

# cat
t_out "cat joins files" "$(printf '22\n4')" "$INCRCTL" cat d sub/b z
t_out "cat at a point" "2" "$INCRCTL" cat d@t1 sub/b
t_exit 3 "cat what is not there" "$INCRCTL" cat d nothing
t_exit 2 "cat a directory" "$INCRCTL" cat d sub
head -c 3000000 /dev/urandom >big
"$INCRCTL" commit e big >/dev/null
t "cat of a large file is exact" sh -c '"$INCRCTL" cat e big | cmp - big'

# diff
t_out "diff --name-status" "$(printf 'R\ta\nM\tsub/b\nA\tz')" "$INCRCTL" diff d t1..t3 --name-status
t_out "diff --name-only" "$(printf 'a\nsub/b\nz')" "$INCRCTL" diff d t1..t3 --name-only
t_out "diff -z is paths alone" "a sub/b z " sh -c '"$INCRCTL" diff d t1..t3 --name-status -z | tr "\0" " "'
t_out "diff from the beginning" "$(printf 'A\tsub.c\nA\tsub/b\nA\tz')" "$INCRCTL" diff d .. --name-status
t_json "diff --json" "$(printf '%s\n' "('a', 'removed', 't3')" "('sub/b', 'modified', 't2')" "('z', 'added', 't2')")" \
	'(d["path"], d["status"], d["transaction"])' "$INCRCTL" diff d t1..t3 --json
t_exit 0 "a difference alone is success" "$INCRCTL" diff d t1..t3
t_exit 10 "--exit-code tells a difference" "$INCRCTL" diff d t1..t3 --exit-code
t_exit 0 "--exit-code without one" "$INCRCTL" diff d t3..t3 --exit-code
t_exit 2 "diff without a range" "$INCRCTL" diff d t1
t_exit 3 "diff to no transaction" "$INCRCTL" diff d t1..t99

# git and diff agree on what changed
for point in t1 t3; do
	"$INCRCTL" export "d@$point" "tree-$point" >/dev/null
done
if command -v git >/dev/null; then
	want=$(git diff --no-index --name-status --no-renames tree-t1 tree-t3 |
		sed 's/^D/R/; s,tree-t[13]/,,' | LC_ALL=C sort)
	t_out "git sees the same" "$want" sh -c '"$INCRCTL" diff d t1..t3 --name-status | LC_ALL=C sort'
else
	skip "git sees the same" "no git"
fi

# export
t "an export is what was committed" diff -r one tree-t1
t_out "with its mode" "640" stat -c %a tree-t1/a
t_out "with its time" "2001-02-03 04:05:06.789000000 +0000" stat -c %y tree-t1/a
t_exit 4 "export into a directory with files" "$INCRCTL" export d tree-t1
t_exit 0 "export into an empty directory" sh -c 'mkdir out && "$INCRCTL" export d out'
t_exit 0 "--view=added" "$INCRCTL" export d@t3 added --view added --since t1
t_out "holds what was added" "./z" sh -c 'cd added && find . -type f'
t_exit 0 "--view=removed" "$INCRCTL" export d@t3 removed --view=removed --since t1
t "holds the last version" cmp removed/a one/a
t_exit 0 "--view=modified" "$INCRCTL" export d@t3 modified --view modified --since t1
t_out "holds the new version" 22 cat modified/sub/b
t_exit 2 "--view without --since" "$INCRCTL" export d x --view added
t_exit 2 "an unknown view" "$INCRCTL" export d x --view previous --since t1
t_exit 3 "export of no dataset" "$INCRCTL" export nothing x
"$INCRCTL" export e big-tree >/dev/null
t "a large file is exact" cmp big big-tree/big
ln -s /nonexistent/target dangling
t_exit 1 "export to a dangling link" "$INCRCTL" export d dangling
t "nothing was made there" [ ! -e /nonexistent ]

# verify
t_grep "verify" "^checked 4 transactions, .*: no damage$" "$INCRCTL" verify
t_json "verify --json" "(True, True, [])" '(d["ok"], d["complete"], d["findings"])' "$INCRCTL" verify --data --json
t_exit 0 "verify of one dataset" "$INCRCTL" verify d --data
t_exit 3 "verify of no dataset" "$INCRCTL" verify nothing
t_exit 2 "a time limit that is none" "$INCRCTL" verify --time-limit 0

# The same as tar, byte for byte
t_out "tar sees the same" "$(tar -C one --sort=name -cf - . --mtime=@0 --owner=0 --group=0 | sha256sum)" \
	sh -c 'tar -C tree-t1 --sort=name -cf - . --mtime=@0 --owner=0 --group=0 | sha256sum'

done_testing
