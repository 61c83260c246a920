"""What a server needs while it runs: figures, logs, turns."""
