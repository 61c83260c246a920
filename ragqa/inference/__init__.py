"""Transformers here: a classifier by OpenVINO on a few cores or by PyTorch, its batches, precision and turns."""
