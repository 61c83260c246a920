"""The state of the page: views, runs, addresses, shared resources."""
