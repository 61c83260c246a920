"""`ragqa score`: answers written elsewhere, scored with RePASs; results in the reference's format."""
