import subprocess
import sys
import threading
import time

import pytest

from worker.run import supervised


def test_what_a_job_returns_or_raises_comes_out() -> None:
    assert supervised(lambda: 5, threading.Event(), patience_s=1) == 5
    with pytest.raises(ZeroDivisionError):
        supervised(lambda: 1 // 0, threading.Event(), patience_s=1)


HANGING = """
import threading, sys
from worker.run import stop_on_signals, supervised
stop = stop_on_signals()
print("ready", flush=True)
supervised(threading.Event().wait, stop, patience_s=float(sys.argv[1]))
"""


def hanging(patience_s: float) -> subprocess.Popen[bytes]:
    process = subprocess.Popen((sys.executable, "-c", HANGING, str(patience_s)), stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_a_job_that_hangs_after_the_first_signal_ends_in_an_exit_code() -> None:
    process = hanging(0.5)
    process.terminate()
    assert process.wait(30) == 1


def test_a_second_signal_leaves_at_once() -> None:
    process = hanging(600)
    process.terminate()
    time.sleep(0.5)
    assert process.poll() is None
    process.terminate()
    assert process.wait(30) == 128 + 15
