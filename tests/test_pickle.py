"""What pickle and the module copy make of results and of a Bidiagonalization."""

import copy
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import tsvd
from testing.cases import same_bits
from tsvd import linalg


def matrices(shape, dtype):
    return np.random.default_rng(3).standard_normal(shape).astype(dtype)


def pickled(form):
    return pickle.loads(pickle.dumps(form))


def out_of_band(form):
    """By pickle with the state in a buffer apart, which other programs send without a copy."""
    buffers = []
    text = pickle.dumps(form, protocol=5, buffer_callback=buffers.append)
    assert len(buffers) == 1 and len(text) < 1000
    return pickle.loads(text, buffers=buffers)


def answers(form):
    """Bits of all that a Bidiagonalization is asked."""
    return (
        form.d,
        form.e,
        form.form_q(),
        form.form_pt(True),
        form.apply_q(np.ones(form.shape[-2])),
        form.apply_p(np.ones((*form.shape[:-2], form.shape[-1], 2)), transposed=True),
        *form.svd(),
        form.svdvals(select="i", select_range=(0, 0)),
    )


def same_answers(form, twin):
    assert twin.shape == form.shape and twin.dtype == form.dtype and twin.lower == form.lower
    return same_bits(answers(twin), answers(form))


@pytest.mark.parametrize("twin", [pickled, out_of_band, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(7, 5), (5, 7), (1, 1), (60, 4), (4, 60), (300, 200), (3, 6, 6)])
def test_the_same_bits_from_a_copy(shape, dtype, twin, device):
    form = linalg.bidiagonalize(matrices(shape, dtype), device=device)
    other = twin(form)
    assert same_answers(form, other)
    assert same_answers(form, twin(other))
    assert pickle.dumps(other) == pickle.dumps(form)


def test_an_interval_of_a_copy(device):
    form = linalg.bidiagonalize(matrices((9, 6), np.float64), device=device)
    part = {"select": "v", "select_range": (0, form.svdvals()[2])}
    assert same_bits(tuple(pickled(form).svd(**part)), tuple(form.svd(**part)))


def test_empty_and_nonfinite_matrices_in_a_copy(device):
    for shape in ((0, 4, 4), (4, 0), (0, 5), (2, 0, 3)):
        form = linalg.bidiagonalize(np.empty(shape), device=device)
        other = pickled(form)
        assert same_bits((other.form_q(True), *other.svd()), (form.form_q(True), *form.svd()))
    a = matrices((3, 5, 4), np.float64)
    a[1, 2, 2] = np.inf
    form = linalg.bidiagonalize(a, device=device, check_finite=False)
    other = pickled(form)
    assert np.isnan(other.svdvals()[1]).all() and np.isnan(other.form_q()[1]).all()
    assert same_bits(other.svdvals()[::2], form.svdvals()[::2])


def test_the_same_bytes_of_the_same_matrix(device):
    """Programs tell by a hash of its pickle whether an object has changed."""
    texts = set()
    for size in (10, 10**6, 10**7):
        np.full(size, 7.0)  # leaves memory that is not zero
        form = linalg.bidiagonalize(matrices((7, 5), np.float64), device=device)
        texts.add(pickle.dumps(form))
    assert len(texts) == 1


def test_a_copy_in_another_process(tmp_path, device):
    form = linalg.bidiagonalize(matrices((40, 30), np.float64), device=device)
    file = tmp_path / "form"
    file.write_bytes(pickle.dumps(form))
    program = (
        "import pickle, sys\n"
        "form = pickle.load(open(sys.argv[1], 'rb'))\n"
        "sys.stdout.buffer.write(form.svd(False).U.tobytes())\n"
    )
    done = subprocess.run([sys.executable, "-c", program, file], capture_output=True, check=True)
    assert done.stdout == form.svd(False).U.tobytes()


def test_what_is_no_state_of_the_matrices(device):
    form = linalg.bidiagonalize(matrices((7, 5), np.float64), device=device)
    restore, (shape, dtype, state, *rest) = form.__reduce__()
    older = state.copy()
    older[2] ^= 1
    for wrong in (state[:-1], state[:0], older):
        with pytest.raises(ValueError, match="state"):
            restore(shape, dtype, wrong, *rest)
    for other in ((5, 7), (7, 6), (2, 7, 5)):
        with pytest.raises(ValueError, match="state"):
            restore(other, dtype, state, *rest)
    with pytest.raises(ValueError, match="state"):
        restore(shape, "float32", state, *rest)


def test_a_device_that_is_not_there():
    form = linalg.bidiagonalize(matrices((7, 5), np.float64), device="cpu")
    restore, (shape, dtype, state, _, _, wrap) = form.__reduce__()
    for on_device in (False, True):
        with pytest.raises(RuntimeError, match="99"):
            restore(shape, dtype, state, 99, on_device, wrap)


@pytest.mark.cuda
def test_a_copy_of_tensors_on_a_device(cuda):
    torch = pytest.importorskip("torch")
    a = torch.from_numpy(matrices((3, 40, 30), np.float64)).cuda()
    form = linalg.bidiagonalize(a)
    for other in (pickled(form), copy.deepcopy(form)):
        for got, want in zip(other.svd(), form.svd(), strict=True):
            assert got.device == a.device and torch.equal(got, want)
        for got, want in ((other.d, form.d), (other.form_q(), form.form_q())):
            assert got.device == a.device and torch.equal(got, want)
        assert torch.equal(other.apply_p(a.mT.contiguous()), form.apply_p(a.mT.contiguous()))


@pytest.mark.cuda
def test_a_device_pickles_its_own_states(cuda):
    """Host and device lay a state out otherwise."""
    form = linalg.bidiagonalize(matrices((7, 5), np.float64), device="cuda")
    restore, (shape, dtype, state, _, _, wrap) = form.__reduce__()
    with pytest.raises(ValueError, match="state"):
        restore(shape, dtype, state, -1, False, wrap)


def test_arrays_of_other_libraries_in_a_copy():
    torch = pytest.importorskip("torch")
    form = linalg.bidiagonalize(torch.from_numpy(matrices((6, 4), np.float32)))
    other = pickled(form)
    assert all(isinstance(x, torch.Tensor) for x in (other.d, other.form_q(), *other.svd()))
    assert torch.equal(other.svd().U, form.svd().U)


def test_copies_are_made_beside_calls():
    form = linalg.bidiagonalize(matrices((300, 200), np.float64))
    expected, twins = form.svd(False).U, []
    thread = threading.Thread(target=lambda: twins.extend(pickled(form) for _ in range(10)))
    thread.start()
    for _ in range(5):
        assert same_bits(form.svd(False).U, expected)
    thread.join()
    assert len(twins) == 10 and all(same_bits(x.svd(False).U, expected) for x in twins)


def test_results_and_what_tells_of_them(device):
    for result, info in (
        tsvd.svd([3.0, 1.0], [1.0], full_output=True, device=device),
        linalg.svd(np.eye(3), full_output=True, device=device),
    ):
        for other in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
            assert type(other) is type(result) and same_bits(tuple(other), tuple(result))
        assert pickle.loads(pickle.dumps(info)) == info
