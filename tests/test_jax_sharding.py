"""tsvd.jax over several devices: batches that are sharded, shard_map, devices of results."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("jax")

# Each program runs by itself: the number of CPU devices cannot change after JAX has started.
HEAD = """
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import tsvd.jax
from tsvd.jax import linalg

random = np.random.default_rng(0)
A = jnp.asarray(random.normal(size=(8, 4, 3)), "float32")
D, E = A[:, :, 0], A[:, :3, 1]
S = A[:, :3, :] + 3 * jnp.eye(3, dtype="float32")
mesh = jax.sharding.Mesh(np.array(jax.devices()), ("x",))
CALLS = {
    "svd": (tsvd.jax.svd, D, E),
    "svdvals": (tsvd.jax.svdvals, D, E),
    "linalg_svd": (tsvd.jax.linalg_svd, A),
    "linalg_svdvals": (tsvd.jax.linalg_svdvals, A),
    "inv": (tsvd.jax.inv, S),
    "linalg.svd": (linalg.svd, A),
    "pinv": (linalg.pinv, A),
    "matrix_rank": (linalg.matrix_rank, A),
    "cond": (linalg.cond, A),
    "lstsq": (jax.vmap(lambda a: linalg.lstsq(a, a[:, :1])), A),
    "gradient": (jax.grad(lambda a: tsvd.jax.linalg_svd(a).U[..., 0].sum()), A),
}

def near(got, want):
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), atol=1e-4)
"""

PROGRAMS = {
    # Each device computes its part, and nothing is gathered.
    "batches": """
for name, (f, *inputs) in CALLS.items():
    sharding = NamedSharding(mesh, P("x"))
    parts = [jax.device_put(x, sharding) for x in inputs]
    compiled = jax.jit(f).lower(*parts).compile()
    assert "all-gather" not in compiled.as_text(), name
    got = compiled(*parts)
    for x in jax.tree.leaves(got):
        assert {part.data.shape for part in x.addressable_shards} == {(2, *x.shape[1:])}, name
    near(got, f(*inputs))
""",
    # What is sharded within matrices is put together: the result is right.
    "rows": """
for spec in (P(None, "x"), P(None, None, "x")):
    for name in ("linalg_svd", "pinv"):
        f, a = CALLS[name]
        a = jnp.concatenate([a, a[:, :, :1]], -1)
        near(jax.jit(f)(jax.device_put(a, NamedSharding(mesh, spec))), f(a))
""",
    # Axes whose shardings are a part of types.
    "explicit": """
from jax.sharding import AxisType
mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Explicit,))
with jax.set_mesh(mesh):
    for name in ("svd", "linalg_svd", "inv", "pinv"):
        f, *inputs = CALLS[name]
        parts = [jax.device_put(x, NamedSharding(mesh, P("x"))) for x in inputs]
        got = jax.jit(f)(*parts)
        for x in jax.tree.leaves(got):
            assert jax.typeof(x).sharding.spec[0] == "x", name
        near(got, f(*inputs))
    try:
        tsvd.jax.linalg_svd(jax.device_put(A, NamedSharding(mesh, P(None, "x"))))
    except ValueError as error:
        assert "shard the batch alone" in str(error)
    else:
        raise AssertionError
""",
    # Results vary over the axes over which an argument varies; others may not pass for the same.
    "shard_map": """
def mapped(f, out, count):
    return jax.shard_map(f, mesh=mesh, in_specs=(P("x"),) * count, out_specs=out)

for name, (f, *inputs) in CALLS.items():
    near(jax.jit(mapped(f, P("x"), len(inputs)))(*inputs), f(*inputs))
    if name == "lstsq":
        continue
    try:
        mapped(lambda *x: jax.tree.leaves(f(*x))[0].sum(), P(), len(inputs))(*inputs)
    except ValueError as error:
        assert "out_specs" in str(error)
    else:
        raise AssertionError(name)
gradient = jax.grad(lambda a: mapped(tsvd.jax.linalg_svdvals, P("x"), 1)(a).sum())(A)
near(gradient, jax.grad(lambda a: tsvd.jax.linalg_svdvals(a).sum())(A))
def solved(A):
    return mapped(lambda a: linalg.lstsq(a[0], a[0, :, :1] + 1)[0][None], P("x"), 1)(A[:4]).sum()

def one_by_one(A):
    return sum(linalg.lstsq(a, a[:, :1] + 1)[0].sum() for a in A[:4])

near(jax.grad(solved)(A), jax.grad(one_by_one)(A))
total = mapped(lambda a: jax.lax.psum(linalg.svdvals(a).sum(), "x"), P(), 1)(A)
near(total, linalg.svdvals(A).sum())
# one argument that varies, and one that does not
half = jax.shard_map(tsvd.jax.svdvals, mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"))
near(half(D, E[0]), tsvd.jax.svdvals(D, E[0]))
""",
    "devices": """
device = jax.devices()[2]
for name, (f, *inputs) in CALLS.items():
    for x in jax.tree.leaves(f(*(jax.device_put(x, device) for x in inputs))):
        assert x.devices() == {device}, name
import tsvd.linalg
a = jax.device_put(A, device)
for x in (*tsvd.linalg.svd(a), tsvd.linalg.pinv(a), tsvd.svdvals(a[0, :, 0], a[0, :3, 1])):
    assert x.devices() == {device}
""",
    "pmap": """
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    near(jax.pmap(tsvd.jax.linalg_svdvals)(A[:4]), tsvd.jax.linalg_svdvals(A[:4]))
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_several_devices(name):
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4"
    done = subprocess.run(
        [sys.executable, "-c", HEAD + PROGRAMS[name]],
        capture_output=True,
        text=True,
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
