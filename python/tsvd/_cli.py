"""The command line: ``python -m tsvd {demo,svd,linalg,info}``.

Exit codes: 0 success; 1 the computation failed, or a measure is over its bound;
2 the arguments or the input files are wrong; 130 interrupted.
"""

import argparse
import contextlib
import os
import sys
import tempfile
import time
from pathlib import Path

_RESIDUAL_BOUND = 2.0
_ORTHOGONALITY_BOUND = 3.0


class _Failure(Exception):
    """Ends the program with one line on stderr."""

    def __init__(self, message, code):
        super().__init__(message)
        self.code = code


def main(argv=None):
    arguments = _parser().parse_args(argv)
    try:
        return arguments.run(arguments)
    except _Failure as failure:
        print(f"tsvd: error: {failure}", file=sys.stderr)
        return failure.code
    except KeyboardInterrupt:
        print("tsvd: interrupted", file=sys.stderr)
        return 130


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m tsvd",
        description="Singular value decomposition of bidiagonal and of dense matrices.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    demo = commands.add_parser(
        "demo",
        help="decompose bidiagonals of real matrices and check the results",
        description="Decomposes the bidiagonals of real matrices that come with the package. "
        "Ends with 1 if a measure is over its bound.",
    )
    demo.set_defaults(run=_demo)

    svd = commands.add_parser(
        "svd",
        help="decompose a matrix given by its diagonals",
        description="B = diag(d) + diag(e, 1) = L diag(s) R. Leading dimensions of d and e are "
        "a batch.",
    )
    svd.add_argument("d", metavar="D.npy", type=Path, help="the diagonal, shape (..., n)")
    svd.add_argument("e", metavar="E.npy", type=Path, help="the off-diagonal, shape (..., n-1)")
    svd.add_argument("--lower", action="store_true", help="e is the sub-diagonal")
    svd.set_defaults(run=_svd)

    linalg = commands.add_parser(
        "linalg",
        help="decompose a dense matrix",
        description="A = U diag(S) Vh. Leading dimensions of A are a batch.",
    )
    linalg.add_argument("a", metavar="A.npy", type=Path, help="the matrix, shape (..., m, n)")
    linalg.add_argument(
        "--full", action="store_true", help="all m columns of U and all n rows of Vh"
    )
    linalg.add_argument(
        "--select",
        nargs=2,
        type=int,
        metavar=("MIN", "MAX"),
        help="the values with these indices, both included, where 0 is the largest",
    )
    linalg.add_argument(
        "--interval",
        nargs=2,
        type=float,
        metavar=("MIN", "MAX"),
        help="the values in (MIN, MAX], of one matrix",
    )
    linalg.set_defaults(run=_linalg)

    methods = "auto, dc, qr, givens, bisect, twisted"
    for command, results, values, offered in (
        (svd, "L, s, R", "s", methods),
        (linalg, "U, S, Vh", "S", methods + ", jacobi"),
    ):
        command.add_argument(
            "-o",
            "--output",
            metavar="OUT.npz",
            type=Path,
            required=True,
            help=f"where {results} go",
        )
        command.add_argument(
            "-f", "--force", action="store_true", help="replace OUT.npz if it exists already"
        )
        command.add_argument(
            "--values-only", action="store_true", help=f"compute and write {values} only"
        )
        command.add_argument("--method", default="auto", help=f"{offered} (default: auto)")
        command.add_argument(
            "--device", help="cpu, cuda, cuda:1 (default: by the size of the matrix)"
        )
        command.add_argument(
            "--eps",
            type=float,
            help="entries up to this size count as zero (default: full accuracy)",
        )
        command.add_argument(
            "--dtype", choices=["float64", "float32"], help="convert the input to this type first"
        )

    info = commands.add_parser("info", help="show how tsvd was built and what it can use")
    info.set_defaults(run=_info)

    for command in (demo, svd, linalg):
        command.add_argument(
            "--progress",
            action="store_true",
            help="a progress bar even if stderr is no terminal (needs tqdm)",
        )
    return parser


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
        raise _Failure(f"over the bound: {', '.join(failed)}", 1)
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

    return _decompose(
        arguments, (arguments.d, arguments.e), tsvd.svd, ("L", "s", "R"), lower=arguments.lower
    )


def _linalg(arguments):
    from tsvd import linalg

    if arguments.select is not None and arguments.interval is not None:
        raise _Failure("--select and --interval exclude each other", 2)
    selected = {}
    if arguments.select is not None:
        selected = {"select": "i", "select_range": tuple(arguments.select)}
    if arguments.interval is not None:
        selected = {"select": "v", "select_range": tuple(arguments.interval)}
    return _decompose(
        arguments,
        (arguments.a,),
        linalg.svd,
        ("U", "S", "Vh"),
        full_matrices=arguments.full,
        **selected,
    )


def _decompose(arguments, inputs, function, names, **options):
    """Reads the inputs, decomposes, writes the results under their names."""
    output = _output(arguments.output, inputs, arguments.force)
    matrices = [_load(path, arguments.dtype) for path in inputs]
    start = time.perf_counter()
    with _progress_bar("svd", arguments.progress) as progress:
        result, info = _solve(
            function,
            *matrices,
            compute_uv=not arguments.values_only,
            method=arguments.method,
            eps=arguments.eps,
            device=arguments.device,
            progress=progress,
            full_output=True,
            **options,
        )
    seconds = time.perf_counter() - start
    arrays = {names[1]: result} if arguments.values_only else dict(zip(names, result, strict=True))
    _save(output, arrays, arguments.force)
    shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
    print(f"{arguments.output}: {shapes}, {info.method} on {info.device}, {seconds:.3f} s")
    return 0


def _info(arguments):
    import tsvd

    tsvd.show_config()
    return 0


def _solve(function, *matrices, **options):
    import numpy as np

    try:
        return function(*matrices, **options)
    except (np.linalg.LinAlgError, MemoryError) as error:
        # NumPy has this error for dense matrices with too few dimensions too
        shapeless = len(matrices) == 1 and matrices[0].ndim < 2
        raise _Failure(error, 2 if shapeless else 1) from error
    except (TypeError, ValueError, NotImplementedError) as error:
        raise _Failure(error, 2) from error
    except (RuntimeError, ImportError) as error:
        raise _Failure(error, 1) from error


def _load(path, dtype):
    import numpy as np

    try:
        array = np.load(path)
    except OSError as error:
        raise _Failure(f"{path}: {error.strerror or error}", 2) from error
    except MemoryError as error:
        raise _Failure(f"{path}: {error}", 1) from error
    except Exception as error:  # a damaged header may raise anything
        raise _Failure(f"{path}: not a NumPy .npy file of numbers", 2) from error
    if not isinstance(array, np.ndarray):
        array.close()
        raise _Failure(f"{path}: holds several arrays; give a .npy file with one", 2)
    if dtype is not None and array.dtype.kind not in "fiub":
        raise _Failure(f"{path}: cannot convert {array.dtype} to {dtype}", 2)
    return array if dtype is None else array.astype(dtype)


def _output(path, inputs, force):
    """The file to write, checked before any work. Links are followed."""
    try:
        path = path.resolve()
        if path.exists():
            if not path.is_file():
                raise _Failure(f"{path}: exists and is not a file", 2)
            if any(other.exists() and path.samefile(other) for other in inputs):
                raise _Failure(f"{path}: is an input file; give another name with -o", 2)
            if not force:
                raise _Failure(f"{path}: exists already; --force replaces it", 2)
        if not path.parent.is_dir():
            raise _Failure(f"{path}: the folder does not exist", 2)
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
        raise _Failure(f"{path}: {getattr(error, 'strerror', None) or error}", 2) from error
    return path


def _save(path, arrays, force):
    """Writes the whole file or, on any error, nothing."""
    import numpy as np

    try:
        # A new file of an unused name: what other programs keep in the folder stays as it is.
        descriptor, partial = tempfile.mkstemp(dir=path.parent, prefix=".tsvd.", suffix=".part")
        try:
            with open(descriptor, "wb") as file:
                np.savez(file, **arrays)
            os.chmod(partial, 0o666 & ~_umask())  # mkstemp() lets nobody else read it
            if force:
                os.replace(partial, path)
            else:
                _rename(partial, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(partial)
    except FileExistsError as error:
        raise _Failure(f"{path}: exists by now; --force replaces it", 1) from error
    except OSError as error:
        raise _Failure(f"{path}: {error.strerror or error}", 1) from error


def _rename(old, new):
    """Gives a file a name that no file has; the old name may stay."""
    try:
        os.link(old, new)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(new):
            raise FileExistsError(new) from None
        os.rename(old, new)


def _umask():
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def _progress_bar(label, wanted):
    """Yields progress(done) with done in [0, 1], or None if no bar is to be shown."""
    try:
        from tqdm import tqdm
    except ImportError:
        if wanted:
            raise _Failure("--progress needs tqdm: pip install tqdm", 2) from None
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
