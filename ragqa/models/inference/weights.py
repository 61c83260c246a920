"""The weights of a model's folder: safetensors as they are, packed, or with a low-rank adapter merged in.

In ``packed.safetensors``, matrices are int8 with a ``NAME.scale`` (float32, one per row) and all else is fp16. The
file's metadata names a neighbouring folder whose word embeddings it shares, with their sha256. A folder with an adapter
alone names a neighbouring folder, too, the model that it changes. Its tensors have PEFT's names; factors that ragqa
packed are int8 with scales, which PEFT cannot read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ragqa.errors import ModelError
from ragqa.models import fingerprint, manifest_of

PACKED: Final = "packed.safetensors"
SCALE: Final = ".scale"
LARGEST = 127  # of an int8
LEAST_ROWS = 8  # a matrix with fewer rows is a head and stays in fp16
ADAPTER_CONFIG: Final = "adapter_config.json"
ADAPTER_WEIGHTS: Final = "adapter_model.safetensors"
PREFIX: Final = "base_model.model."

Weights = Mapping[str, npt.NDArray[Any]]


def needs_base(folder: Path) -> bool:
    """Whether the folder's weights can be read only with those of a neighbouring one: packed, or an adapter."""
    return is_packed(folder) or (folder / ADAPTER_CONFIG).is_file()


def is_packed(folder: Path) -> bool:
    """Whether the folder holds packed weights."""
    return (folder / PACKED).is_file()


def pack(weights: Weights, base: Weights, base_name: str, file: Path) -> tuple[str, ...]:
    """Writes ``file``; returns the names of the equal 2-D tensors that it shares with ``base``."""
    from safetensors.numpy import save_file

    kept: dict[str, npt.NDArray[Any]] = {}
    shared = []
    for name, tensor in weights.items():
        if name in base and tensor.ndim == 2 and np.array_equal(base[name], tensor):
            shared.append(name)
        elif tensor.ndim == 2 and len(tensor) >= LEAST_ROWS:
            kept |= rounded(name, tensor)
        else:
            kept[name] = tensor.astype(np.float16)
    metadata = {"base": base_name, "shared": ",".join(shared), "shared_sha256": _sha256(base, shared)}
    save_file(kept, file, metadata=metadata)
    return tuple(shared)


def rounded(name: str, matrix: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    """The matrix in int8, and ``NAME.scale``."""
    rows = matrix.astype(np.float32)
    scale = np.maximum(np.abs(rows).max(axis=1) / LARGEST, np.finfo(np.float32).tiny)
    return {name: np.rint(rows / scale[:, None]).astype(np.int8), name + SCALE: scale.astype(np.float32)}


def restored(kept: Weights) -> dict[str, npt.NDArray[Any]]:
    """The tensors by name, without the scales: float32 where they were `rounded`, else as they are."""
    found = {}
    for name, tensor in kept.items():
        if not name.endswith(SCALE):
            scale = kept.get(name + SCALE)
            found[name] = tensor if scale is None else np.multiply(tensor, scale[:, None], dtype=np.float32)
    return found


def unpack(folder: Path) -> dict[str, npt.NDArray[Any]]:
    """All weights by name, float32 where they were packed. Raises ModelError if the base's weights differ."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(folder / PACKED, framework="np") as file:
            metadata = file.metadata()
            kept = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
        shared = [name for name in metadata["shared"].split(",") if name]
        base_folder = folder.parent / metadata["base"]
        base = _tensors(base_folder, shared)
        found = _sha256(base, shared)
    except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"The packed weights in {folder} cannot be read ({type(error).__name__}: {str(error).strip()[:300]}); "
            "expected packed.safetensors, and its base in the folder beside it. Reinstall ragqa."
        ) from error
    if found != metadata["shared_sha256"]:
        raise ModelError(
            f"{folder} shares weights with {base_folder}, and these are others: expected sha256 "
            f"{metadata['shared_sha256']}, found {found}; reinstall ragqa."
        )
    return {name: base[name] for name in shared} | restored(kept)


def _tensors(folder: Path, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """The tensors of these names in the folder's safetensors files."""
    from safetensors import safe_open

    found: dict[str, npt.NDArray[Any]] = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="np") as file:
            found |= {name: file.get_tensor(name) for name in file.keys() if name in names}  # noqa: SIM118
    return found


def _sha256(weights: Weights, names: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for name in names:
        digest.update(np.ascontiguousarray(weights[name]).data)
    return digest.hexdigest()


def read_weights(folder: Path) -> dict[str, npt.NDArray[Any]]:
    """Every tensor by name: unpacked if packed, those of its base with an adapter merged in. Raises ModelError."""
    if is_packed(folder):
        return unpack(folder)
    if (folder / ADAPTER_CONFIG).is_file():
        return merge_adapter(read_weights(base_of(folder)), folder)
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    weights: dict[str, npt.NDArray[Any]] = {}
    try:
        for file in sorted(folder.glob("*.safetensors")):
            weights.update(load_file(file))
    except (OSError, SafetensorError, ValueError) as error:
        raise unreadable(folder, error) from error
    return weights


def base_of(folder: Path) -> Path:
    """The neighbouring folder of the model that this adapter changes. Raises ModelError if it is another model."""
    base = folder.parent / _base_named(folder)
    expected, found = manifest_of(folder).get("base"), fingerprint(base)
    if found != expected:
        msg = f"{folder} changes the model {base}, expected sha256 {expected}, found {found}; reinstall ragqa."
        raise ModelError(msg)
    return base


def adapter_below(folder: Path) -> Path | None:
    """The neighbouring adapter that this one changes; None where it changes a whole model. Raises ModelError."""
    named = folder.parent / _base_named(folder)
    return base_of(folder) if (named / ADAPTER_CONFIG).is_file() else None


def _base_named(folder: Path) -> str:
    try:
        config = json.loads((folder / ADAPTER_CONFIG).read_text(encoding="utf-8"))
        return str(config["base_model_name_or_path"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise unreadable(folder, error) from error


def tokenizer_folder(folder: Path) -> Path:
    """The folder that holds the model's tokenizer: that of its base for an adapter without one. Raises ModelError."""
    is_alone = (folder / "tokenizer.json").is_file() or not (folder / ADAPTER_CONFIG).is_file()
    return folder if is_alone else tokenizer_folder(base_of(folder))


def unreadable(folder: Path, error: Exception) -> ModelError:
    """The error of weights that cannot be loaded."""
    return ModelError(
        f"The weights in {folder} cannot be loaded ({type(error).__name__}: {str(error).strip()[:300]}); expected "
        "those of a BERT. Reinstall ragqa, or choose an embedded model."
    )


def merge_adapter(weights: Mapping[str, npt.NDArray[Any]], folder: Path) -> dict[str, npt.NDArray[Any]]:
    """The weights with this folder's low-rank adapter (PEFT's format) merged in; changed weights are float32.

    ``W' = W + (lora_alpha / r) * B A`` (Hu et al. 2021, https://arxiv.org/abs/2106.09685, section 4.1). The folder
    holds ``adapter_config.json``, and ``adapter_model.safetensors`` with ``base_model.model.LAYER.lora_A.weight`` and
    ``lora_B``, as they are or `rounded`. Modules that the former lists in ``modules_to_save``, such as a classifier,
    are complete in the latter and are added. Raises ModelError if it is no LoRA adapter, or one of another model.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        config = json.loads((folder / ADAPTER_CONFIG).read_text(encoding="utf-8"))
        scale = float(config["lora_alpha"]) / int(config["r"])
        stored = restored(load_file(folder / ADAPTER_WEIGHTS))
        tensors = {name.removeprefix(PREFIX): tensor for name, tensor in stored.items()}
        whole = tuple(f"{module}." for module in config.get("modules_to_save") or ())
    except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError, SafetensorError) as error:
        raise ModelError(
            f"expected a LoRA adapter in PEFT's format in {folder}, found something else ({type(error).__name__}: "
            f"{error}); name another folder, or leave the adapter out"
        ) from error
    other = ("use_dora", "use_rslora", "rank_pattern", "alpha_pattern")  # scale layers otherwise than alpha / r
    if config.get("peft_type", "LORA") != "LORA" or any(config.get(name) for name in other):
        raise _other(folder, "plain LoRA", "another kind of adapter")
    factors = {name: tensor for name, tensor in tensors.items() if not name.startswith(whole)}
    merged = {**weights, **{name: tensor for name, tensor in tensors.items() if name not in factors}}
    layers = {name.removesuffix(".lora_A.weight") for name in factors if name.endswith(".lora_A.weight")}
    if len(factors) != 2 * len(layers):
        raise _other(folder, "a lora_A and a lora_B per layer", f"{len(factors)} tensors of {len(layers)} layers")
    for layer in sorted(layers):
        name = layer + ".weight"
        down, up = factors[f"{layer}.lora_A.weight"], factors.get(f"{layer}.lora_B.weight")
        if name not in merged or up is None or merged[name].shape != (up.shape[0], down.shape[1]):
            raise _other(folder, f"factors that fit {name} of the model", "others")
        change = scale * (up.astype(np.float32) @ down.astype(np.float32))
        merged[name] = merged[name].astype(np.float32) + change
    return merged


def _other(folder: Path, expected: str, found: str) -> ModelError:
    return ModelError(f"expected {expected} in the adapter {folder}, found {found}; name the adapter of this model")
