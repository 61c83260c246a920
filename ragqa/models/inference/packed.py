"""Weights of a fine-tuned BERT in a quarter of the space: int8 rows with a scale each, word embeddings of its base.

A folder with ``packed.safetensors`` holds matrices as int8 beside ``NAME.scale`` (float32, one per row), all else in
fp16, and in the file's metadata the folder beside it whose word embeddings it shares, with their sha256.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ragqa.errors import ModelError

PACKED: Final = "packed.safetensors"
SCALE: Final = ".scale"
LARGEST = 127  # of an int8
LEAST_ROWS = 8  # a matrix with fewer is a head, and stays in fp16

Weights = Mapping[str, npt.NDArray[Any]]


def is_packed(folder: Path) -> bool:
    """Whether the folder holds packed weights."""
    return (folder / PACKED).is_file()


def pack(weights: Weights, base: Weights, base_name: str, file: Path) -> tuple[str, ...]:
    """Writes ``file`` and gives the names that it shares with ``base``, equal tensors of 2 D."""
    from safetensors.numpy import save_file

    kept: dict[str, npt.NDArray[Any]] = {}
    shared = []
    for name, tensor in weights.items():
        if name in base and tensor.ndim == 2 and np.array_equal(base[name], tensor):
            shared.append(name)
        elif tensor.ndim == 2 and len(tensor) >= LEAST_ROWS:
            rows = tensor.astype(np.float32)
            scale = np.maximum(np.abs(rows).max(axis=1) / LARGEST, np.finfo(np.float32).tiny)
            kept[name] = np.rint(rows / scale[:, None]).astype(np.int8)
            kept[name + SCALE] = scale.astype(np.float32)
        else:
            kept[name] = tensor.astype(np.float16)
    metadata = {"base": base_name, "shared": ",".join(shared), "shared_sha256": _sha256(base, shared)}
    save_file(kept, file, metadata=metadata)
    return tuple(shared)


def unpack(folder: Path) -> dict[str, npt.NDArray[Any]]:
    """All weights by name, float32 where they were packed. Raises ModelError where the base's are others."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(folder / PACKED, framework="np") as file:
            metadata = file.metadata()
            kept = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
        shared = [name for name in metadata["shared"].split(",") if name]
        base_folder = folder.parent / metadata["base"]
        base = _tensors(base_folder) if shared else {}
        found = _sha256(base, shared)
    except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
        msg = (
            f"The packed weights in {folder} cannot be read ({type(error).__name__}: {str(error).strip()[:300]}); "
            "expected packed.safetensors, and its base in the folder beside it. Reinstall ragqa."
        )
        raise ModelError(msg) from error
    if found != metadata["shared_sha256"]:
        msg = (
            f"{folder} shares weights with {base_folder}, and these are others: expected sha256 "
            f"{metadata['shared_sha256']}, found {found}; reinstall ragqa."
        )
        raise ModelError(msg)
    weights = {name: base[name] for name in shared}
    for name, tensor in kept.items():
        if not name.endswith(SCALE):
            scale = kept.get(name + SCALE)
            weights[name] = tensor if scale is None else tensor.astype(np.float32) * scale[:, None]
    return weights


def _tensors(folder: Path) -> dict[str, npt.NDArray[Any]]:
    from safetensors.numpy import load_file

    return {name: tensor for file in sorted(folder.glob("*.safetensors")) for name, tensor in load_file(file).items()}


def _sha256(weights: Weights, names: list[str]) -> str:
    digest = hashlib.sha256()
    for name in names:
        digest.update(np.ascontiguousarray(weights[name]).tobytes())
    return digest.hexdigest()
