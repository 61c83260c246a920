"""Benchmarks: from data sets to measures. Formulas come from libraries where these have them."""
