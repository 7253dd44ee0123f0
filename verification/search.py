"""What an evolutionary search is made of; evolve.py runs it."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Search:
    """What a search looks for, and how.

    measure(matrix, goal, method, device): (value, limit); None: there is none. beginner(rng, dtype)
    and child(rng, kept, dtype) make matrices, the latter from kept [(share, matrix)].
    record(matrix): all that makes it again, for a JSON file.
    """

    goals: tuple
    dtypes: tuple  # of real numbers, or of the parts of complex ones
    methods: tuple  # of "any"
    measure: Callable
    beginner: Callable
    child: Callable
    record: Callable
