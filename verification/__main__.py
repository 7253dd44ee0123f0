import argparse
import os
import sys

from testing import command


def main():
    parser = argparse.ArgumentParser(
        prog="python -m verification",
        description="Random draws and searches for the worst, each checked in every measure.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, (run, count, what) in COMMANDS.items():
        of_name = commands.add_parser(name, help=what, description=what)
        of_name.set_defaults(run=run)
        of_name.add_argument(
            "count", nargs="?", type=int, default=5000, metavar=count, help="how many (5000)"
        )
        command.add_options(of_name, "build", threads="processes")
        of_name.add_argument(
            "--seconds", type=float, default=3600, help="nothing begins later (3600)"
        )
        of_name.add_argument("--seed", type=int, default=0, help="random seed (0)")
        of_name.add_argument("--index", type=int, help="make only this piece, and print it")
        if name in ("draws", "dense", "evolve"):
            of_name.add_argument(
                "--method", default="any", help='method of tsvd, or "any" for a mixture (any)'
            )
        if name == "draws":
            of_name.add_argument(
                "--extra",
                action="store_true",
                help="matrices with a column more than rows, or a row more than columns, always",
            )
        if name in ("dense", "inverse", "evolve"):
            of_name.add_argument(
                "--numbers",
                choices=("any", "real", "complex"),
                default="any",
                help="of dense matrices: real or complex ones, or both in turn (any)",
            )
        if name == "dense":
            of_name.add_argument(
                "--stages",
                type=int,
                choices=(1, 2),
                help="of dense matrices: stages of the reduction, always; draws then have orders "
                "from 130 to 1500 (chosen by the order, which is 200 at most)",
            )
        if name == "evolve":
            of_name.add_argument(
                "--target",
                choices=("bidiagonal", "dense", "stages", "jacobi", "inverse"),
                default="bidiagonal",
                help="what it searches: bidiagonal matrices (the default), dense ones, dense ones "
                "that are reduced in two stages, dense ones by jacobi for the relative errors of "
                "tiny values, or inverses",
            )
    what = "LAPACK and tsvd on the matrices on which LAPACK fails; or a new search for them"
    of_hard = commands.add_parser("hard", help=what, description=what)
    of_hard.set_defaults(run=_hard, threads=command.CORES)
    of_hard.add_argument("what", nargs="?", choices=["show", "search"], default="show")
    of_hard.add_argument("--draws", type=int, default=4000, help="of each family and type (4000)")
    arguments = parser.parse_args()

    if arguments.command != "hard":
        # There are as many processes as cores, and a draw may use several threads.
        command.set_threads(1)
        os.environ["OMP_WAIT_POLICY"] = "passive"
    return arguments.run(arguments)


def _place(arguments, name):
    return arguments.output or command.BUILD / f"{name}_{arguments.device}.json"


def _draws(arguments):
    from verification import stress

    share = 1.0 if arguments.extra else stress.EXTRA_SHARE
    drawn = stress.Draws(arguments.seed, arguments.device, arguments.method, share)
    if arguments.index is not None:
        return stress.again(drawn, arguments.index)
    path = _place(arguments, "stress_extra" if arguments.extra else "stress")
    return stress.run(path, arguments.threads, drawn, arguments.count, arguments.seconds)


def _small(arguments):
    from verification import small

    return _blocks(small, "stress_small", arguments)


def _lanes(arguments):
    from verification import small_dense

    return _blocks(small_dense, "stress_lanes", arguments)


def _blocks(of, name, arguments):
    """Of a module whose pieces are blocks of matrices on any device."""
    device, seed = arguments.device, arguments.seed
    if arguments.index is not None:
        return of.again(seed, arguments.index, device)
    path, processes = _place(arguments, name), arguments.threads
    return of.run(path, processes, device, arguments.count, seed, arguments.seconds)


def _tiny(arguments):
    from verification import tiny

    if arguments.device != "cuda":
        raise SystemExit("tiny checks matrices on the GPU: add --device cuda")
    return _blocks(tiny, "stress_tiny", arguments)


def _dense(arguments):
    from verification import dense_draws

    device, method, seed = arguments.device, arguments.method, arguments.seed
    numbers, stages = arguments.numbers, arguments.stages
    if arguments.index is not None:
        return dense_draws.again(seed, arguments.index, device, method, numbers, stages)
    name = "stress_dense" if stages is None else f"stress_stages_{stages}"
    path, processes = _place(arguments, name), arguments.threads
    return dense_draws.run(
        path, processes, device, method, numbers, stages, arguments.count, seed, arguments.seconds
    )


def _inverse(arguments):
    from verification import inverse_draws

    device, numbers, seed = arguments.device, arguments.numbers, arguments.seed
    if arguments.index is not None:
        return inverse_draws.again(seed, arguments.index, device, numbers)
    path, processes = _place(arguments, "stress_inverse"), arguments.threads
    return inverse_draws.run(
        path, processes, device, numbers, arguments.count, seed, arguments.seconds
    )


def _krylov(arguments):
    from verification import krylov_draws

    if arguments.device != "cpu":
        raise SystemExit("krylov makes sparse matrices and operators, which the CPU computes")
    return _blocks(krylov_draws, "stress_krylov", arguments)


def _evolve(arguments):
    from verification import evolve

    device, method, seed = arguments.device, arguments.method, arguments.seed
    target, numbers = arguments.target, arguments.numbers
    if target == "bidiagonal":
        if numbers == "complex":
            raise SystemExit("bidiagonal matrices are real: choose another --target")
        numbers = "real"
    if arguments.index is not None:
        return evolve.again(seed, arguments.index, method, device, target, numbers)
    name = "stress_evolve" if target == "bidiagonal" else f"stress_evolve_{target}"
    path, processes = _place(arguments, name), arguments.threads
    return evolve.run(
        path,
        processes,
        device,
        method,
        arguments.count,
        seed,
        arguments.seconds,
        target,
        numbers,
    )


def _hard(arguments):
    from verification import hard

    if arguments.what == "search":
        hard.search(arguments.draws)
    hard.show()
    return 0


COMMANDS = {  # what runs it, what is counted, and what it does
    "draws": (_draws, "DRAWS", "random draws over all families, sizes, types, methods and options"),
    "small": (_small, "MATRICES", "matrices of order 0 to 12, by all methods"),
    "lanes": (_lanes, "MATRICES", "dense matrices of order 1 to 16, in batches of mixed kinds"),
    "tiny": (_tiny, "MATRICES", "dense matrices of order 2 to 8 on the GPU, checked there"),
    "dense": (_dense, "DRAWS", "dense matrices at random, for tsvd.linalg"),
    "inverse": (_inverse, "DRAWS", "square matrices at random, for tsvd.linalg.inv"),
    "krylov": (
        _krylov,
        "DRAWS",
        "the largest values of sparse matrices and operators, with copies",
    ),
    "evolve": (
        *(_evolve, "EVALUATIONS"),
        "climbs towards the bounds by changing matrices, in so many evaluations",
    ),
}


if __name__ == "__main__":
    sys.exit(main())
