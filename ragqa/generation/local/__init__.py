"""A local language model, in a process of its own."""
