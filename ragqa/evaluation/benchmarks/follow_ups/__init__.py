"""Follow-up questions with what a rewriting must say: how many are made to stand alone rightly."""
