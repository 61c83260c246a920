"""What happens while a question is answered: the pipeline's events, those of a generator, those of a scorer."""
