"""What the commands of the benchmarks, the verification and the tools share."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
BUILD = ROOT / "build"  # of what is worth nothing on another machine
CORES = len(os.sched_getaffinity(0))


def add_options(parser, output, threads="threads of all contenders", device="where tsvd computes"):
    """The options of every command. output: where its result file goes by default."""
    parser.add_argument("-o", "--output", type=Path, help=f"result file (default: in {output})")
    parser.add_argument("--threads", type=int, default=CORES, help=f"{threads} (all cores)")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help=f"{device} (cpu)")


def set_threads(threads):
    """Thread pools read these variables when they are loaded, so nothing is imported before."""
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(threads)
