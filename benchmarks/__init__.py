"""Times tsvd beside its peers, and reproduces the seed's published tables.

Run from the checkout: ``python -m benchmarks --help``.
"""
