"""A language model in a process of its own on this machine."""
