#!/bin/bash
# The sum of all tests, on which the last line of `make check` depends.
. "$(dirname "$0")/lib.sh"

sum=$SRCDIR/tests/sum-results

# result NAME PASS|FAIL|SKIP [LINE]...: what a test leaves behind.
result() {
	echo ":test-result: $2" >"$1.trs"
	printf '%s\n' "${@:3}" >"$1.log"
}

result good PASS "ok x" "3 passed, 0 failed"
result partly PASS "2 passed, 0 failed, 1 skipped" "PASS partly (exit status: 0)"
result bad FAIL "1 passed, 2 failed"
result crashed FAIL "ok x"
result elsewhere SKIP "skipped: no /dev/fuse"
result leaky FAIL "4 passed, 0 failed" "a leak found after the count"
result chatty PASS "9 passed, 9 failed" "1 passed, 0 failed"

t_out "counts are added" "5 passed, 0 failed, 1 skipped" "$sum" good.log partly.log
t_exit 1 "a failure fails" "$sum" good.log bad.log
t_grep "failures are added" "^4 passed, 2 failed$" "$sum" good.log bad.log
t_grep "a test without a count is one failure" "^3 passed, 1 failed$" \
	"$sum" good.log crashed.log
t_grep "a test that never ran is one failure" "^3 passed, 1 failed$" \
	"$sum" good.log missing.log
t_out "a test that cannot run here is one skipped" "3 passed, 0 failed, 1 skipped" \
	"$sum" good.log elsewhere.log
t_grep "a failure after the count is one failure" "^4 passed, 1 failed$" "$sum" leaky.log
t_out "the last count of a log is its count" "1 passed, 0 failed" "$sum" chatty.log
t_out "nothing sums to nothing" "0 passed, 0 failed" "$sum"
done_testing
