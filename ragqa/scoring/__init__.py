"""An answer scored: RePASs as published, and verdicts of our own beside it."""
