#!/bin/bash
# Many writers on one branch, readers of every kind, and a writer killed now and
# then: the history is a line, each acknowledged commit is in it once, a reader
# sees whole transactions, conflicts have their exit status, no lock stays.
#
# COMMITS is how many each of 8 writers does (200 is the goal).
. "$(dirname "$0")/lib.sh"

n_commits=${COMMITS:-40}
n_writers=8
fresh_store
"$INCRCTL" dataset create d

# Commit K of writer W is three files, which say so.
write_some() {
	local w=$1 k txn
	mkdir -p "src$w/w$w"
	for k in $(seq "$n_commits"); do
		for f in a b c; do
			echo "$w $k" >"src$w/w$w/$f"
		done
		txn=$("$INCRCTL" commit d "src$w" --type update --rewrite 2>>"err$w") || return
		echo "${txn%% *} $w $k" >>"acked$w"
	done
}
# A writer that is killed again and again; its numbers are its own.
be_killed() {
	local n=0
	mkdir -p killed/killed
	while [ ! -e stop ]; do
		n=$((n + 1))
		for f in a b c; do
			echo "$n" >"killed/killed/$f"
		done
		# timeout, as its child's number cannot be another's by then
		{ timeout -s KILL "0.0$((RANDOM % 9 + 1))" \
			"$INCRCTL" commit d killed --type update -q; } 2>/dev/null
		echo "$n" >kills
	done
}
# Conflicts: expect a head that has surely moved.
conflict() {
	while [ ! -e stop ]; do
		"$INCRCTL" commit d tree --expect t1 -q 2>/dev/null
		echo $? >>conflicts
	done
}
# One look at the dataset: the files of each writer agree.
look() {
	local dir=$1
	rm -rf "$dir"
	"$INCRCTL" export d "$dir" -q 2>>"$dir.err" || {
		echo "$dir: export failed" >>bad
		return
	}
	for w in "$dir"/*/; do
		[ -d "$w" ] || continue
		cmp -s "$w/a" "$w/b" && cmp -s "$w/a" "$w/c" || echo "$dir: in part: $w" >>bad
	done
	echo >>looks
}
read_exports() {
	while [ ! -e stop ]; do
		look "$1"
	done
}
read_verify() {
	while [ ! -e stop ]; do
		"$INCRCTL" verify -q 2>>bad || echo "verify" >>bad
		echo >>looks
	done
}
# The log only grows at its end: what was seen stays in front.
read_log() {
	: >seen
	while [ ! -e stop ]; do
		"$INCRCTL" log d 2>>bad | grep -oE '^t[0-9]+' | tac >now
		head -n "$(wc -l <seen)" now | cmp -s - seen || echo "the log changed" >>bad
		mv now seen
		echo >>looks
	done
}
# cat of a point that was acknowledged
read_points() {
	local txn w k
	while [ ! -e stop ]; do
		for w in $(seq "$n_writers"); do
			read -r txn _ k < <(tail -n 1 "acked$w" 2>/dev/null) || continue
			[ "$("$INCRCTL" cat "d@$txn" "w$w/b" 2>>bad)" = "$w $k" ] || echo "$txn: not $w $k" >>bad
		done
		echo >>looks
	done
}

: >bad
mkdir tree && echo 1 >tree/first
"$INCRCTL" commit d tree -q
"$INCRCTL" commit d tree --type update --rewrite -q
helpers=()
for reader in "read_exports got1" "read_exports got2" read_verify read_log read_points be_killed conflict; do
	$reader &
	helpers+=($!)
done
writers=()
for w in $(seq "$n_writers"); do
	write_some "$w" &
	writers+=($!)
done
n_failed_writers=0
for pid in "${writers[@]}"; do
	wait "$pid" || n_failed_writers=$((n_failed_writers + 1))
done
touch stop
for pid in "${helpers[@]}"; do
	wait "$pid"
done

t_out "$n_writers writers did $n_commits commits each" 0 echo $n_failed_writers
[ $n_failed_writers = 0 ] || cat err*
t_out "no reader ever saw a part, in $(wc -l <looks) looks" "" cat bad
t "a writer was killed $(cat kills) times" [ "$(cat kills)" -gt 2 ]
t_out "an --expect that is not met exits with 4, $(wc -l <conflicts) times" 4 sort -u conflicts

"$INCRCTL" log d --json >history
# parent of each is the one before
linear() {
	python3 - history <<'END'
import json, sys
log = [json.loads(line) for line in open(sys.argv[1])]
log.reverse()
parent = None
for txn in log:
    assert txn["parent"] == parent, (txn["transaction"], txn["parent"], parent)
    parent = txn["transaction"]
numbers = [txn["transaction"] for txn in log]
assert len(set(numbers)) == len(numbers)
END
}
t "the history is a line" linear
grep -oE '"transaction":"t[0-9]+"' history | grep -oE 't[0-9]+' | sort >in_log
cat acked* | cut -d' ' -f1 | sort >acked_all
t_out "$((n_writers * n_commits)) commits were acknowledged" $((n_writers * n_commits)) sh -c "wc -l <acked_all"
t_out "each with a number of its own" "" uniq -d acked_all
t_out "and all are in the history, once" "" comm -13 in_log acked_all
order_kept() {
	local w
	for w in $(seq "$n_writers"); do
		cut -d' ' -f1 "acked$w" | tr -d t | sort -nc || return
		[ "$("$INCRCTL" cat d "w$w/c")" = "$w $n_commits" ] || return
	done
}
t "each writer's commits are in its order, and the last one holds" order_kept
t_exit 0 "no lock stays" "$INCRCTL" --wait 0 commit d tree --type update
t_exit 0 "verify --data" "$INCRCTL" verify --data

# Writers of different datasets share the log alone.
write_own() {
	local i
	for i in $(seq 10); do
		echo "$1 $i" >"own$1"
		"$INCRCTL" commit "own$1" "own$1" --type update -q || return
	done
}
n_failed_writers=0 writers=()
for w in $(seq "$n_writers"); do
	"$INCRCTL" dataset create "own$w"
done
for w in $(seq "$n_writers"); do
	write_own "$w" &
	writers+=($!)
done
for pid in "${writers[@]}"; do
	wait "$pid" || n_failed_writers=$((n_failed_writers + 1))
done
t_out "$n_writers writers of as many datasets, at once" 0 echo $n_failed_writers
all_there() {
	local w
	for w in $(seq "$n_writers"); do
		[ "$("$INCRCTL" cat "own$w" "own$w")" = "$w 10" ] || return
		[ "$("$INCRCTL" log "own$w" | grep -c '^t[0-9]')" = 10 ] || return
	done
}
t "each has its ten commits" all_there

done_testing
