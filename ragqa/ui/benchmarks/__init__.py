"""The evaluation page's parts: what can be run, how it runs in the background, what it looks like."""
