import argparse
import os
import sys
from pathlib import Path

from testing import command


def main():
    parser = argparse.ArgumentParser(
        prog="python -m tools.compare", description="Compares two installations of tsvd."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    of_checksums = commands.add_parser("checksums", help="checksums of many results")
    of_checksums.set_defaults(run=_checksums)
    of_checksums.add_argument(
        "--compare",
        nargs=2,
        type=Path,
        metavar=("OLD", "NEW"),
        help="compute nothing, list where two result files differ; the exit status is 1 if they do",
    )
    of_against = commands.add_parser(
        "against", help="times beside those of another installation, interleaved"
    )
    of_against.set_defaults(run=_against)
    of_against.add_argument(
        "--old",
        type=Path,
        metavar="PLACE",
        required=True,
        help="the other installation: an interpreter, or a folder that holds the package",
    )
    of_against.add_argument(
        "--old-trees",
        nargs=2,
        metavar=("CSRC", "CUDA"),
        help="the git trees of its sources, for the result file",
    )
    of_against.add_argument("--rounds", type=int, default=15, help="of a line, at most (15)")
    of_against.add_argument(
        "--seconds",
        type=float,
        help="a line is left out if it would begin later (190, on cuda 145)",
    )
    for of_one in (of_checksums, of_against):
        command.add_options(of_one, "build", threads="threads of tsvd")
        of_one.add_argument("--group", help="how the names of the cases begin, such as qr/33")
    arguments = parser.parse_args()
    command.set_threads(arguments.threads)
    # Other work, or the other side, may want the cores.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    return arguments.run(arguments)


def _checksums(arguments):
    from tools.compare import checksums

    if arguments.compare:
        return checksums.compare(*arguments.compare, arguments.group)
    path = arguments.output or command.BUILD / f"checksums_{arguments.device}.json"
    return checksums.run(path, arguments.threads, arguments.device, arguments.group)


def _against(arguments):
    from tools.compare import against

    return against.run(
        arguments.output or command.BUILD / f"against_{arguments.device}.json",
        arguments.threads,
        arguments.device,
        arguments.old,
        arguments.old_trees,
        arguments.rounds,
        arguments.group,
        arguments.seconds,
    )


if __name__ == "__main__":
    sys.exit(main())
