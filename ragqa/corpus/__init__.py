"""Sources of passages; `formats` reads any of them, each format has a module or a room of its own."""
