"""The command line: its files, what it prints, and one line for whatever is wrong."""

import io
import os
import re
import signal
import stat
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse

import tsvd
from testing.families import real
from testing.measures import residual
from tsvd import _cli, linalg

A = np.random.default_rng(0).standard_normal((5, 5))
TALL = np.random.default_rng(1).standard_normal((6, 4))
D, E = np.array([4.0, 3.0, 2.0, 1.0]), np.array([1.0, -1.0, 0.5])
S = np.linalg.svd(A, compute_uv=False)
VALUES = tsvd.svdvals(D, E)


def tsvd_program(*arguments, data=None, cwd=None, code=0):
    """Standard output as bytes, and standard error as text."""
    command = [sys.executable, "-m", "tsvd", *map(str, arguments)]
    done = subprocess.run(command, input=data, cwd=cwd, capture_output=True, timeout=120)
    error = done.stderr.decode()
    assert done.returncode == code, error
    assert "Traceback" not in error, error
    return done.stdout, error


@pytest.fixture
def cli(tmp_path, monkeypatch, capsys):
    """Runs the command line in a folder of its own: the exit status, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(line):
        try:
            code = _cli.main(line.split())
        except SystemExit as end:
            code = end.code
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return code, said.out, said.err

    return run


def make_inputs():
    np.save("a.npy", A)
    np.savez("a.npz", A)
    np.savez("many.npz", d=D, e=E, A=A)
    np.savetxt("a.csv", A, delimiter=",", header="a comment")
    np.savetxt("a.txt", A)
    scipy.io.mmwrite("a.mtx", A)
    scipy.io.mmwrite("b.mtx", scipy.sparse.diags_array([D, E], offsets=[0, 1]))
    scipy.io.mmwrite("lower.mtx", scipy.sparse.diags_array([D, E], offsets=[0, -1]))
    for name, x in {"d": D, "e": E}.items():
        np.save(f"{name}.npy", x)
        np.savetxt(f"{name}.txt", x)
        np.savetxt(f"{name}.csv", x[None], delimiter=",")


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "many.npz:A", "a.csv", "a.txt", "a.mtx"])
def test_dense_files(cli, name):
    make_inputs()
    code, said, _ = cli(f"linalg {name} -o out.npz --device cpu --threads 1")
    assert code == 0 and said.startswith("out.npz: U (5, 5), S (5,), Vh (5, 5), ")
    with np.load("out.npz") as file:
        assert set(file) == {"U", "S", "Vh"}
        assert np.allclose(file["U"] * file["S"] @ file["Vh"], A)
    code, said, _ = cli(f"inv {name} -o X.npy --refine")
    assert code == 0 and np.allclose(np.load("X.npy") @ A, np.eye(5))


@pytest.mark.parametrize(
    "names", ["d.npy e.npy", "d.txt e.csv", "many.npz:d many.npz:e", "many.npz", "b.mtx"]
)
def test_bidiagonal_files(cli, names):
    make_inputs()
    code, _, error = cli(f"svd {names} -o out.npz")
    assert code == 0, error
    with np.load("out.npz") as file:
        assert set(file) == {"L", "s", "R"} and np.allclose(file["s"], VALUES)


def test_a_lower_bidiagonal_file_is_recognised(cli):
    make_inputs()
    assert cli("svd lower.mtx -o out.npz")[0] == 0
    with np.load("out.npz") as file:
        B = np.diag(D) + np.diag(E, -1)
        assert np.allclose(file["L"] * file["s"] @ file["R"], B)


def test_a_row_or_a_column_more(cli):
    make_inputs()
    B = np.eye(4, 5) * [*D, 0] + np.eye(4, 5, 1) * [0, *D]
    for matrix, shapes in ((B, ((4, 4), (5, 5))), (B.T, ((5, 5), (4, 4)))):
        np.savetxt("b.csv", matrix, delimiter=",")
        assert cli("svd b.csv -o out.npz -f --full")[0] == 0
        with np.load("out.npz") as file:
            assert (file["L"].shape, file["R"].shape) == shapes
            assert np.allclose(file["L"][:, :4] * file["s"] @ file["R"][:4], matrix)
    assert cli("svd d.npy d.npy -o s.txt --values-only")[0] == 0
    assert np.allclose(np.loadtxt("s.txt"), np.linalg.svd(B, compute_uv=False))
    np.save("b.npy", np.eye(4, 6))
    assert "give D and E" in cli("svd b.npy -o out.npz -f")[2]


@pytest.mark.parametrize("ending", [".npz", ".npy", ".csv", ".txt"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_one_array_in_each_format(cli, ending, dtype):
    """What is read again has the same bits."""
    make_inputs()
    assert cli(f"linalg a.npy -o s{ending} --values-only --dtype {dtype} --device cpu")[0] == 0
    if ending in (".npz", ".npy"):
        loaded = np.load(f"s{ending}")
        found = loaded["S"] if ending == ".npz" else loaded
    else:
        found = np.loadtxt(f"s{ending}", delimiter="," if ending == ".csv" else None)
    assert np.array_equal(found.astype(dtype), linalg.svdvals(A.astype(dtype), device="cpu"))


def test_a_part_of_the_values(cli):
    make_inputs()
    for command, values in (("linalg a.npy", S), ("svd d.npy e.npy", VALUES)):
        assert cli(f"{command} --select 1 2 --values-only -o some.npy -f")[0] == 0
        assert np.allclose(np.load("some.npy"), values[1:3])
        low, high = values[2] - 1e-9, values[0] + 1
        assert cli(f"{command} --interval {low} {high} --values-only -o some.npy -f")[0] == 0
        assert np.allclose(np.load("some.npy"), values[:3])
        code, _, error = cli(f"{command} --select 0 1 --interval 0 1 -o x.npz")
        assert code == 2 and "not allowed with" in error


def test_standard_input_and_output(tmp_path):
    """They make a pipeline; nothing but the data goes to standard output."""
    text = "\n".join(",".join(map(repr, row)) for row in A.tolist()).encode()
    out, said = tsvd_program("inv", "-", "-o", "-", data=text)
    assert np.allclose(np.load(io.BytesIO(out)) @ A, np.eye(5))
    assert "standard output: X (5, 5)" in said
    out, _ = tsvd_program("linalg", "-", "-o", "-", "--values-only", data=out)
    assert np.allclose(np.load(io.BytesIO(out)), 1 / S[::-1])
    file = io.BytesIO()
    np.savez(file, d=D, e=E)
    out, _ = tsvd_program("svd", "-", "-o", "-", data=file.getvalue())
    with np.load(io.BytesIO(out)) as found:
        assert set(found) == {"L", "s", "R"} and np.allclose(found["s"], VALUES)
    market = io.BytesIO()
    scipy.io.mmwrite(market, A)
    out, _ = tsvd_program("linalg", "-", "-o", "-", "--values-only", data=market.getvalue())
    assert np.allclose(np.load(io.BytesIO(out)), S)


WRONG_FILES = {
    "missing.npy": (None, "No such file"),
    "folder.npy": ("folder", "Is a directory"),
    "empty.npy": (b"", "not a .npy file"),
    "empty.txt": (b"", "empty"),
    "garbage.npy": (b"\x00\x01\x02", "not a .npy file"),
    "garbage.npz": (b"PK\x03\x04 and no more", "not a .npz file"),
    "garbage.csv": (b"1,2\n3,four\n", "row 1, column 2"),
    "ragged.csv": (b"1,2\n3\n", "number of columns"),
    "garbage.mtx": (b"%%MatrixMarket matrix of words\n", "not a .mtx file"),
    "words.dat": (b"1 2", "unknown ending"),
    "a.npz:B": (None, "No such file"),
}


@pytest.mark.parametrize("name", WRONG_FILES)
@pytest.mark.parametrize("command", ["linalg", "inv", "svd"])
def test_wrong_files(cli, command, name):
    content, problem = WRONG_FILES[name]
    if content == "folder":
        Path(name).mkdir()
    elif content is not None:
        Path(name).write_bytes(content)
    code, said, error = cli(f"{command} {name} -o out.npz")
    assert code == 2 and not said
    assert error.startswith("tsvd: error: ") and error.count("\n") == 1
    assert name.split(":")[0] in error and problem.lower() in error.lower()
    assert not Path("out.npz").exists()


@pytest.mark.parametrize(
    ("array", "problem"),
    [
        (np.array([[1, None]], object), "not a .npy file"),  # a pickle, which could run anything
        (np.full((2, 2), np.nan), r"a[0, 0] is nan"),
        (np.eye(2).astype(np.float16), "float16"),
        (np.array([["a", "b"]]), "dtype"),
        (np.ones(3), "dimension"),
    ],
)
@pytest.mark.parametrize("command", ["linalg", "inv"])
def test_wrong_arrays(cli, command, array, problem):
    np.save("a.npy", array)
    code, said, error = cli(f"{command} a.npy -o out.npz")
    assert code == 2 and not said and error.count("\n") == 1
    assert problem in error
    assert not Path("out.npz").exists()


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("linalg many.npz -o x.npz", "has 3 arrays, d, e, A; name one: many.npz:NAME"),
        ("linalg many.npz:B -o x.npz", "has no array 'B'; its arrays: d, e, A"),
        ("svd a.npz -o x.npz", "is not bidiagonal"),
        ("svd d.npy -o x.npz", "give D and E, or one bidiagonal matrix"),
        ("svd - - -o x.npz", "cannot both be standard input"),
        ("svd e.npy d.npy -o x.npz", "swapped"),
        ("linalg a.npy -o x.mat", "unknown ending"),
        ("linalg a.npy -o x", "unknown ending"),
        ("linalg a.npy -o x.csv", "3 arrays go into a .npz file"),
        ("linalg a.npy -o no/x.npz", "the folder does not exist"),
        ("linalg a.npy -o a.npy", "is an input file"),
        ("linalg many.npz:A -o many.npz -f", "is an input file"),
        ("linalg a.npy -o d.npy", "exists already; --force replaces it"),
        ("linalg a.npy -o x.npz --threads 0", "threads must be from 1"),
        ("linalg a.npy -o x.npz --method fast", "unknown method 'fast'"),
        ("linalg a.npy -o x.npz --device gpu", "unknown device 'gpu'"),
        ("linalg a.npy -o x.npz --select 3 9", "out of range"),
        ("linalg a.npy -o x.npz --eps -1", "eps"),
        ("linalg a.npy", "required: -o/--output"),
        ("linalg", "required: A"),
        ("inv many.npz:d -o x.npz", "dimension"),
        ("nothing", "invalid choice"),
    ],
)
def test_wrong_arguments(cli, line, problem):
    make_inputs()
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    code, said, error = cli(line)
    assert code == 2 and not said
    assert problem in error, error
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == before


def test_a_text_file_of_a_batch(cli):
    np.save("batch.npy", np.ones((2, 3, 3)))
    code, _, error = cli("linalg batch.npy --values-only -o s.csv")
    assert code == 0, error
    assert np.loadtxt("s.csv", delimiter=",").shape == (2, 3)
    np.save("batch.npy", np.broadcast_to(np.eye(2), (4, 2, 2)))
    code, _, error = cli("inv batch.npy -o X.csv")
    assert code == 2 and "holds no array of 3 dimensions" in error
    assert not Path("X.csv").exists() and not list(Path().glob(".tsvd*"))


def test_singular_and_nearly_singular(cli):
    np.save("a.npy", np.zeros((2, 2)))
    code, _, error = cli("inv a.npy -o X.npy")
    assert code == 1 and "Singular" in error and not Path("X.npy").exists()
    np.save("a.npy", np.array([[1.0, 1.0], [1.0, 1.0 + 1e-16 * 3]]))
    code, _, error = cli("inv a.npy -o X.npy")
    assert code == 0 and error.startswith("tsvd: warning: ") and Path("X.npy").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(cli):
    make_inputs()
    Path("closed").mkdir()
    Path("closed").chmod(stat.S_IRUSR | stat.S_IXUSR)
    code, _, error = cli("linalg a.npy -o closed/x.npz")
    assert code == 2 and "permission" in error


def test_a_compressed_archive(cli):
    np.savez_compressed("a.npz", A)
    assert cli("linalg a.npz --values-only -o s.npy")[0] == 0
    with zipfile.ZipFile("a.npz", "a") as file:
        file.writestr("text.txt", "no array")
    code, _, error = cli("linalg a.npz -o x.npz")
    assert code == 2 and "2 arrays" in error


def test_help_and_version(cli):
    code, said, error = cli("")
    assert code == 2 and not said and "demo" in error and "linalg" in error
    code, said, _ = cli("--version")
    assert code == 0 and said == f"tsvd {tsvd.__version__}\n"
    for command in ("linalg", "svd", "inv"):
        code, said, _ = cli(f"{command} --help")
        assert code == 0 and "example: tsvd" in said and "-o OUT" in said


def test_the_script():
    script = Path(sys.executable).parent / "tsvd"
    if not script.exists():
        pytest.skip("tsvd is not installed in this environment")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, timeout=60)
    assert done.stdout == f"tsvd {tsvd.__version__}\n"


def test_info(cli):
    code, said, _ = cli("info")
    assert code == 0
    for fact in ("kernels", "BLAS", "compiled in"):
        assert fact in said
    facts = tsvd.show_config(mode="dicts")
    assert "of SciPy" in facts["CPU"]["BLAS"]


def test_a_reader_that_goes_away(tmp_path):
    """The end of a pipe is no traceback."""
    np.save(tmp_path / "a.npy", np.random.default_rng(0).standard_normal((300, 300)))
    for command in ("linalg a.npy -o -", "info"):
        done = subprocess.run(
            f"{sys.executable} -m tsvd {command} | true; exit ${{PIPESTATUS[0]}}",
            shell=True,
            executable="/bin/bash",
            cwd=tmp_path,
            capture_output=True,
            timeout=120,
        )
        assert done.returncode in (0, 1) and b"Traceback" not in done.stderr, done.stderr


def test_ctrl_c(tmp_path):
    """It ends with 130, one line and no file."""
    np.save(tmp_path / "a.npy", np.random.default_rng(0).standard_normal((3000, 3000)))
    command = [sys.executable, "-m", "tsvd", "linalg", "a.npy", "-o", "x.npz", "--method", "jacobi"]
    command += ["--device", "cpu", "--threads", "1"]
    program = subprocess.Popen(
        command,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # also in the background
    )
    time.sleep(1.5)
    program.send_signal(signal.SIGINT)
    _, error = program.communicate(timeout=60)
    assert (program.returncode, error) == (130, b"tsvd: interrupted\n")
    assert [path.name for path in tmp_path.iterdir()] == ["a.npy"]


# ---- the commands ----


def test_demo():
    """It prints a line for each real matrix. All are in their bounds, or the code is not 0."""
    output = tsvd_program("demo")[0].decode()
    for name, (d, _) in real().items():
        assert re.search(rf"^{name}\s+{d.size}\s", output, re.MULTILINE), output


def test_svd(tmp_path):
    d, e = real()["topobathy"]
    np.save(tmp_path / "d.npy", d)
    np.save(tmp_path / "e.npy", e)
    command = ("svd", "d.npy", "e.npy", "-o", "out.npz")
    for options, method in ((), "dc"), (("--method", "qr", "--force"), "qr"):
        said = tsvd_program(*command, "--device", "cpu", *options, cwd=tmp_path)[0].decode()
        assert f"{method} on cpu" in said
        with np.load(tmp_path / "out.npz") as file:
            assert set(file) == {"L", "s", "R"}
            assert residual(d, e, file["L"], file["s"], file["R"]) <= 2


@pytest.fixture
def files(tmp_path):
    """A folder with the inputs d.npy and e.npy of order 3."""
    np.save(tmp_path / "d.npy", np.ones(3))
    np.save(tmp_path / "e.npy", np.ones(2))
    return tmp_path


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("force", [(), ("--force",)])
@pytest.mark.parametrize("output", ["d.npy", "./e.npy", "link", "hard"])
def test_svd_keeps_its_input(files, output, force):
    (files / "link").symlink_to("d.npy")
    (files / "hard").hardlink_to(files / "e.npy")
    before = contents(files)
    command = ("svd", "d.npy", "e.npy", "-o", output, *force)
    _, error = tsvd_program(*command, code=2, cwd=files)
    assert "input" in error
    assert contents(files) == before


def test_svd_replaces_a_file_only_by_force(files):
    (files / "out.npz").write_text("something else")
    before = contents(files)
    command = ("svd", "d.npy", "e.npy", "-o", "out.npz")
    _, error = tsvd_program(*command, code=2, cwd=files)
    assert "--force" in error
    assert contents(files) == before
    tsvd_program(*command, "--force", cwd=files)
    assert set(np.load(files / "out.npz")) == {"L", "s", "R"}
    assert set(contents(files)) == set(before)


def test_svd_keeps_a_file_that_comes_late(files, monkeypatch):
    """A file that another program writes while this one computes is not lost."""
    solve = _cli._solve

    def slow(*arguments, **options):
        Path("out.npz").write_text("something else")
        return solve(*arguments, **options)

    monkeypatch.chdir(files)
    monkeypatch.setattr(_cli, "_solve", slow)
    assert _cli.main("svd d.npy e.npy -o out.npz".split()) == 1
    assert Path("out.npz").read_text() == "something else"
    assert set(contents(files)) == {"d.npy", "e.npy", "out.npz"}


def test_svd_leaves_files_of_others(files, monkeypatch, capsys):
    """Whatever the folder holds stays there; the new file has the usual permissions."""
    for process in (os.getpid(), os.getppid()):
        (files / f".{process}.part").write_text("something else")
    before = contents(files)
    monkeypatch.chdir(files)
    assert _cli.main("svd d.npy e.npy -o out.npz".split()) == 0, capsys.readouterr().err
    after = contents(files)
    del after["out.npz"]
    assert after == before
    Path("usual").touch()
    assert Path("out.npz").stat().st_mode == Path("usual").stat().st_mode


@pytest.mark.parametrize(("device", "code"), [("gpu", 2), ("cuda:x", 2), ("cuda:9999", 1)])
def test_svd_on_no_such_device(device, code, tmp_path):
    np.save(tmp_path / "d.npy", np.ones(3))
    np.save(tmp_path / "e.npy", np.ones(2))
    command = ("svd", "d.npy", "e.npy", "-o", "out.npz", "--device", device)
    _, error = tsvd_program(*command, code=code, cwd=tmp_path)
    assert device in error
    assert not (tmp_path / "out.npz").exists()


def test_moves_a_bar(tmp_path, monkeypatch):
    """The bar of a run by divide and conquer moves with its levels, and reaches the end."""
    import tqdm

    shown = []

    class Bar:
        n, disable = 0, False

        def __init__(self, **options):
            assert options["total"] == 100 and options["disable"] is False

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def update(self, by):
            self.n += by
            shown.append(self.n)

    monkeypatch.setattr(tqdm, "tqdm", Bar)
    monkeypatch.chdir(tmp_path)
    np.save("d.npy", np.ones(3000))
    np.save("e.npy", np.ones(2999))
    assert _cli.main("svd d.npy e.npy -o out.npz --device cpu --method dc --progress".split()) == 0
    assert len(shown) > 2 and shown == sorted(shown) and shown[-1] == pytest.approx(100)


@pytest.mark.parametrize(
    ("d", "e", "named"),
    [
        (np.ones(3), np.ones(4), "e"),
        (np.ones(3), np.ones(2, complex), "complex"),
        (np.array([1, np.nan, 1]), np.ones(2), "(?i)nan|inf|finite"),
        (np.ones(3), None, "e.npy"),
    ],
)
def test_svd_refuses(d, e, named, tmp_path):
    """It prints one line that says what is wrong, no traceback, and writes no file."""
    np.save(tmp_path / "d.npy", d)
    if e is not None:
        np.save(tmp_path / "e.npy", e)
    _, error = tsvd_program("svd", "d.npy", "e.npy", "-o", "out.npz", code=2, cwd=tmp_path)
    assert re.search(named, error)
    assert not (tmp_path / "out.npz").exists()


def test_without_a_command():
    _, error = tsvd_program(code=2)
    assert "usage" in error


def test_shapes_and_types(cli):
    np.save("a.npy", TALL)
    code, said, _ = cli("linalg a.npy -o out.npz --device cpu")
    assert code == 0 and re.search(r"out.npz: U \(6, 4\), S \(4,\), Vh \(4, 4\), \w+ on cpu", said)
    with np.load("out.npz") as file:
        assert set(file) == {"U", "S", "Vh"}
        assert np.allclose(file["U"] * file["S"] @ file["Vh"], TALL)
    assert cli("linalg a.npy -o out.npz")[0] == 2  # it is there
    for options, shapes in (
        ("--full", {"U": (6, 6), "S": (4,), "Vh": (4, 4)}),
        ("--values-only", {"S": (4,)}),
        ("--select 0 1", {"U": (6, 2), "S": (2,), "Vh": (2, 4)}),
        ("--interval -1 inf --values-only", {"S": (4,)}),
        ("--interval -3 -1.5", {"U": (6, 0), "S": (0,), "Vh": (0, 4)}),
        ("--dtype float32 --method qr", {"U": (6, 4), "S": (4,), "Vh": (4, 4)}),
    ):
        code, said, _ = cli(f"linalg a.npy -o out.npz --force {options}")
        assert code == 0, said
        with np.load("out.npz") as file:
            assert {name: file[name].shape for name in file} == shapes
            assert file["S"].dtype == ("float32" if "float32" in options else "float64")


@pytest.mark.parametrize(
    ("arguments", "code", "match"),
    [
        ("a.npy", 2, "required"),
        ("b.npy -o out.npz", 2, "b.npy"),
        ("a.npy -o a.npy --force", 2, "input"),
        ("a.npy -o out.npz --select 0 4", 2, "number of values"),
        ("a.npy -o out.npz --select 0 1 --interval 0 1", 2, "not allowed"),
        ("a.npy -o out.npz --device gpu", 2, "gpu"),
        ("a.npy -o out.npz --device cuda:9999", 1, "cuda:9999"),
        ("a.npy -o out.npz --method bisect", 2, "values only"),
        ("vector.npy -o out.npz", 2, "1-dimensional"),
        ("complex.npy -o out.npz --dtype float32", 2, "complex128"),
        ("nan.npy -o out.npz", 2, "NaN"),
    ],
)
def test_what_linalg_refuses(cli, arguments, code, match):
    np.save("a.npy", TALL)
    np.save("vector.npy", TALL[0])
    np.save("complex.npy", TALL * 1j)
    np.save("nan.npy", TALL * np.nan)
    got, said, error = cli(f"linalg {arguments}")
    assert got == code and not said and re.search(match, error)
    assert not Path("out.npz").exists()
