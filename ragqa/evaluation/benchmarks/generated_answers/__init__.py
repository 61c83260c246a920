"""`ragqa eval answers`: questions through the whole pipeline, each answer scored with RePASs; runs side by side."""
