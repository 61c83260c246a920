"""Fan-out: splits a question into sub-questions, retrieves and answers for each, and joins the answers."""
