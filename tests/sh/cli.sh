# shellcheck shell=bash
# What the tests of the command line share; sourced after lib.sh.

# json EXPRESSION: evaluate a Python expression for each line of JSON of
# standard input, as d, and print it.
json() {
	python3 -c '
import json, sys
for line in sys.stdin:
    print(eval(sys.argv[1], {"d": json.loads(line)}))' "$1"
}

# t_json WHAT EXPECTED EXPRESSION COMMAND...: the command succeeds, and the
# expression gives EXPECTED for what it prints.
t_json() {
	local what=$1 want=$2 expression=$3 got
	shift 3
	if got=$("$@" 2>/dev/null | json "$expression" 2>&1) && [ "$got" = "$want" ]; then
		pass "$what"
	else
		fail "$what" "want $want" "got  $got" "from: $*"
	fi
}

# t_error CODE WORD WHAT COMMAND...: the command exits with CODE, and with
# --json says WORD.
t_error() {
	local code=$1 word=$2 what=$3
	shift 3
	t_exit "$code" "$what" "$@"
	t_grep "$what: says $word" "^\{.*\"code\":\"$word\"" "$1" --json "${@:2}"
}
