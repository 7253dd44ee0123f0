"""Dask arrays that functions of `tsvd.linalg` are given: `tsvd.dask` answers."""

from __future__ import annotations

import sys


def is_lazy(a):
    """Whether a is an array of Dask."""
    module = sys.modules.get("dask.array")
    return module is not None and isinstance(a, module.Array)


def functions(**others):
    """The module `tsvd.dask`. others: arguments of the call that its functions do not have."""
    for name, value in others.items():
        if value is not None and value is not False:
            raise TypeError(f"{name} is not for arrays of Dask, which compute later")
    from . import dask

    return dask
