import argparse
import os
import sys
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
README = Path(__file__).parents[1] / "README.md"


def main():
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Times tsvd beside the peers installed."
    )
    parser.add_argument(
        "command",
        nargs="?",
        choices=["run", "seed", "readme"],
        default="run",
        help="run: ours and the peers, interleaved, one result file (the default); "
        "seed: the seed's published tables again, on the CPU; "
        "readme: write the README's tables from the result files",
    )
    parser.add_argument(
        "-o", "--output", type=Path, help="result file (default: benchmarks/results/cpu.json)"
    )
    parser.add_argument(
        "--threads", type=int, help="threads of all contenders (default: all cores)"
    )
    parser.add_argument("--repeats", type=int, default=5, help="timings of each contender")
    parser.add_argument("--group", help="run this group of cases only")
    parser.add_argument("--large", action="store_true", help="the cases of over a minute, too")
    arguments = parser.parse_args()

    # Thread pools read these when they are loaded, so nothing is imported before.
    threads = arguments.threads or len(os.sched_getaffinity(0))
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(threads)

    if arguments.command == "readme":
        from benchmarks import tables

        tables.write_readme(README, RESULTS)
    elif arguments.command == "seed":
        from benchmarks import seed

        seed.run(arguments.output or RESULTS / "seed.json", threads)
    else:
        from benchmarks import runner

        runner.run(
            arguments.output or RESULTS / "cpu.json",
            threads,
            arguments.repeats,
            arguments.group,
            arguments.large,
        )


if __name__ == "__main__":
    sys.exit(main())
