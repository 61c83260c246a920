"""Settings with ranges and sources, the environment, places on disk, presets."""
