"""`ragqa eval answers`: answers questions with the whole pipeline, scores answers with RePASs, compares runs."""
