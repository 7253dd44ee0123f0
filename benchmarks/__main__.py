import argparse
import sys
from pathlib import Path

from testing import command
from testing.command import RESULTS, ROOT

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))


def main():
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Times tsvd beside the installed peers."
    )
    parser.add_argument(
        "command",
        nargs="?",
        choices=COMMANDS,
        default="run",
        help="run: tsvd and its peers on the CPU, interleaved (the default); "
        "vectors: divide and conquer on the GPU, against peers and targets; "
        "values: up to a million singular values without vectors on the GPU; "
        "select: the largest values with vectors, against all values, on the GPU; "
        "batch: many small matrices on the GPU; "
        "transfers: results on the way to the host, and arrays that stay on the GPU; "
        "twisted: vectors by twisted factorisations on the GPU, beside divide and conquer; "
        "dense: the SVD of dense matrices, beside NumPy or cuSOLVER; "
        "jacobi: one-sided Jacobi of dense matrices, beside LAPACK or cuSOLVER; "
        "inverse: inverses of dense matrices, beside NumPy or PyTorch; "
        "eps: the time that a looser eps saves; "
        "sweep: cliffs, by times over sizes in steps of 1.2; "
        "crossover: the orders from which on one method or device is faster than another; "
        "gpu: the pipeline of Givens rotations on the GPU against its time limits; "
        "tables: write the tables of README.md and docs from the result files. "
        "On the GPU all runs but crossover need PyTorch or CuPy",
    )
    of_device = "where dense, jacobi, inverse, eps, sweep and crossover compute"
    command.add_options(parser, "benchmarks/results", device=of_device)
    parser.add_argument("--repeats", type=int, default=5, help="timings of each contender")
    parser.add_argument("--group", help="run this group of cases only")
    parser.add_argument(
        "--large", action="store_true", help="also the cases that take over a minute"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        help="a part is left out if it would begin later, or probably end later "
        "(vectors: 150, values: 60, batch: 40, for the peers dense: 240 and jacobi: 60, "
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
    arguments = parser.parse_args()

    command.set_threads(arguments.threads)
    return COMMANDS[arguments.command](arguments, arguments.threads)


def _run(arguments, threads):
    from benchmarks import runner

    path = arguments.output or RESULTS / "cpu.json"
    runner.run(path, threads, arguments.repeats, arguments.group, arguments.large)
    return 0


def _vectors(arguments, threads):
    from benchmarks import vectors

    path = arguments.output or RESULTS / "vectors.json"
    return vectors.run(path, threads, arguments.seconds or 150, arguments.largest)


def _values(arguments, threads):
    from benchmarks import values

    return values.run(arguments.output or RESULTS / "values.json", threads, arguments.seconds or 60)


def _select(arguments, threads):
    from benchmarks import select

    return select.run(arguments.output or RESULTS / "select.json", threads)


def _batch(arguments, threads):
    from benchmarks import batch

    return batch.run(arguments.output or RESULTS / "batch.json", threads, arguments.seconds or 40)


def _transfers(arguments, threads):
    from benchmarks import transfers

    return transfers.run(arguments.output or RESULTS / "transfers.json", threads)


def _twisted(arguments, threads):
    from benchmarks import twisted

    return twisted.run(arguments.output or RESULTS / "twisted.json", threads)


def _dense(arguments, threads):
    from benchmarks import dense

    name = "dense_cpu.json" if arguments.device == "cpu" else "dense.json"
    path, seconds = arguments.output or RESULTS / name, arguments.seconds or 240
    return dense.run(path, threads, arguments.device, arguments.repeats, seconds)


def _jacobi(arguments, threads):
    from benchmarks import jacobi

    name = "jacobi_cpu.json" if arguments.device == "cpu" else "jacobi.json"
    path, seconds = arguments.output or RESULTS / name, arguments.seconds or 60
    return jacobi.run(path, threads, arguments.device, arguments.repeats, seconds)


def _inverse(arguments, threads):
    from benchmarks import inverse

    name = "inverse_cpu.json" if arguments.device == "cpu" else "inverse.json"
    path = arguments.output or RESULTS / name
    return inverse.run(path, threads, arguments.device, arguments.repeats)


def _eps(arguments, threads):
    from benchmarks import eps

    path = arguments.output or RESULTS / f"eps_{arguments.device}.json"
    return eps.run(path, threads, arguments.device)


def _sweep(arguments, threads):
    from benchmarks import cube, sweep

    device, group = arguments.device, arguments.group
    if group == "cube":
        path = arguments.output or RESULTS / f"cube_{device}.json"
        return cube.run(path, threads, device, arguments.seconds or 330)
    path = arguments.output or RESULTS / f"sweep_{device}.json"
    seconds = arguments.seconds or (420 if device == "cpu" else 270)
    return sweep.run(path, threads, device, group, seconds)


def _crossover(arguments, threads):
    from benchmarks import crossover

    path = arguments.output or RESULTS / f"crossover_{arguments.device}.json"
    crossover.run(path, threads, arguments.device, arguments.repeats)
    return 0


def _gpu(arguments, threads):
    from benchmarks import gpu

    return gpu.run(arguments.output or RESULTS / "gpu.json", threads, arguments.tests)


def _tables(arguments, threads):
    from benchmarks import tables

    tables.write(PAGES, RESULTS)
    return 0


COMMANDS = {
    "run": _run,
    "vectors": _vectors,
    "values": _values,
    "select": _select,
    "batch": _batch,
    "transfers": _transfers,
    "twisted": _twisted,
    "dense": _dense,
    "jacobi": _jacobi,
    "inverse": _inverse,
    "eps": _eps,
    "sweep": _sweep,
    "crossover": _crossover,
    "gpu": _gpu,
    "tables": _tables,
}


if __name__ == "__main__":
    sys.exit(main())
