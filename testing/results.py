"""Result files: the measurements, the machine, and the sources that were measured."""

import json
import os
import platform
import subprocess
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import scipy

import tsvd

ROOT = Path(__file__).parents[1]

LISTS = list, tuple  # what JSON has as a list


def load():
    """The load of the machine. Prints a warning if there is any, as it spoils timings."""
    busy = os.getloadavg()[0]
    if busy > 0.5:
        print(f"warning: other work is running (load {busy:.1f}); do not publish these timings\n")
    return busy


def write(path, threads, load, **measured):
    """Writes the JSON file `path`: machine, versions, sources, and `measured`.

    load: the result of load() before the measurements.
    """
    content = {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
        "sources": _sources(),
        "threads": threads,
        "load": load,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text(content | measured) + "\n")
    print(f"\nwritten: {path}")


def text(content, indent=""):
    """JSON, in which an element of a list of records takes one line, and so does any other list."""
    deeper = indent + " "
    if isinstance(content, dict) and content:
        lines = [f"{json.dumps(str(key))}: {text(x, deeper)}" for key, x in content.items()]
        begin, end = "{}"
    elif isinstance(content, LISTS) and any(isinstance(x, (dict, *LISTS)) for x in content):
        lines = map(json.dumps, content)
        begin, end = "[]"
    else:
        return json.dumps(content)
    return begin + ",".join(f"\n{deeper}{line}" for line in lines) + f"\n{indent}{end}"


def machine():
    models = [
        line.split(":")[1].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return {
        "cpu": models[0] if models else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "gpus": [device.name for device in tsvd.devices() if device.device != "cpu"],
        "driver": _output(
            "nvidia-smi", "--id=0", "--query-gpu=driver_version", "--format=csv,noheader"
        ),
    }


def versions():
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numpy_blas": _blas(np),
        "scipy": scipy.__version__,
        "scipy_blas": _blas(scipy),
        "tsvd": tsvd.__version__,
        "tsvd_config": tsvd.show_config(mode="dicts"),
    }


def _blas(package):
    blas = package.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{blas['name']} {blas['version']}"


def _sources():
    """The git trees of the sources, and whether the files differ from them.

    Outside a git repository two environment variables name the trees.
    """
    named = {folder: os.environ.get(f"TSVD_{folder.upper()}_TREE") for folder in ("csrc", "cuda")}
    if all(named.values()):
        return named | {"dirty": False}
    changes = _output("git", "status", "--porcelain", "--", *named)
    return {folder: _tree(folder) for folder in named} | {"dirty": bool(changes)}


def _tree(folder):
    return _output("git", "rev-parse", "--verify", "--quiet", f"HEAD:{folder}")


def _output(*command):
    """The output of the command; "" if there is no such command, or it fails."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
