"""Runs programs of tests in processes of their own."""

import subprocess
import sys


def run(program, seconds=60, under=()):
    """Runs a Python program, under a command such as a checker; returns its output."""
    done = subprocess.run(
        [*under, sys.executable, "-c", program], capture_output=True, text=True, timeout=seconds
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
