"""Batches that are sharded over two GPUs, in JAX: each decomposes its part.

The batch lies on the devices, and so do the results. One device has the whole batch.
"""

from dataclasses import dataclass

from benchmarks import bars, dense, several
from benchmarks.timing import interleaved

LEAST = 1.8  # the time of one device over that of two


@dataclass(frozen=True)
class Case:
    """Gaussian matrices."""

    shape: tuple
    vectors: bool = True

    @property
    def what(self):
        count, rows, columns = self.shape
        return dense.Case("", rows, columns, None, count, "float64", self.vectors).what


CASES = (
    Case((64, 1000, 1000)),
    Case((400, 256, 256)),
    Case((400, 256, 256), vectors=False),
    Case((200_000, 32, 32)),
    Case((20_000_000, 4, 4)),
)


def _devices():
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax.devices("cuda")[:2]


def _measure(run, case):
    import jax
    import numpy as np

    import tsvd.jax

    devices = _devices()
    mesh = jax.sharding.Mesh(np.array(devices), ("x",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    A = dense.gaussian(case.shape[-1], case.shape, "float64")
    call = jax.jit(tsvd.jax.linalg_svd if case.vectors else tsvd.jax.linalg_svdvals)
    calls = {
        name: (lambda a: lambda: jax.block_until_ready(call(a)))(jax.device_put(A, place))
        for name, place in (("one", devices[0]), ("all", sharding))
    }
    times = interleaved(calls, run.repeats)
    return several.record(case, times)


def _bars(run):
    return [
        bars.at_least(f"{case['what']}: one / all", LEAST, case["one"] / case["all"])
        for case in run.records["cases"]
    ]


GROUP = several.group("sharded", CASES, _measure, _bars, _devices)
