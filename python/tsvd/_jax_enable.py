"""enable() and disable() of `tsvd.jax`: JAX's own SVD runs on tsvd.

The rule by which JAX lowers the primitive of its SVD is replaced. JAX's derivatives, and its rules
for vmap and sharding, are those of the primitive, and stay.
"""

from __future__ import annotations

import contextlib
import threading

import jax
from jax.interpreters import mlir

from . import _core
from ._jax_dense import DenseOptions, dense_svd, dense_values, smaller

_PLATFORMS = {"cpu": "cpu", "CUDA": "cuda"}  # the names of XLA and of JAX
_lock = threading.Lock()
_theirs: dict[str, object] = {}  # the rules that were replaced, by platform


def enable():
    """Lets the SVD of JAX run on tsvd, in the whole process, until `disable`.

    `jax.numpy.linalg.svd`, `jax.lax.linalg.svd` and what rests on them, such as pinv,
    matrix_rank, cond, lstsq and `jax.scipy.linalg.svd`, call tsvd on the CPU and on
    CUDA devices. Derivatives, vmap and sharding stay JAX's own.

    Returns
    -------
    context manager
        ``with tsvd.jax.enable(): ...`` calls `disable` at the end, unless it was enabled
        before.

    Raises
    ------
    ImportError
        This JAX has no rules that can be replaced.

    Notes
    -----
    JAX forgets all that it has compiled, now and when `disable` is called, as what is
    compiled does not change. Functions that were compiled ahead of time, and
    exported ones, stay as they are.

    A matrix that holds NaN or infinity gives NaN, as before. What JAX computes with
    `subset_by_index`, and with ``hermitian=True``, stays with JAX.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> import tsvd.jax
    >>> with tsvd.jax.enable():
    ...     text = jax.jit(jnp.linalg.svd).lower(jnp.eye(3)).as_text()
    >>> "tsvd_dense_svd" in text
    True
    """
    with _lock:
        before = bool(_theirs)
        if not before:
            _replace()
    return contextlib.nullcontext() if before else _Enabled()


def disable():
    """Gives the SVD of JAX back to JAX; see `enable`. Does nothing if it was not enabled."""
    with _lock:
        if _theirs:
            for platform, rule in _theirs.items():
                mlir.register_lowering(jax.lax.linalg.svd_p, rule, platform=platform)
            _theirs.clear()
            jax.clear_caches()


class _Enabled(contextlib.AbstractContextManager):
    def __exit__(self, *_):
        disable()


def _replace():
    primitive = jax.lax.linalg.svd_p
    platforms = [_PLATFORMS[name] for name in _core.xla_handlers()["tsvd_dense_svd"]]
    found = {platform: _rule_of(primitive, platform) for platform in platforms}
    for platform, rule in found.items():
        mlir.register_lowering(primitive, _with_ours(rule), platform=platform)
    _theirs.update(found)
    jax.clear_caches()


def _rule_of(primitive, platform):
    """JAX's own rule, which it has no public name for."""
    try:
        from jax._src.interpreters.mlir import _platform_specific_lowerings as rules

        entry = rules[platform][primitive]
    except (ImportError, KeyError) as error:
        raise ImportError(f"JAX {jax.__version__} does not tell how it lowers its SVD") from error
    return getattr(entry, "rule", entry)


def _with_ours(theirs):
    """A rule that lowers to tsvd what tsvd has, and by the other rule what it has not."""

    def rule(context, a, *, full_matrices, compute_uv, subset_by_index=None, **more):
        (aval,) = context.avals_in
        if subset_by_index not in (None, (0, smaller(*aval.shape[-2:]))):
            more["subset_by_index"] = subset_by_index
            return theirs(context, a, full_matrices=full_matrices, compute_uv=compute_uv, **more)

        def ours(a):
            if not compute_uv:
                return (dense_values(a, _OPTIONS),)
            U, S, Vh = dense_svd(a, _OPTIONS, bool(full_matrices))
            return S, U, Vh

        return mlir.lower_fun(ours, multiple_results=True)(context, a)

    return rule


_OPTIONS = DenseOptions(check_finite=0)
