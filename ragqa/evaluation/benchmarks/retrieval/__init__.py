"""Questions whose answering passages are known: what retrieval finds of them, ranking by ranking and fused."""
