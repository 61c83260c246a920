"""Measures retrieval on questions with known gold passages, for each ranking and for the fused one."""
