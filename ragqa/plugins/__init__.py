"""Every part by name: those that come with ragqa, those of other packages, and what a stage needs."""
