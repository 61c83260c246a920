"""How often verdicts are wrong on a corpus: probes made of its own sentences, whose right verdict is known."""
