"""Transformers on a few cores: a BERT as an OpenVINO graph, precision, batches, token ids, turns between sessions."""
