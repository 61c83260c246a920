"""The parts of a running server: the run queue, memory, access control and the interface for programs."""
