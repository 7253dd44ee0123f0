"""Compares two installations of tsvd: their bits, and their times.

Run from the checkout: ``python -m tools.compare --help``.
"""
