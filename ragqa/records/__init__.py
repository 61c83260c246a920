"""Answers on disk: what a record is, where it is stored, how it is written while a question runs."""
