"""What the tests, the benchmarks, the verification and the tools share; none of it is installed."""
