"""Runs transformers with OpenVINO on a few cores, or with PyTorch. Start at `ragqa.models.inference.classifier`."""
