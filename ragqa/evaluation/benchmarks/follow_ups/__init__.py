"""Measures how many follow-up questions are rewritten rightly as questions that stand alone."""
