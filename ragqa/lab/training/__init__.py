"""The training of all bundled models."""
