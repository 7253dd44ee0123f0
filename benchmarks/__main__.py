import argparse
import os
import sys
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build"  # of what is worth nothing on another machine
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
        "stress: random draws, small or dense matrices, or a search for the worst, each checked in "
        "every measure; "
        "checksums: checksums of many results, to compare installations; "
        "against: times beside those of another installation, interleaved; "
        "published: repeats the published tables of Givens rotations, dense matrices, Jacobi and "
        "inverses; "
        "gpu: the pipeline of Givens rotations on the GPU against its time limits; "
        "tables: write the tables of README.md and docs from the result files. "
        "On the GPU all runs but stress, crossover, checksums and against need PyTorch or CuPy",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        help="result file (default: in benchmarks/results; in build: stress, checksums, against)",
    )
    parser.add_argument(
        "--threads",
        type=int,
        help="threads of all contenders, processes of stress (default: all cores)",
    )
    parser.add_argument("--repeats", type=int, default=5, help="timings of each contender")
    parser.add_argument(
        "--group",
        help="run this group of cases only; of checksums and against how the names of the cases "
        "begin, such as qr/33",
    )
    parser.add_argument(
        "--large", action="store_true", help="also the cases that take over a minute"
    )
    parser.add_argument(
        "--device",
        choices=["cpu", "cuda"],
        default="cpu",
        help="where dense, jacobi, inverse, eps, sweep, crossover, stress, checksums, against "
        "and published compute (cpu)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        help="a part is left out if it would begin later, or probably end later "
        "(vectors: 150, values: 60, batch: 40, for the peers dense: 240 and jacobi: 60, "
        "published: 220, sweep: 420, on cuda 270, its cube: 330, "
        "against: 190 or 145, stress: 3600)",
    )
    parser.add_argument_group("vectors").add_argument(
        "--largest",
        type=int,
        default=32768,
        help="largest order n; it takes 16 n^2 bytes of host memory",
    )
    of_stress = parser.add_argument_group("stress")
    of_stress.add_argument("--draws", type=int, default=5000, help="how many (5000)")
    of_stress.add_argument("--seed", type=int, default=0, help="random seed of the draws (0)")
    of_stress.add_argument("--index", type=int, help="make only this piece, and print it")
    of_stress.add_argument(
        "--small",
        type=int,
        metavar="MATRICES",
        help="instead of drawing, check so many matrices of order 0 to 12, by all methods",
    )
    of_stress.add_argument(
        "--dense",
        type=int,
        metavar="DRAWS",
        help="instead of these, draw so many dense matrices, for tsvd.linalg",
    )
    of_stress.add_argument(
        "--inverse",
        type=int,
        metavar="DRAWS",
        help="instead of these, draw so many square matrices, for tsvd.linalg.inv",
    )
    of_stress.add_argument(
        "--evolve",
        type=int,
        metavar="EVALUATIONS",
        help="instead of drawing, climb towards the bounds by changing matrices; in so many "
        "evaluations",
    )
    of_stress.add_argument(
        "--target",
        choices=("bidiagonal", "dense", "jacobi", "inverse"),
        default="bidiagonal",
        help="what --evolve searches: bidiagonal matrices (the default), dense ones, dense ones by "
        "jacobi for the relative errors of tiny values, or inverses",
    )
    of_stress.add_argument(
        "--method",
        help='method of tsvd.svd, or "any" for a mixture (any)',
    )
    parser.add_argument_group("checksums").add_argument(
        "--compare",
        nargs=2,
        type=Path,
        metavar=("OLD", "NEW"),
        help="compute nothing, list where two result files differ; the exit status is 1 if they do",
    )
    of_against = parser.add_argument_group("against")
    of_against.add_argument(
        "--old",
        type=Path,
        metavar="PLACE",
        help="the other installation: an interpreter, or a folder that holds the package",
    )
    of_against.add_argument(
        "--old-trees",
        nargs=2,
        metavar=("CSRC", "CUDA"),
        help="the git trees of its sources, for the result file",
    )
    of_against.add_argument("--rounds", type=int, default=15, help="of a line, at most (15)")
    parser.add_argument_group("published").add_argument(
        "--matrices", type=int, default=5, help="matrices of an order up to 1000, fewer beyond (5)"
    )
    parser.add_argument_group("gpu").add_argument(
        "--tests", type=Path, help="output of pytest, from which the counts of tests are read"
    )
    arguments = parser.parse_args()

    threads = arguments.threads or len(os.sched_getaffinity(0))
    _set_threads(1 if arguments.command == "stress" else threads)
    return COMMANDS[arguments.command](arguments, threads)


def _set_threads(threads):
    """Thread pools read these variables when they are loaded, so nothing is imported before."""
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(threads)


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


def _stress(arguments, processes):
    # A draw may use several threads, and there are as many processes as cores.
    os.environ["OMP_WAIT_POLICY"] = "passive"
    from benchmarks import dense_draws, evolve, inverse_draws, small, stress

    device, seed, index = arguments.device, arguments.seed, arguments.index
    method, target = arguments.method or "any", arguments.target
    seconds = arguments.seconds or 3600
    if arguments.small is not None:
        if index is not None:
            return small.again(seed, index, device)
        path = arguments.output or BUILD / f"stress_small_{device}.json"
        return small.run(path, processes, device, arguments.small, seed, seconds)
    if arguments.dense is not None:
        if index is not None:
            return dense_draws.again(seed, index, device, method)
        path = arguments.output or BUILD / f"stress_dense_{device}.json"
        return dense_draws.run(path, processes, device, method, arguments.dense, seed, seconds)
    if arguments.inverse is not None:
        if index is not None:
            return inverse_draws.again(seed, index, device)
        path = arguments.output or BUILD / f"stress_inverse_{device}.json"
        return inverse_draws.run(path, processes, device, arguments.inverse, seed, seconds)
    if arguments.evolve is not None:
        if index is not None:
            return evolve.again(seed, index, method, device, target)
        name = "evolve" if target == "bidiagonal" else f"evolve_{target}"
        path = arguments.output or BUILD / f"stress_{name}_{device}.json"
        return evolve.run(path, processes, device, method, arguments.evolve, seed, seconds, target)
    if index is not None:
        return stress.again(seed, index, device, method)
    path = arguments.output or BUILD / f"stress_{device}.json"
    return stress.run(path, processes, device, method, arguments.draws, seed, seconds)


def _checksums(arguments, threads):
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # other work may want the cores
    from benchmarks import checksums

    if arguments.compare:
        return checksums.compare(*arguments.compare, arguments.group)
    path = arguments.output or BUILD / f"checksums_{arguments.device}.json"
    return checksums.run(path, threads, arguments.device, arguments.group)


def _against(arguments, threads):
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # the other side waits for the cores
    from benchmarks import against

    if arguments.old is None:
        sys.exit("against: --old must say where the other installation is")
    return against.run(
        arguments.output or BUILD / f"against_{arguments.device}.json",
        threads,
        arguments.device,
        arguments.old,
        arguments.old_trees,
        arguments.rounds,
        arguments.group,
        arguments.seconds,
    )


def _published(arguments, threads):
    from benchmarks import published

    name = "published.json" if arguments.device == "cpu" else "published_cuda.json"
    path, seconds = arguments.output or RESULTS / name, arguments.seconds or 220
    published.run(path, threads, arguments.device, arguments.matrices, seconds)
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
    "stress": _stress,
    "checksums": _checksums,
    "against": _against,
    "published": _published,
    "gpu": _gpu,
    "tables": _tables,
}


if __name__ == "__main__":
    sys.exit(main())
