"""Times tsvd beside its peers; repeats the published tables of the pipeline of Givens rotations.

Run from the checkout: ``python -m benchmarks --help``.
"""
