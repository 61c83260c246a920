"""What the page knows: views, runs, addresses, shared resources."""
