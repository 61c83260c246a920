"""Makes a benchmark and training set from any corpus; see the README in this folder."""
