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
        choices=["run", "seed", "gpu", "readme"],
        default="run",
        help="run: ours and the peers, interleaved, one result file (the default); "
        "seed: the seed's published tables again; "
        "gpu: the seed's method on the GPU against the times asked of it (needs PyTorch); "
        "readme: write the README's tables from the result files",
    )
    parser.add_argument(
        "-o", "--output", type=Path, help="result file (default: in benchmarks/results)"
    )
    parser.add_argument(
        "--threads", type=int, help="threads of all contenders (default: all cores)"
    )
    parser.add_argument("--repeats", type=int, default=5, help="timings of each contender")
    parser.add_argument("--group", help="run this group of cases only")
    parser.add_argument("--large", action="store_true", help="the cases of over a minute, too")
    of_seed = parser.add_argument_group("seed")
    of_seed.add_argument(
        "--device",
        choices=["cpu", "cuda"],
        default="cpu",
        help="cuda: all tables (needs PyTorch); cpu: those of small matrices (the default)",
    )
    of_seed.add_argument(
        "--matrices", type=int, default=5, help="matrices of an order up to 1000, fewer beyond (5)"
    )
    of_seed.add_argument(
        "--seconds", type=float, default=220, help="rows not begun by then are left out (220)"
    )
    parser.add_argument_group("gpu").add_argument(
        "--tests", type=Path, help="output of pytest, for the counts of tests"
    )
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

        name = "seed.json" if arguments.device == "cpu" else "seed_cuda.json"
        seed.run(
            arguments.output or RESULTS / name,
            threads,
            arguments.device,
            arguments.matrices,
            arguments.seconds,
        )
    elif arguments.command == "gpu":
        from benchmarks import gpu

        return gpu.run(arguments.output or RESULTS / "gpu.json", threads, arguments.tests)
    else:
        from benchmarks import runner

        runner.run(
            arguments.output or RESULTS / "cpu.json",
            threads,
            arguments.repeats,
            arguments.group,
            arguments.large,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
