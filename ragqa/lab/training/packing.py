"""A trained classifier packed for git and wheels: int8 matrices, and the word embeddings of the model beside it."""

from __future__ import annotations

import shutil
from pathlib import Path

from ragqa.errors import ModelError
from ragqa.lab.training.loop import WEIGHTS
from ragqa.lab.training.model_folder import write_manifest
from ragqa.models import manifest_of
from ragqa.models.inference.bert_graph import PACKED, pack

COPIED = ("config.json", "tokenizer.json", "tokenizer_config.json", "README.md")


def pack_model(folder: Path, base: Path, out: Path) -> tuple[str, ...]:
    """Packs the model of ``folder`` into ``out``, which must stand beside ``base``; gives the names that are shared.

    Raises ModelError.
    """
    from safetensors.numpy import load_file

    if out.resolve().parent != base.resolve().parent:
        msg = f"expected --out beside the base {base.resolve()}, whose word embeddings it shares, got {out.resolve()}"
        msg += f"; write to {base.resolve().parent / out.name}"
        raise ModelError(msg)
    out.mkdir(parents=True, exist_ok=True)
    shared = pack(load_file(folder / WEIGHTS), load_file(base / WEIGHTS), base.name, out / PACKED)
    for name in COPIED:
        if (folder / name).is_file():
            shutil.copyfile(folder / name, out / name)
    write_manifest(out, manifest_of(folder)["kind"], PACKED)
    return shared
