"""The page Benchmarks: a form, runs in the background and their results, for any benchmark and knowing none."""
