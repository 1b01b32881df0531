# shellcheck shell=bash
# The data of the benchmarks, each made when it is first needed and kept until
# drop_data. BENCH_SCALE=small makes everything a tenth or less.
#
# Read by run-bench; variables are of lib.sh and data.sh, and `$1` in single
# quotes is of an inner shell.
# shellcheck disable=SC2016,SC2034,SC2154

case $scale in
full)
	n_small=100000 n_medium=10000 n_staged=20000 n_loop=10000
	n_grown=1000 n_transactions=100000 n_snapshots=1000000
	big=$((1 << 30)) huge=$((4 << 30)) n_random=20000
	;;
small)
	n_small=10000 n_medium=1000 n_staged=2000 n_loop=500
	n_grown=50 n_transactions=2000 n_snapshots=20000
	big=$((64 << 20)) huge=$((128 << 20)) n_random=2000
	;;
*)
	die "BENCH_SCALE is full or small"
	;;
esac

# A number of bytes for the name of a row.
human() {
	if [ $(($1 >> 30)) -gt 0 ]; then
		echo "$(($1 >> 30)) GiB"
	else
		echo "$(($1 >> 20)) MiB"
	fi
}

# make_once NAME MAKER ARGUMENT...: $data/NAME, by make_data MAKER.
make_once() {
	local name=$1 maker=$2
	shift 2
	[ ! -e "$data/$name" ] || return 0
	"$BENCH_BIN/make_data" "$maker" "$data/$name" "$@" ||
		die "cannot make $name"
}

need_small() { make_once small tree 100 "$n_small" 4096; }
need_medium() { make_once medium tree 100 "$n_medium" 65536; }
need_staged() { make_once staged tree 20 "$n_staged" 4096; }
need_text() { make_once text file "$big" text; }
need_random() { make_once random file "$big" random; }
need_half() { make_once half file "$huge" half; }
need_huge_random() { make_once huge file "$huge" random; }
need_csv() { make_once csv csv "$big"; }
need_thousand() { make_once thousand small 1000; }
need_hundred() { make_once hundred small 100; }

# Files that people wrote: the first of these folders that has enough.
# Sets $real.
need_real() {
	local from
	real=${BENCH_TREE:-$data/real}
	if [ -n "${BENCH_TREE:-}" ]; then
		note "real tree: $real, $(find "$real" -type f | wc -l) files," \
			"$(mib_of "$real") MiB"
		return
	fi
	[ ! -e "$data/real" ] || return 0
	for from in /usr/include /usr/share/doc /usr/lib/python3 /usr/share; do
		[ "$(find "$from" -type f 2>/dev/null | head -n 3000 | wc -l)" = 3000 ] &&
			break
	done
	mkdir "$data/real"
	(cd "$from" && find . -type f -print0 | sort -z |
		tar -cf - --null --no-recursion -T -) | tar -xf - -C "$data/real"
	note "real tree: $from, $(find "$data/real" -type f | wc -l) files," \
		"$(mib_of "$data/real") MiB"
}

drop_data() {
	local name
	for name; do
		rm -rf "${data:?}/$name"
	done
}
