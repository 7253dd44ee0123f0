"""Times tsvd beside its peers.

Run from the checkout: ``python -m benchmarks --help``.
"""
