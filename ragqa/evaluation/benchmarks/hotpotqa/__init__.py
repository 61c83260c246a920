"""Measures whether both documents are found for questions that need two."""
