#!/bin/bash
# Random single bits of a store's files are flipped, one at a time: verify says
# so, or everything still reads as it did; and a mount gives right bytes or an
# I/O error, never wrong bytes, and says in its log what is damaged.
#
# FLIPS=1000 for the long form; FLIPS_SEED repeats one.
# shellcheck disable=SC2016  # expanded by the inner shell
. "$(dirname "$0")/lib.sh"

can_mount || skip_all "no FUSE here"
command -v python3 >/dev/null || skip_all "python3 is not installed"

n_flips=${FLIPS:-12}
seed=${FLIPS_SEED:-$RANDOM$RANDOM}
mnt=$TMP/mnt
mkdir "$mnt" tree more
for i in $(seq 60); do
	seq "$i" $((i * 7)) >"tree/f$i"
done
head -c 300000 /dev/urandom >tree/large
echo small >more/small
echo other >more/other

fresh_store
"$INCRCTL" dataset create in >/dev/null
"$INCRCTL" commit in more/small -q
"$INCRCTL" commit in tree --type update -q
"$INCRCTL" commit in more/other --type update -q
cp more/* tree/
cp -a "$INCR_STORE" "$top/whole"

# flip_bit WHOLE STORE SEED N: the N-th draw: sets file and bit in the store.
cat >flip.py <<'EOF'
import os, random, sys
whole, store, seed, n = sys.argv[1:3] + [int(x) for x in sys.argv[3:5]]
names = sorted(os.path.join(d, f)[len(whole) + 1:]
               for d, _, files in os.walk(whole) for f in files)
sizes = [os.path.getsize(os.path.join(whole, f)) for f in names]
# each kind of file gets its share, however small
draw = random.Random(seed * 1000003 + n)
name = draw.choices(names, [s ** 0.5 for s in sizes])[0]
size = os.path.getsize(os.path.join(whole, name))
if not size:
    sys.exit(0)
bit = draw.randrange(8 * size)
path = os.path.join(store, name)
os.chmod(path, 0o644)
with open(path, "r+b") as f:
    f.seek(bit // 8)
    byte = f.read(1)[0] ^ 1 << bit % 8
    f.seek(bit // 8)
    f.write(bytes([byte]))
print(name, bit // 8, bit % 8)
EOF

# Compare all files below a directory with the tree: right, refused or wrong.
cat >compare.py <<'EOF'
import errno, os, sys
want, got = sys.argv[1:3]
right, refused, wrong = 0, [], []
names = set(os.listdir(want))
try:
    extra = set(os.listdir(got)) - names
except OSError as e:
    print(0, "refused all" if e.errno == errno.EIO else "wrong %s" % e)
    sys.exit(0)
wrong.extend(extra)
for name in sorted(names):
    try:
        with open(os.path.join(got, name), "rb") as f:
            data = f.read()
    except OSError as e:
        (refused if e.errno == errno.EIO else wrong).append(name)
        continue
    with open(os.path.join(want, name), "rb") as f:
        if f.read() == data:
            right += 1
        else:
            wrong.append(name)
print(right, "refused", *refused)
if wrong:
    print("WRONG", *wrong)
EOF

# In place: in a copy of the lock file nothing proves that the last record of
# the log had been on disk.
restore() {
	find "$INCR_STORE" -type f | while read -r file; do
		[ -e "$top/whole/${file#"$INCR_STORE"/}" ] || rm -f "$file"
	done
	chmod -R u+w "$INCR_STORE"
	cp -a "$top/whole/." "$INCR_STORE"
}

# Read everything through a mount; leaves what came of it in `compared`.
read_mounted() {
	"$INCRCTL" mount "$mnt" --foreground >mount.log 2>&1 &
	mount_pid=$!
	kill_later $mount_pid
	if ! wait_until 20 sh -c "[ -d '$mnt/in/current' ] || ! kill -0 $mount_pid 2>/dev/null" ||
		! kill -0 $mount_pid 2>/dev/null; then
		wait $mount_pid
		echo "0 refused all" >compared
		return
	fi
	python3 -S compare.py tree "$mnt/in/current" >compared
	"$INCRCTL" unmount "$mnt" >/dev/null 2>&1
	wait $mount_pid
}

n_detected=0 n_harmless=0 n_bad=0 n_refused=0 n_unnamed=0
for n in $(seq "$n_flips"); do
	where=$(python3 -S flip.py "$top/whole" "$INCR_STORE" "$seed" "$n")
	"$INCRCTL" verify --data >verified 2>&1
	status=$?
	read_mounted
	if grep -q WRONG compared; then
		fail "wrong bytes: FLIPS_SEED=$seed flip $n: $where" "$(cat compared)"
		n_bad=$((n_bad + 1))
	elif [ $status != 0 ]; then
		n_detected=$((n_detected + 1))
	elif [ "$(cut -d' ' -f1 compared)" = "$(find tree -type f | wc -l)" ]; then
		n_harmless=$((n_harmless + 1))
	else
		fail "not detected: FLIPS_SEED=$seed flip $n: $where" \
			"$(cat verified compared)"
		n_bad=$((n_bad + 1))
	fi
	case $where$(cat compared) in
	packs/*"refused "[fol]*)
		n_refused=$((n_refused + 1))
		pack=${where%% *}
		sed -n 's/.*refused //p' compared | tr ' ' '\n' >names
		while read -r name; do
			grep -qE ": $name of t[0-9]+: $pack at byte [0-9]+" mount.log ||
				n_unnamed=$((n_unnamed + 1))
		done <names
		;;
	esac
	restore
done
echo "$n_flips flips: $n_detected detected, $n_harmless harmless; $n_refused refused in the mount"
t_out "all flips are detected or harmless" "$n_flips" \
	echo $((n_detected + n_harmless))
t_out "no wrong bytes, nothing undetected" 0 echo $n_bad
t_out "the mount's log names file, pack and offset of what it refuses" 0 echo $n_unnamed
done_testing
