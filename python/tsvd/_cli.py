"""The command line: ``tsvd COMMAND`` or ``python -m tsvd COMMAND``.

Exit codes: 0 success; 1 the computation failed, or a measure is over its bound;
2 the arguments or the input files are wrong; 130 interrupted.
"""

import argparse
import contextlib
import os
import sys
import time
import warnings

from ._files import STANDARD, Failure, check_output, diagonals, read, write

_RESIDUAL_BOUND = 2.0
_ORTHOGONALITY_BOUND = 3.0

_INPUTS = """\
files: .npy; .npz with one array, or FILE.npz:NAME; .mtx (Matrix Market); .csv and .txt; or - for
standard input. OUT: .npz for several arrays; .npz, .npy, .csv or .txt for one; or - for standard
output, where several arrays are a .npz and one is a .npy.
"""


def main(argv=None):
    parser = _parser()
    arguments = parser.parse_args(argv)
    try:
        if arguments.run is None:
            parser.print_help(sys.stderr)
            return 2
        code = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except Failure as failure:
        _say(f"error: {failure}")
        return failure.code
    except KeyboardInterrupt:
        _say("interrupted")
        return 130
    except BrokenPipeError:  # the reader of standard output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _say(text):
    print(f"tsvd: {text}", file=sys.stderr)


# ---- arguments ----


def _parser():
    parser = argparse.ArgumentParser(
        prog="tsvd",
        description="Singular value decomposition of dense and of bidiagonal matrices.",
        epilog="tsvd COMMAND --help says more. Exit codes: 0 success, 1 the computation failed, "
        "2 wrong arguments or files, 130 interrupted.",
    )
    parser.add_argument("--version", action=_Version, help="print the version and end")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(metavar="COMMAND")

    def command(name, run, help, description, example=None):
        added = commands.add_parser(
            name,
            help=help,
            description=description,
            epilog=None if example is None else f"{_INPUTS}\nexample: {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        added.set_defaults(run=run)
        return added

    demo = command(
        "demo",
        _demo,
        "decompose bidiagonals of real matrices and check the results",
        "Decomposes the bidiagonals of real matrices that come with the package.\n"
        "Ends with 1 if a measure is over its bound.",
    )
    linalg = command(
        "linalg",
        _linalg,
        "decompose a dense matrix",
        "A = U diag(S) Vh. Leading dimensions of A are a batch.",
        "tsvd linalg A.npy --select 0 9 -o ten.npz",
    )
    linalg.add_argument("a", metavar="A", help="the matrix, shape (..., m, n)")
    linalg.add_argument(
        "--full", action="store_true", help="all m columns of U and all n rows of Vh"
    )
    svd = command(
        "svd",
        _svd,
        "decompose a bidiagonal matrix, given by its diagonals",
        "B = diag(d) + diag(e, 1) = L diag(s) R. Leading dimensions of d and e are a batch.",
        "tsvd svd d.npy e.npy --values-only -o s.txt",
    )
    svd.add_argument("d", metavar="D", help="the diagonal, shape (..., n)")
    svd.add_argument(
        "e",
        metavar="E",
        nargs="?",
        help="the off-diagonal, shape (..., n-1) or (..., n); without it D is a .npz with arrays d "
        "and e, or a bidiagonal matrix",
    )
    svd.add_argument("--lower", action="store_true", help="e is the sub-diagonal")
    svd.add_argument(
        "--full", action="store_true", help="the null vector too, where e is as long as D"
    )
    inv = command(
        "inv",
        _inv,
        "invert a dense matrix",
        "X = A^-1. Leading dimensions of A are a batch.",
        "tsvd inv A.csv -o X.csv",
    )
    inv.add_argument("a", metavar="A", help="the matrix, shape (..., n, n)")
    inv.add_argument("--refine", action="store_true", help="one step of Newton's iteration")

    for added, results in ((linalg, "U, S, Vh"), (svd, "L, s, R"), (inv, "X")):
        added.add_argument(
            "-o", "--output", metavar="OUT", required=True, help=f"where {results} go"
        )
        added.add_argument(
            "-f", "--force", action="store_true", help="replace OUT if it exists already"
        )
        added.add_argument("--device", help="cpu, cuda, cuda:1 (default: by the size of the work)")
        added.add_argument(
            "--threads", type=int, metavar="N", help="host threads (default: all processors)"
        )
        added.add_argument(
            "--dtype", choices=["float64", "float32"], help="convert the input to this type first"
        )
    methods = "auto, dc, qr, givens, bisect, twisted"
    for added, values, offered in ((linalg, "S", methods + ", jacobi"), (svd, "s", methods)):
        added.add_argument(
            "--values-only", action="store_true", help=f"compute and write {values} only"
        )
        chosen = added.add_mutually_exclusive_group()
        chosen.add_argument(
            "--select",
            nargs=2,
            type=int,
            metavar=("MIN", "MAX"),
            help="the values with these indices, both included, where 0 is the largest",
        )
        chosen.add_argument(
            "--interval",
            nargs=2,
            type=float,
            metavar=("MIN", "MAX"),
            help="the values in (MIN, MAX], of one matrix",
        )
        added.add_argument("--method", default="auto", help=f"{offered} (default: auto)")
        added.add_argument(
            "--eps",
            type=float,
            help="entries up to this size count as zero (default: full accuracy)",
        )
    for added in (demo, linalg, svd, inv):
        added.add_argument(
            "--progress",
            action="store_true",
            help="a progress bar even if stderr is no terminal (needs tqdm)",
        )
    command("info", _info, "show how tsvd was built and what it can use", None)
    return parser


class _Version(argparse.Action):
    """Prints the version, which only the package knows: its import would slow --help down."""

    def __init__(self, option_strings, dest, help):
        super().__init__(option_strings, dest, nargs=0, help=help)

    def __call__(self, parser, *_):
        import tsvd

        print(f"tsvd {tsvd.__version__}")
        parser.exit()


# ---- commands ----


def _demo(arguments):
    with _progress_bar("demo", arguments.progress) as progress:
        rows = _demo_rows(progress)
    print(
        f"{'matrix':<22}{'n':>5}  {'method':<7}{'seconds':>9}{'residual':>10}{'orthog.':>9}"
        f"{'values':>8}{'bound':>7}"
    )
    failed = []
    for name, n, method, seconds, residual, orthogonality, values, values_bound in rows:
        print(
            f"{name:<22}{n:>5}  {method:<7}{seconds:>9.4f}{residual:>10.3f}{orthogonality:>9.3f}"
            f"{values:>8.2f}{values_bound:>7.1f}"
        )
        within = (
            residual <= _RESIDUAL_BOUND
            and orthogonality <= _ORTHOGONALITY_BOUND
            and values <= values_bound
        )
        if not within:
            failed.append(name)
    print(
        "\n"
        f"residual  |B - L S R|_F / ((n + 8) eps |B|_F), bound {_RESIDUAL_BOUND:g}\n"
        f"orthog.   max of |I - L'L| and |I - R R'| / ((n + 8) eps), "
        f"bound {_ORTHOGONALITY_BOUND:g}\n"
        "values    max |s - reference| / (eps s_max); the reference is LAPACK's gesdd of the\n"
        "          dense matrix, which has an error of some eps s_max itself; bound 8 + n/8"
    )
    if failed:
        raise Failure(f"over the bound: {', '.join(failed)}", 1)
    return 0


def _demo_rows(progress):
    from importlib.resources import files

    import numpy as np

    import tsvd

    with (files("tsvd") / "data" / "real_bidiagonals.npz").open("rb") as file:
        matrices = dict(np.load(file))
    names = sorted({key.split("/")[0] for key in matrices})
    eps = np.finfo(np.float64).eps
    rows = []
    for index, name in enumerate(names):
        d, e, reference = (matrices[f"{name}/{part}"] for part in "des")
        n = len(d)

        def share(done, before=index):
            progress((before + done) / len(names))

        start = time.perf_counter()
        (L, s, R), info = _solve(tsvd.svd, d, e, progress=progress and share, full_output=True)
        seconds = time.perf_counter() - start

        B = np.diag(d) + np.diag(e, 1)
        identity = np.eye(n)
        unit = (n + 8) * eps
        residual = np.linalg.norm(B - (L * s) @ R) / (unit * np.linalg.norm(B))
        orthogonality = max(abs(L.T @ L - identity).max(), abs(R @ R.T - identity).max()) / unit
        values = abs(s - reference).max() / (eps * reference[0])
        rows.append((name, n, info.method, seconds, residual, orthogonality, values, 8 + n / 8))
    return rows


def _svd(arguments):
    import tsvd

    lower, dtype = arguments.lower, arguments.dtype
    inputs = [name for name in (arguments.d, arguments.e) if name is not None]
    output = _output(arguments, inputs)
    if inputs == [STANDARD, STANDARD]:
        raise Failure("D and E cannot both be standard input; give one .npz with d and e", 2)
    if len(inputs) == 2:
        given = [read(name, dtype, vectors=True) for name in inputs]
    else:
        found = read(arguments.d, dtype, wanted=("d", "e"))
        if isinstance(found, dict):
            given = [found["d"], found["e"]]
        else:
            *given, below = diagonals(arguments.d, found)
            lower = lower or below
    options = {"lower": lower, "full_matrices": arguments.full}
    return _decompose(arguments, output, given, tsvd.svd, ("L", "s", "R"), **options)


def _linalg(arguments):
    from tsvd import linalg

    output = _output(arguments, [arguments.a])
    given = [read(arguments.a, arguments.dtype)]
    names, full = ("U", "S", "Vh"), arguments.full
    return _decompose(arguments, output, given, linalg.svd, names, full_matrices=full)


def _output(arguments, inputs):
    """Where the results go, checked before any work."""
    count = 1 if getattr(arguments, "values_only", True) else 3
    return check_output(arguments.output, inputs, count, arguments.force)


def _decompose(arguments, output, given, function, names, **options):
    """Decomposes, and writes the results under their names."""
    if arguments.select is not None:
        options |= {"select": "i", "select_range": tuple(arguments.select)}
    if arguments.interval is not None:
        options |= {"select": "v", "select_range": tuple(arguments.interval)}
    with _progress_bar("svd", arguments.progress) as progress:
        result, info = _solve(
            function,
            *given,
            compute_uv=not arguments.values_only,
            method=arguments.method,
            eps=arguments.eps,
            device=arguments.device,
            threads=arguments.threads,
            progress=progress,
            full_output=True,
            **options,
        )
    if arguments.values_only:
        arrays = {names[1]: result}
    else:
        arrays = dict(zip(names, result, strict=True))
    write(output, arrays, arguments.force)
    _report(arguments, arrays, f"{info.method} on {info.device}", info.seconds["total"])
    return 0


def _inv(arguments):
    from tsvd import _libraries, linalg

    output = _output(arguments, [arguments.a])
    a = read(arguments.a, arguments.dtype)
    with contextlib.suppress(ImportError, MemoryError):  # so that its import is not timed
        _libraries.scipy_blas()
    with (
        warnings.catch_warnings(record=True) as caught,
        _progress_bar("inv", arguments.progress) as progress,
    ):
        warnings.simplefilter("always")
        start = time.perf_counter()
        X = _solve(
            linalg.inv,
            a,
            refine=arguments.refine,
            device=arguments.device,
            threads=arguments.threads,
            progress=progress,
        )
        seconds = time.perf_counter() - start
    for warning in caught:
        _say(f"warning: {warning.message}")
    write(output, {"X": X}, arguments.force)
    _report(arguments, {"X": X}, "inverse", seconds)
    return 0


def _report(arguments, arrays, how, seconds):
    """One line: what was written, and how it was computed."""
    shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
    where, stream = arguments.output, sys.stdout
    if where == STANDARD:
        where, stream = "standard output", sys.stderr
    print(f"{where}: {shapes}, {how}, {seconds:.3g} s", file=stream)


def _info(arguments):
    import tsvd

    tsvd.show_config()
    return 0


def _solve(function, *matrices, **options):
    import numpy as np

    try:
        return function(*matrices, **options)
    except (np.linalg.LinAlgError, MemoryError) as error:
        # NumPy has this error for dense matrices of a wrong shape too
        shapeless = "dimensional" in str(error) or "must be square" in str(error)
        raise Failure(error, 2 if shapeless else 1) from error
    except (TypeError, ValueError, NotImplementedError) as error:
        raise Failure(error, 2) from error
    except (RuntimeError, ImportError) as error:
        raise Failure(error, 1) from error


@contextlib.contextmanager
def _progress_bar(label, wanted):
    """Yields progress(done) with done in [0, 1], or None if no bar is to be shown."""
    try:
        from tqdm import tqdm
    except ImportError:
        if wanted:
            raise Failure("--progress needs tqdm: pip install tqdm", 2) from None
        yield None
        return
    # disable=None shows a bar on a terminal only. delay: work under a second shows no bar.
    with tqdm(
        total=100,
        desc=label,
        disable=False if wanted else None,
        delay=1,
        leave=False,
        bar_format="{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}",
    ) as bar:
        yield None if bar.disable else lambda done: bar.update(100 * done - bar.n)
