"""The draws for svds: some of them, and that a missed value is seen."""

import numpy as np
import pytest

from testing.measures import PARTIAL_BOUND, partial_errors
from tsvd import linalg
from verification import krylov_draws


def test_some_draws():
    attack = krylov_draws.KrylovDraws(7, "cpu")
    kinds = set()
    for index in range(40):
        made, found, wrong = attack(index)
        assert not wrong, made
        assert set(found) == {"residual", "orthogonality", "values"}
        kinds.add((made["kind"], made["family"].partition(", ")[2]))
    assert len(kinds) > 8


def test_a_draw_is_repeated():
    first, A = krylov_draws.draw(3, 5)
    again, B = krylov_draws.draw(3, 5)
    assert first == again and A.tobytes() == B.tobytes()


@pytest.mark.parametrize("index", range(3))
def test_a_missed_value_is_seen(index):
    """The measure of values shows that the next one stands in its place."""
    rng = np.random.default_rng(index)
    A = rng.standard_normal((60, 40))
    U, s, Vh = np.linalg.svd(A, full_matrices=False)
    kept = [0, 2, 3]
    errors = partial_errors(A, U[:, kept], s[kept], Vh[kept])
    assert errors["residual"] <= PARTIAL_BOUND < errors["values"]
    assert partial_errors(A, *linalg.svds(A, 3))["values"] <= PARTIAL_BOUND
