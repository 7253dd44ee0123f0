import argparse
import sys

from testing import command


def main():
    parser = argparse.ArgumentParser(
        prog="python -m tools.published",
        description="Repeats the published tables of Givens rotations, dense matrices, Jacobi and "
        "inverses.",
    )
    command.add_options(parser, "benchmarks/results")
    parser.add_argument(
        "--seconds",
        type=float,
        default=220,
        help="a part is left out if it would begin later (220)",
    )
    parser.add_argument(
        "--matrices", type=int, default=5, help="matrices of an order up to 1000, fewer beyond (5)"
    )
    arguments = parser.parse_args()
    command.set_threads(arguments.threads)

    from tools.published import runner

    device = arguments.device
    name = "published.json" if device == "cpu" else "published_cuda.json"
    path = arguments.output or command.RESULTS / name
    runner.run(path, arguments.threads, device, arguments.matrices, arguments.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
