#!/usr/bin/env python3
"""Random histories, done to the model and to the real store alike.

    INCRCTL=.../incrctl drive.py              one process a step
    INCR_MODEL_DRIVER=.../model_driver drive.py       through the library

Environment: INCR_MODEL_SEED (default: drawn, and printed), INCR_MODEL_STEPS
(default 2000), INCR_MODEL_SECONDS (no limit), INCR_MODEL_LENGTH of a history
(60), INCR_MODEL_DIR for the stores, INCR_MODEL_MOUNT: the share of runs that
use the real mount (0).

A failing history is printed as the shortest sequence of commands found that
still fails.  Its seed repeats it: it is then the first history.
"""

import os
import random
import signal
import sys
import tempfile
import time

sys.dont_write_bytecode = True

from backends import Cli, Driver  # noqa: E402
from steps import History, Mismatch, draw  # noqa: E402


def setting(name, default):
    return type(default)(os.environ.get("INCR_MODEL_" + name) or default)


def new_backend():
    top = os.environ.get("INCR_MODEL_DIR") or (
        "/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    directory = tempfile.mkdtemp(prefix="incr-model.", dir=top)
    if os.environ.get("INCR_MODEL_DRIVER"):
        return Driver(directory)
    return Cli(directory, setting("MOUNT", 0.0))


def play(steps):
    """(number of steps done, None), or with the failure as text and the
    script of commands."""
    backend = new_backend()
    done, code = 0, 0
    try:
        history = History(backend, isinstance(backend, Driver))
        for kind, seed in steps:
            done += 1
            history.step(kind, seed)
        history.finish()
    except Mismatch as mismatch:
        return done, str(mismatch), backend.script
    finally:
        code = backend.close()
    if code:
        return done, "the driver ended with status %d" % code, backend.script
    return done, None, None


def shrink(steps, seconds):
    """Leave out what is not needed, the biggest pieces first."""
    end = time.monotonic() + seconds
    size = len(steps) // 2
    while size > 0:
        at = 0
        while at < len(steps) and time.monotonic() < end:
            fewer = steps[:at] + steps[at + size:]
            done, failed, _ = play(fewer)
            if failed:
                steps = fewer[:done]
            else:
                at += size
        size //= 2
    return steps


def report(seed, steps, text):
    print("seed %d fails after %d steps: %s" % (seed, len(steps), text))
    steps = shrink(steps, setting("SHRINK", 120.0))
    _, text, script = play(steps)
    print("shortest: %d steps: %s" % (len(steps), text))
    print("\n".join("    " + line for command in script or []
                    for line in command.splitlines()))
    print("repeat: INCR_MODEL_SEED=%d INCR_MODEL_LENGTH=%d" %
          (seed, setting("LENGTH", 60)), flush=True)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))    # clean up
    seed = setting("SEED", random.SystemRandom().getrandbits(31))
    n_steps, length = setting("STEPS", 2000), setting("LENGTH", 60)
    end = time.monotonic() + setting("SECONDS", 1e9)
    print("INCR_MODEL_SEED=%d" % seed, flush=True)
    todo, passed, failed = n_steps, 0, 0
    started = time.monotonic()
    while todo > 0 and failed < 3 and time.monotonic() < end:
        steps = draw(seed, length)
        done, text, _ = play(steps)
        todo -= done
        if text:
            failed += 1
            report(seed, steps[:done], text)
        else:
            passed += 1
        seed += 1
    print("%d steps in %.1f s" % (n_steps - todo, time.monotonic() - started))
    print("%d passed, %d failed" % (passed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
