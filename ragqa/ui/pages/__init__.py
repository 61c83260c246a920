"""The pages and their parts."""
