"""Fan-out questions: a question is taken apart, each part is retrieved and answered for, and the answers are joined."""
