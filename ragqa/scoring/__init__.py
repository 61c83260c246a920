"""Scores an answer: RePASs as published, and verdicts of our own beside it."""
