"""Corpora managed on this machine: their files, the parsed documents, their versions and their index."""
