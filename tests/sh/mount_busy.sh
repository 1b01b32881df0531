#!/bin/bash
# Unmounting while programs use the mount, also programs that hang.
. "$(dirname "$0")/lib.sh"

can_mount || skip_all "no FUSE here"

mnt=$TMP/mnt
mkdir "$mnt"
fresh_store
"$INCRCTL" dataset create in out
echo a >a && "$INCRCTL" commit in a -q
io=(-i in=in -o out=out)

# is_held PID PATH: the process has its directory there.
is_held() {
	[ "$(readlink "/proc/$1/cwd")" = "$2" ]
}
# hold PATH: a process with its directory there; sets pid.
hold() {
	(cd "$1" && exec sleep 600) &
	pid=$!
	kill_later $pid
	wait_until 10 is_held $pid "$1"
}
is_gone() {
	! mountpoint -q "$mnt"
}

"$INCRCTL" mount "$mnt" t "${io[@]}" -q
hold "$mnt/in"
first=$pid
hold "$mnt/in"
second=$pid
tail -f "$mnt/in/added/a" >/dev/null &
third=$!
kill_later $third
wait_until 10 sh -c "ls -l /proc/$third/fd | grep -q /mnt/in/added/a"
kill -STOP "$second"
t_exit 7 "unmount while programs use it, one of them stopped" "$INCRCTL" unmount "$mnt"
cp "$top/err" busy.txt
for who in "$first (sleep) uses $mnt/in" "$second (sleep) uses $mnt/in" "$third (tail) uses $mnt/in/added/a"; do
	t_out "it names: ${who#* }" 1 sh -c "grep -oF '$who' busy.txt | wc -l"
done
t_out "and tells nothing twice" 2 sh -c "wc -l <busy.txt"
t "and offers --lazy" grep -q "hint: .*--lazy" busy.txt
kill "$first" "$third"
t_exit 7 "the stopped one alone" "$INCRCTL" unmount "$mnt"
echo staged >"$mnt/out/staging/staged"
t_grep "--lazy detaches at once" "ends when the last user has left" "$INCRCTL" unmount "$mnt" --lazy
t "it is gone" is_gone
t_exit 3 "nothing is committed yet" "$INCRCTL" ls out staged
kill -KILL "$second"
t "it is when the last user has left" wait_until 10 "$INCRCTL" ls out staged

# Users that end meanwhile
"$INCRCTL" mount "$mnt" t "${io[@]}" -q
hold "$mnt/in"
(sleep 0.3 && kill $pid) &
t_exit 0 "a program that ends soon is waited for" "$INCRCTL" unmount "$mnt"
n_busy=0
for _ in $(seq 100); do
	"$INCRCTL" mount "$mnt" t "${io[@]}" -q
	ls -R "$mnt" >/dev/null
	sort "$mnt/in/current/a" >/dev/null
	"$INCRCTL" unmount "$mnt" --abort -q 2>>busy.log || n_busy=$((n_busy + 1))
done
t "nobody is busy when all have ended: $n_busy of 100 ($(tail -n 3 busy.log))" [ $n_busy = 0 ]

# The mount process hangs: what asked it keeps nothing of the caller
"$INCRCTL" mount "$mnt" t "${io[@]}" --foreground >mount.log 2>&1 &
server=$!
kill_later $server
wait_until 10 mountpoint -q "$mnt"
kill -STOP $server
mkfifo pipe
cat pipe >out.txt &
reader=$!
kill_later $reader
"$INCRCTL" unmount "$mnt" >pipe 2>&1 &
pid=$!
kill_later $pid
t "a mount that hangs is unmounted" wait_until 30 is_gone
kill -KILL $pid
t "who reads the output of unmount comes to its end" wait_until 10 sh -c "! kill -0 $reader 2>/dev/null"
kill -CONT $server
t "it ends when it goes on" wait_until 10 sh -c "! kill -0 $server 2>/dev/null"

done_testing
