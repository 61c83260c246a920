"""RePASs: sentences of an answer against sentences of its passages. Start at `ragqa.scoring.repass.scorer`."""
