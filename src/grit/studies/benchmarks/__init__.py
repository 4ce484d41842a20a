"""Benchmark results: the paper's Tables 1 to 4, the ablations, the number of walk steps, the asterisks."""
