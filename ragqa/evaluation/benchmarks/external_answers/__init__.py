"""`ragqa score`: answers written elsewhere, scored with RePASs; results as the reference writes them."""
