"""The command line: its files, what it prints, and one line for whatever is wrong."""

import io
import os
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
from tsvd import _cli, linalg

A = np.random.default_rng(0).standard_normal((5, 5))
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
        (np.eye(2) * 1j, "complex"),
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
        ("svd d.npy -o x.npz", "give D and E, or one square bidiagonal matrix"),
        ("svd - - -o x.npz", "cannot both be standard input"),
        ("svd d.npy d.npy -o x.npz", "append a zero"),
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
    for fact in ("kernels", "BLAS", "custom calls", "compiled in"):
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
