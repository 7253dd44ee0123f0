"""Repeats the published tables of Givens rotations, dense matrices, Jacobi and inverses.

Run from the checkout: ``python -m tools.published --help``.
"""
