#!/bin/bash
# Programs that know nothing of this project, over a real mount: they read
# views as ordinary files and write ordinary files into staging.
# shellcheck disable=SC2016,SC2094  # commands of runs
. "$(dirname "$0")/lib.sh"

can_mount || skip_all "no FUSE here"

fresh_store
"$INCRCTL" dataset create days >/dev/null
for output in hair sorted tree copy synced table scripted; do
	"$INCRCTL" dataset create "$output" >/dev/null
done

day() {
	"$INCRCTL" commit days "$SRCDIR/examples/students/students-2026-01-0$1.csv" >/dev/null
}

# build NAME COMMAND...: a run of transform NAME, from days to dataset NAME.
build() {
	local name=$1
	shift
	"$INCRCTL" run "$name" -i days=days -o "out=$name" -- "$@"
}

# cat_all DATASET: the content of all its files in order.
cat_all() {
	"$INCRCTL" ls "$1" -z | xargs -0 "$INCRCTL" cat "$1"
}

for n in 5 6 7; do
	day $n
	t "day $n: awk, sort and grep build a file from added files" build hair sh -c '
		for f in "$INCR_ADDED_DAYS"/*.csv; do
			awk -F, "FNR > 1 && \$2 == \"Brown\"" "$f" | sort -t, -k1,1n |
				grep -v "^$" >"$INCR_OUT_OUT/$(basename "$f")"
		done'
done
cat_all hair | sort >got
tail -q -n +2 "$SRCDIR"/examples/students/*.csv | awk -F, '$2 == "Brown"' | sort >want.hair
t "286 brown-haired students came out, those that awk finds alone" cmp want.hair got
t_out "286 of them" 286 sh -c 'wc -l <got'

t "tar reads a view" build tree sh -c 'tar -cf "$INCR_OUT_OUT/days.tar" -C "$INCR_CURRENT_DAYS" .'
"$INCRCTL" cat tree days.tar | tar -tf - | grep csv | sort >got
(cd "$SRCDIR/examples/students" && find . -name '*.csv') | sort >want
t "and the archive holds the files of the view" cmp want got

t "cp -a copies a view into staging" build copy sh -c 'cp -a "$INCR_CURRENT_DAYS/." "$INCR_OUT_OUT/"'
"$INCRCTL" export copy copied >/dev/null
t "byte for byte" diff -r "$SRCDIR/examples/students" copied
t_out "with the times of the sources" \
	"$(stat -c %Y "$SRCDIR/examples/students/students-2026-01-05.csv")" \
	stat -c %Y copied/students-2026-01-05.csv

if command -v rsync >/dev/null; then
	t "rsync writes into staging (temporary names, then renames)" build synced sh -c \
		'rsync -a "$INCR_CURRENT_DAYS/" "$INCR_OUT_OUT/sub/"'
	"$INCRCTL" export synced rsynced >/dev/null
	t "and leaves nothing but the files" diff -r "$SRCDIR/examples/students" rsynced/sub
else
	skip "rsync writes into staging" "no rsync"
fi

if command -v sqlite3 >/dev/null; then
	t "sqlite3 works on a database in staging (locks, journal, rewrites in place)" build table sh -c '
		cd "$INCR_OUT_OUT" &&
		sqlite3 students.db "create table s (id int primary key, hair, eye, sex)" &&
		for f in "$INCR_CURRENT_DAYS"/*.csv; do
			tail -n +2 "$f" >rows.tmp
			sqlite3 students.db ".mode csv" ".import rows.tmp s" && rm rows.tmp || exit
		done'
	"$INCRCTL" cat table students.db >students.db
	t_out "and the committed database holds every row" 286 \
		sqlite3 students.db "select count(*) from s where hair = 'Brown'"
	t_out "and is whole" ok sqlite3 students.db "pragma integrity_check"
	t_out "and nothing else was committed" students.db "$INCRCTL" ls table
else
	skip "sqlite3 works on a database in staging" "no sqlite3"
fi

t "python3 maps files of a view and writes through a map in staging" build scripted python3 -c '
import mmap, os
source, target = os.environ["INCR_CURRENT_DAYS"], os.environ["INCR_OUT_OUT"]
for name in sorted(os.listdir(source)):
    with open(os.path.join(source, name), "rb") as f:
        m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
        data = m[:]
        m.close()
    with open(os.path.join(target, name), "w+b") as f:
        f.truncate(len(data))
        m = mmap.mmap(f.fileno(), len(data))
        m[:] = data
        m.close()'
"$INCRCTL" export scripted mapped >/dev/null
t "byte for byte" diff -r "$SRCDIR/examples/students" mapped

"$INCRCTL" run sums -i days=days -o out=scripted --write-mode out=replace -- sh -c '
	cd "$INCR_CURRENT_DAYS" && sha256sum * >"$INCR_OUT_OUT/sums"' 2>/dev/null
"$INCRCTL" cat scripted sums >sums
t "sha256sum -c over the sources agrees" sh -c 'cd "$1" && sha256sum -c --quiet "$2"' sh \
	"$SRCDIR/examples/students" "$TMP/sums"

done_testing
