"""Joins a model from two parts: a base model that is fetched (`ragqa.models.catalogue`) and a bundled adapter.

The adapter's folder is as `merge_adapter` reads it, with the complete classifier, the config and the tokenizer. An
adapter may change the model that a neighbouring adapter makes; it then needs no tokenizer. The joined model is a
folder as transformers writes it, in half precision. Its MODEL.json names the adapter's digest, so that a folder joined
with another version of the adapter is rejected.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ragqa.errors import ModelError
from ragqa.models import MANIFEST, fingerprint, manifest_of, write_manifest

if TYPE_CHECKING:
    import numpy.typing as npt

TOKENIZER: Final = ("tokenizer.json", "tokenizer_config.json")
COPIED: Final = ("config.json", *TOKENIZER, "calibration.json")
WEIGHTS: Final = "model.safetensors"


def join_adapter(body: Path, adapter: Path, out: Path) -> Path:
    """Writes the joined model to the folder ``out`` and returns it; ``body`` is a file, ``adapter`` a folder.

    Raises ModelError if the two do not fit.
    """
    from safetensors.numpy import load_file, save_file

    from ragqa.models.inference.weights import adapter_below, merge_adapter

    prefix = json.loads((adapter / "config.json").read_text(encoding="utf-8"))["model_type"]
    named = {f"{prefix}.{name}": tensor for name, tensor in load_file(body).items() if "pooler" not in name}
    below = adapter_below(adapter)
    if below:  # it was trained from that model as it is joined
        named = {name: _half(tensor) for name, tensor in merge_adapter(named, below).items()}
    joined = {name: _half(tensor) for name, tensor in merge_adapter(named, adapter).items()}
    out.mkdir(parents=True, exist_ok=True)
    (out / MANIFEST).unlink(missing_ok=True)  # until the folder is complete again
    save_file(joined, out / WEIGHTS, metadata={"format": "pt"})
    files = [*(below / name for name in TOKENIZER if below), *(adapter / name for name in COPIED)]
    for file in files:
        if file.is_file():
            shutil.copyfile(file, out / file.name)
    write_manifest(out, manifest_of(adapter)["kind"], WEIGHTS, adapter=fingerprint(adapter))
    return out


def remove_joined(folder: Path) -> int:
    """Deletes a joined model; returns the number of bytes freed. Raises ModelError."""
    try:
        freed = sum(file.stat().st_size for file in folder.iterdir()) if folder.is_dir() else 0
        shutil.rmtree(folder, ignore_errors=not freed)
    except OSError as error:
        raise ModelError(f"expected to remove {folder}, found: {error.strerror or error}; check that folder") from error
    return freed


def _half(tensor: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The tensor in half precision; position ids stay integers."""
    import numpy as np

    return np.ascontiguousarray(tensor.astype(np.float16) if tensor.dtype.kind == "f" else tensor)
