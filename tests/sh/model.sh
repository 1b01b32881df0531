#!/bin/bash
# The model of the rulebook: its own check, then random histories done to it
# and to the store alike, through incrctl and through the library.
#
# INCR_MODEL_STEPS, INCR_MODEL_SECONDS and INCR_MODEL_SEED: see drive.py.
. "$(dirname "$0")/lib.sh"

command -v python3 >/dev/null || skip_all "no python3"
model=$SRCDIR/tests/model
: "${INCR_MODEL_SECONDS:=30}"
export INCR_MODEL_SECONDS

t "the model gives what the rulebook says" python3 "$model/test_model.py"

can_mount && export INCR_MODEL_MOUNT=0.1
INCR_MODEL_STEPS=${INCR_MODEL_STEPS:-600}
export INCR_MODEL_STEPS
unset INCR_MODEL_DRIVER
t "incrctl agrees with the model" python3 "$model/drive.py"
cat "$top/out"

INCR_MODEL_DRIVER=${INCR_BUILDDIR-}/tests/model_driver
export INCR_MODEL_DRIVER INCR_MODEL_STEPS=$((INCR_MODEL_STEPS * 10))
if [ -x "$INCR_MODEL_DRIVER" ]; then
	t "the library agrees with the model" python3 "$model/drive.py"
	cat "$top/out"
else
	skip "the library agrees with the model" "no model_driver"
fi

done_testing
