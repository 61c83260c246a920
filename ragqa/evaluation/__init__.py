"""Datasets -> metrics. Formulas that a library has are the library's."""
