"""Computing transformers by OpenVINO on a few cores, or by PyTorch. Start at `ragqa.models.inference.classifier`."""
