"""Runs programs of tests in processes of their own."""

import os
import signal
import subprocess
import sys


def run(program, seconds=60, under=()):
    """Runs a Python program, under a command such as a checker; returns its output.

    If it takes too long, the program itself is stopped too, not only the command. Its BLAS has the
    threads that a user's has: `make test` gives one to that of each process of pytest.
    """
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_NUM_THREADS"}
    with subprocess.Popen(
        [*under, sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=environment,
    ) as process:
        try:
            output, errors = process.communicate(timeout=seconds)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    assert process.returncode == 0, output + errors
    return output
