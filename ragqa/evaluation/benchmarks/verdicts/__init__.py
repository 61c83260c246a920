"""Measures how often verdicts are wrong on a corpus, by probes made of its own sentences."""
