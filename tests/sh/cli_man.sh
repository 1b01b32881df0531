#!/bin/bash
# Every verb has a manual page that names all of its options.
# shellcheck disable=SC2016  # expanded by the inner shell
. "$(dirname "$0")/lib.sh"

man=$SRCDIR/docs/man

# The options that a usage text lists before those of every verb.
options_of() {
	"$INCRCTL" "$@" --help | sed '/^Options of every verb/,$d' |
		grep -oE '^  (-[a-zA-Z],|   ) --[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+'
}

# Fails with the options that the page of $1 does not name.
names_all() {
	local verb=$1 option missing=0
	shift
	for option in $(options_of "$verb" "$@"); do
		grep -qE -- "Fl -${option#--}( |$)" "$man/incrctl-$verb.1" || {
			echo "$option is not in incrctl-$verb.1"
			missing=1
		}
	done
	return "$missing"
}

verbs=$("$INCRCTL" --help | sed '1,/^$/d; /^Options/,$d' | sed -nE 's/^  ([a-z]+) .*/\1/p')
t "there are verbs" [ -n "$verbs" ]
for verb in $verbs; do
	t "incrctl.1 names $verb" grep -q "incrctl-$verb 1" "$man/incrctl.1"
	subs=$("$INCRCTL" "$verb" --help | sed -nE "s/^  $verb ([a-z]+) .*/\\1/p")
	for sub in ${subs:-""}; do
		# shellcheck disable=SC2086  # none or one
		t "incrctl-$verb.1 names the options of $verb $sub" names_all "$verb" $sub
		[ -z "$sub" ] || t "incrctl-$verb.1 names $verb $sub" \
			grep -qE "Cm ($verb )?$sub( |$)" "$man/incrctl-$verb.1"
	done
done

if command -v mandoc >/dev/null; then
	for page in "$man"/*.1; do
		t_out "${page##*/} is well-formed" "" mandoc -Tlint -W warning "$page"
	done
else
	skip "pages are well-formed" "no mandoc"
fi

done_testing
