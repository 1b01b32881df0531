#!/bin/bash
# README.md is true: its tour runs as it is written and prints what it says,
# and its links lead somewhere.
. "$(dirname "$0")/lib.sh"

can_mount || skip_all "no FUSE mounts here"

readme=$SRCDIR/README.md

# The lines of the fenced blocks whose info string is $1.
blocks() {
	awk -v start="\`\`\`$1" '
		$0 == "```" { inside = 0 }
		inside { print }
		$0 == start { inside = 1 }' "$readme"
}

# The tour begins in a tree that is built. Nothing outside it may help.
mkdir -p tree/build/tools
cp -r "$SRCDIR/examples" tree/
chmod -R u+w tree
ln -s "$INCRCTL" tree/build/tools/incrctl
blocks "sh tour" >tour
blocks "text tour" >promised

t "there is a tour" [ "$(wc -l <tour)" -ge 15 ]
for verb in init 'dataset create' commit mount unmount plan run log ls; do
	t "it has $verb" grep -q "incrctl $verb" tour
done
t "it runs as it is written" sh -c 'cd tree && bash -eu -o pipefail ../tour >../printed 2>&1 </dev/null || { cat ../printed; exit 1; }'
while IFS= read -r line; do
	t "it prints: $line" grep -qxF -e "$line" printed
done <promised
t_out "it leaves nothing behind" "$(printf 'build\nexamples')" ls -A tree

while read -r path; do
	t "there is $path, which it names" [ -e "$SRCDIR/$path" ]
done < <(grep -oE '\]\([^)#]+|^    \./[a-z]+' "$readme" | sed 's/^](//; s/^ *//' | sort -u)

done_testing
