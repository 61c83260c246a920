"""The page Benchmarks: a form, background runs and their results, without code for any single benchmark."""
