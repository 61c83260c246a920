"""MODEL.json, which says what a folder of weights is and lets `ragqa.models.check_model` see whether it is whole."""

from __future__ import annotations

import json
from pathlib import Path

from ragqa.models import MANIFEST, fingerprint


def write_manifest(folder: Path, kind: str, weights: str) -> None:
    """For the file ``weights`` in ``folder``, written before: half-written, a folder then fails its check."""
    manifest = {"name": folder.name, "kind": kind, "weights": weights, "sha256": fingerprint(folder / weights)}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
