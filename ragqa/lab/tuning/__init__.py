"""Settings tuned on questions with gold passages."""
