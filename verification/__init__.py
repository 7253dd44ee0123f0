"""Random draws and searches for the worst matrices, each result checked in every measure.

Run from the checkout: ``python -m verification --help``.
"""
