"""Packs a trained classifier for git and wheels: as int8 matrices with a base, or as low-rank factors of a body."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ragqa.errors import ModelError
from ragqa.lab.training.loop import WEIGHTS
from ragqa.models import ADAPTED, fingerprint, manifest_of, resolve_model, write_manifest
from ragqa.models.inference.weights import (
    ADAPTER_CONFIG,
    ADAPTER_WEIGHTS,
    LEAST_ROWS,
    PACKED,
    PREFIX,
    pack,
    read_weights,
    rounded,
)

HALF_STEP = 2.0**-10  # relative rounding error in half precision
SMALLEST = 2.0**-24  # positive number in half precision
HEAD = "classifier."
MATRIX = 2  # dimensions
TOKENIZER = "tokenizer.json"
COPIED = ("config.json", TOKENIZER, "tokenizer_config.json", "README.md")


def pack_model(folder: Path, base: Path, out: Path, earlier: Path | None = None, share: float = 0.5) -> tuple[str, ...]:
    """Packs the model of ``folder`` into ``out``, which must be beside ``base``; returns the shared names.

    With ``earlier``, the weights from which its training started, a mean of both is packed, with ``share`` for the new
    ones (Wortsman et al. 2022). The mean keeps more of what only one of the trainings taught. Raises ModelError.
    """
    from safetensors.numpy import load_file

    _check_beside(base, out)
    weights = load_file(folder / WEIGHTS)
    if earlier:
        others = load_file(earlier / WEIGHTS)
        if {name: one.shape for name, one in weights.items()} != {name: one.shape for name, one in others.items()}:
            raise ModelError(f"expected the tensors of {folder} in {earlier}, found others; name what it began with")
        weights = {name: _mean(one, others[name], share) for name, one in weights.items()}
    out.mkdir(parents=True, exist_ok=True)
    shared = pack(weights, load_file(base / WEIGHTS), base.name, out / PACKED)
    _copy(folder, out)
    write_manifest(out, manifest_of(folder)["kind"], PACKED)
    return shared


def _check_beside(base: Path, out: Path) -> None:
    if out.resolve().parent != base.resolve().parent:
        msg = f"expected --out beside the base {base.resolve()}, whose weights it needs, got {out.resolve()}"
        raise ModelError(f"{msg}; write to {base.resolve().parent / out.name}")


def _mean(tensor: npt.NDArray[Any], other: npt.NDArray[Any], share: float) -> npt.NDArray[Any]:
    """The weighted mean; equal numbers, as in frozen word embeddings, stay exact, so that a base can share them."""
    return np.where(tensor == other, tensor, share * tensor + (1 - share) * other)


def pack_adapter(folder: Path, body: Path, rank: int, out: Path) -> float:
    """Writes the difference of the classifier in ``folder`` from ``body`` as an adapter.

    ``body`` is a safetensors file, or the folder of a model, beside which ``out`` must be and from which it is read;
    for a bundled adapter of a fetched model (`ADAPTED`), the weights are those of the joined model.
    For matrices that differ, the ``rank`` largest singular triples of the difference are kept, in int8 (`rounded`), as
    is the classifier.
    Returns the largest share, in [0, 1], of a difference's norm that is lost. Raises ModelError if the two do not fit.
    """
    from safetensors.numpy import load_file, save_file

    prefix = json.loads((folder / "config.json").read_text(encoding="utf-8"))["model_type"] + "."
    is_model = body.is_dir()
    if is_model:
        _check_beside(body, out)
    joined = resolve_model(body.name) if body.name in ADAPTED else body
    trained, known = load_file(folder / WEIGHTS), read_weights(joined) if is_model else load_file(body)
    kept: dict[str, npt.NDArray[Any]] = {}
    for name, tensor in trained.items():
        if name.startswith(HEAD):
            is_large = tensor.ndim == MATRIX and len(tensor) >= LEAST_ROWS
            kept |= rounded(PREFIX + name, tensor) if is_large else {PREFIX + name: tensor.astype(np.float16)}
    layers, left_out = [], 0.0
    for name, tensor in trained.items():
        base = known.get(name if is_model else name.removeprefix(prefix))
        if name.startswith(HEAD) or (base is not None and _is_rounded(tensor, base)):
            continue
        if base is None or base.shape != tensor.shape or tensor.ndim != MATRIX:
            msg = f"expected {body} to have {name} but for a matrix's change, found another tensor; name its own body"
            raise ModelError(msg)
        u, sizes, v = np.linalg.svd(tensor.astype(np.float32) - base.astype(np.float32), full_matrices=False)
        left_out = max(left_out, float(np.sqrt((sizes[rank:] ** 2).sum() / (sizes**2).sum())))
        layer = name.removesuffix(".weight")
        kept |= rounded(f"{PREFIX}{layer}.lora_A.weight", sizes[:rank, None] * v[:rank])
        kept |= rounded(f"{PREFIX}{layer}.lora_B.weight", u[:, :rank])
        layers.append(layer)
    out.mkdir(parents=True, exist_ok=True)
    save_file(kept, out / ADAPTER_WEIGHTS, metadata={"format": "pt"})
    settings = {
        "peft_type": "LORA",
        "task_type": "SEQ_CLS",
        "base_model_name_or_path": body.name if is_model else body.stem,
        "r": rank,
        "lora_alpha": rank,
        "target_modules": sorted(layers),
        "modules_to_save": [HEAD.rstrip(".")],
    }
    (out / ADAPTER_CONFIG).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    _copy(folder, out)
    if is_model and (out / TOKENIZER).read_bytes() == (joined / TOKENIZER).read_bytes():
        (out / TOKENIZER).unlink()  # the body's is read
    base_sha256 = fingerprint(body) if is_model else ""
    write_manifest(out, manifest_of(folder).get("kind", "nli"), ADAPTER_WEIGHTS, base=base_sha256)
    return left_out


def _is_rounded(tensor: npt.NDArray[Any], base: npt.NDArray[Any]) -> bool:
    """Whether the two are equal up to rounding to half precision."""
    if tensor.shape != base.shape:
        return False
    rest = np.abs(tensor.astype(np.float32) - base.astype(np.float32))
    return bool((rest <= HALF_STEP * np.abs(base) + SMALLEST).all())


def _copy(folder: Path, out: Path) -> None:
    for name in COPIED:
        if (folder / name).is_file():
            shutil.copyfile(folder / name, out / name)
