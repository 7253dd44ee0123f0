import argparse
import importlib
import sys
from pathlib import Path

from testing import command
from testing.command import RESULTS, ROOT

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))

# The benchmarks, each the GROUP of the module of that name; of "run" it is cpu.py.
BENCHMARKS = {
    "run": "tsvd and its peers on the CPU, interleaved (the default)",
    "vectors": "divide and conquer on the GPU, against peers and targets",
    "values": "up to a million singular values without vectors on the GPU",
    "select": "the largest values with vectors, against all values, on the GPU",
    "batch": "many small matrices on the GPU",
    "transfers": "results on the way to the host, and arrays that stay on the GPU",
    "twisted": "vectors by twisted factorisations on the GPU, beside divide and conquer",
    "dense": "the SVD of dense matrices, beside NumPy or cuSOLVER",
    "small": "small dense matrices, one by one and in batches, beside NumPy or PyTorch",
    "stages": "large dense matrices on the GPU, in two stages, and the seconds of each",
    "jacobi": "one-sided Jacobi of dense matrices, beside LAPACK or cuSOLVER",
    "inverse": "inverses of dense matrices, beside NumPy or PyTorch",
    "solutions": "pseudo-inverses, least squares and ranks, beside the values and the peers",
    "pytorch": "torch.linalg.svd with tsvd.torch.enable() and without, and steps of training",
    "sharded": "batches that are sharded over two GPUs, in JAX",
    "several": "one call on all GPUs of the host, beside one of them",
    "dask": "tall matrices of Dask, beside dask.array.linalg (with --threads 1)",
    "krylov": "the largest values of sparse and dense matrices, beside ARPACK and PROPACK",
    "complex": "the SVD and the inverse of complex matrices, beside real ones and the peers",
    "eps": "the time that a looser eps saves",
    "extra": "bidiagonal matrices with a column more than rows, beside square ones",
    "sweep": "cliffs, by times over sizes in steps of 1.2; with --group cube the values of large "
    "dense matrices",
    "crossover": "the orders from which on one method or device is faster than another",
    "gpu": "the pipeline of Givens rotations on the GPU against its time limits",
}


def main():
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Times tsvd beside the installed peers."
    )
    parser.add_argument(
        "command",
        nargs="?",
        choices=[*BENCHMARKS, "tables", "pictures"],
        default="run",
        help="".join(f"{name}: {what}; " for name, what in BENCHMARKS.items())
        + "tables: write the tables of README.md and docs from the result files; "
        "pictures: draw those of README.md from them (needs matplotlib). "
        "On the GPU all runs but crossover need PyTorch or CuPy",
    )
    of_device = (
        "where dense, jacobi, inverse, solutions, pytorch, complex, eps, extra, sweep and "
        "crossover compute"
    )
    command.add_options(parser, "benchmarks/results", device=of_device)
    parser.add_argument("--repeats", type=int, default=5, help="timings of each contender")
    parser.add_argument("--group", help="run this group of cases only (run); or type (sweep)")
    parser.add_argument(
        "--large", action="store_true", help="also the cases that take over a minute (run)"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        help="a part is left out if it would begin later, or probably end later "
        "(vectors: 150, values: 60, batch: 40, for the peers dense: 240, complex: 200, "
        "stages: 150 and jacobi: 60, "
        "sweep: 420, on cuda 270, its cube: 330)",
    )
    parser.add_argument_group("vectors").add_argument(
        "--largest",
        type=int,
        default=32768,
        help="largest order n; it takes 16 n^2 bytes of host memory",
    )
    parser.add_argument_group("gpu").add_argument(
        "--tests", type=Path, help="output of pytest, from which the counts of tests are read"
    )
    options = parser.parse_args()

    command.set_threads(options.threads)
    if options.command == "tables":
        from benchmarks import tables

        tables.write(PAGES, RESULTS)
        return 0
    if options.command == "pictures":
        from benchmarks import pictures

        pictures.write(RESULTS, ROOT / pictures.FOLDER)
        return 0
    from benchmarks import group

    name = {"run": "cpu"}.get(options.command, options.command)
    if (name, options.group) == ("sweep", "cube"):
        name = "cube"
    return group.run(importlib.import_module(f"benchmarks.{name}").GROUP, options, RESULTS)


if __name__ == "__main__":
    sys.exit(main())
