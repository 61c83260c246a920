"""Corpora that somebody keeps on this machine: their files, what is read of them, their versions, their index."""
