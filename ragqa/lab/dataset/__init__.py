"""A benchmark and training set made of any corpus: see the README of this room."""
