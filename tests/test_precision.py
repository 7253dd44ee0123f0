"""Products keep the precision of their arrays, whatever PyTorch and JAX are told."""

import threading

import pytest

from tsvd import linalg
from tsvd._precision import own_precision

torch = pytest.importorskip("torch")

import tsvd.torch  # noqa: E402


def settings():
    places = torch.backends.cuda.matmul, torch.backends.mkldnn.matmul
    return [getattr(place, "fp32_precision", None) for place in places]


def set_newer(cuda=None, mkldnn=None, whole=None):
    """The newer settings, of PyTorch 2.9 on."""
    backends = torch.backends
    if not hasattr(backends.cuda.matmul, "fp32_precision"):
        pytest.skip("of a newer PyTorch")
    places = (backends.cuda.matmul, cuda), (backends.mkldnn.matmul, mkldnn), (backends, whole)
    for place, setting in places:
        if setting is not None:
            place.fp32_precision = setting


SETTINGS = {
    "highest": lambda: None,
    "high": lambda: torch.set_float32_matmul_precision("high"),
    "medium": lambda: torch.set_float32_matmul_precision("medium"),
    "allow_tf32": lambda: setattr(torch.backends.cuda.matmul, "allow_tf32", True),
    "cuda": lambda: set_newer(cuda="tf32"),
    "mkldnn": lambda: set_newer(mkldnn="bf16"),
    "whole": lambda: set_newer(whole="tf32"),
    "medium but cuda": lambda: (torch.set_float32_matmul_precision("medium"), set_newer("ieee")),
}


@pytest.fixture(params=SETTINGS)
def setting(request):
    """A setting of PyTorch for products of float32, which a test finds and leaves."""
    SETTINGS[request.param]()
    before = settings()
    yield
    assert settings() == before
    torch.set_float32_matmul_precision("highest")
    if before != [None, None]:
        set_newer("none", "none", "none")


def is_full():
    return all(setting in ("ieee", "none") for setting in settings() if setting is not None)


def test_the_setting_is_put_back(setting):
    with own_precision("torch"):
        with own_precision("torch"):
            assert is_full()
        assert is_full()


def test_the_last_thread_puts_it_back(setting):
    inside, leave = threading.Barrier(9), threading.Event()

    def work():
        with own_precision("torch"):
            inside.wait()
            leave.wait()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    inside.wait()
    with pytest.raises(ZeroDivisionError), own_precision("torch"):
        raise ZeroDivisionError
    assert is_full()
    leave.set()
    for thread in threads:
        thread.join()


def gradient(function):
    def call(a):
        x = a.clone().requires_grad_()
        (function(x) ** 3).sum().backward()
        return x.grad

    return call


FUNCTIONS = {
    "linalg.pinv": linalg.pinv,
    "linalg.polar": lambda a: linalg.polar(a)[1],
    "linalg.low_rank": lambda a: linalg.low_rank(a, 20),
    "linalg.lstsq": lambda a: linalg.lstsq(a=a, b=a[:, :3].cos())[0],
    "linalg.subspace_angles": lambda a: linalg.subspace_angles(a[:, :8], a[:, 8:16]),
    "gradient of svd": gradient(lambda a: tsvd.torch.linalg_svd(a)[0].abs()),
    "gradient of svdvals": gradient(tsvd.torch.linalg_svdvals),
    "gradient of pinv": gradient(tsvd.torch.linalg_pinv),
    "gradient of polar": gradient(lambda a: tsvd.torch.linalg_polar(a)[0]),
    "gradient of low_rank": gradient(lambda a: tsvd.torch.linalg_low_rank(a, 20)),
    "gradient of nuclear_norm": gradient(tsvd.torch.linalg_nuclear_norm),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_the_same(name, setting, device):
    function = FUNCTIONS[name]
    a = torch.randn(96, 64, generator=torch.Generator().manual_seed(0)).to(device)
    with own_precision("torch"):
        expected = function(a)
    assert torch.equal(function(a), expected)


def test_results_of_jax_are_the_same(jax_device):
    import jax

    import tsvd.jax

    jnp, of_jax = jax.numpy, tsvd.jax.linalg
    functions = {
        "pinv": linalg.pinv,
        "polar": lambda a: linalg.polar(a)[1],
        "lstsq": lambda a: linalg.lstsq(a, jnp.cos(a[:, :3]))[0],
        "tsvd.jax pinv": of_jax.pinv,
        "tsvd.jax lstsq": lambda a: of_jax.lstsq(a, jnp.cos(a[:, :3]))[0],
        "gradient of svd": jax.grad(lambda a: (abs(tsvd.jax.linalg_svd(a).U) ** 3).sum()),
        "gradient of svdvals": jax.grad(lambda a: (tsvd.jax.linalg_svdvals(a) ** 3).sum()),
        "gradient of pinv": jax.grad(lambda a: (of_jax.pinv(a) ** 3).sum()),
    }
    a = torch.randn(96, 64, generator=torch.Generator().manual_seed(0)).numpy()
    with jax.default_device(jax_device):
        for name, function in functions.items():
            with jax.default_matmul_precision("highest"):
                expected = function(jnp.asarray(a))
            assert (function(jnp.asarray(a)) == expected).all(), name


def test_inherited_settings_stay_inherited():
    set_newer(whole="tf32")
    with own_precision("torch"):
        assert is_full()
    assert settings() == ["tf32", "tf32"]
    set_newer(whole="ieee")
    assert settings() == ["ieee", "ieee"]
    set_newer(whole="none")
