"""ragqa for programs: over HTTP beside the page, and as tools for assistants. See README.md."""
