"""Low-rank adapters in PEFT's format, added to a model's weights once, when it is loaded.

``W' = W + (lora_alpha / r) * B A`` (Hu et al. 2021, https://arxiv.org/abs/2106.09685, section 4.1). A folder holds
``adapter_config.json`` and ``adapter_model.safetensors`` with ``base_model.model.LAYER.lora_A.weight`` and ``lora_B``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ragqa.errors import ModelError

ADAPTER_CONFIG: Final = "adapter_config.json"
ADAPTER_WEIGHTS: Final = "adapter_model.safetensors"
PREFIX: Final = "base_model.model."


def merge_adapter(weights: Mapping[str, npt.NDArray[Any]], folder: Path) -> dict[str, npt.NDArray[Any]]:
    """The weights with this folder's adapter added to them, in float32 where it changes them.

    Raises ModelError where the folder is no LoRA adapter, or one of another model.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        config = json.loads((folder / ADAPTER_CONFIG).read_text(encoding="utf-8"))
        scale = float(config["lora_alpha"]) / int(config["r"])
        factors = load_file(folder / ADAPTER_WEIGHTS)
    except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError, SafetensorError) as error:
        msg = (
            f"expected a LoRA adapter in PEFT's format in {folder}, found something else ({type(error).__name__}: "
            f"{error}); name another folder, or leave the adapter out"
        )
        raise ModelError(msg) from error
    if config.get("peft_type", "LORA") != "LORA" or config.get("use_dora") or config.get("use_rslora"):
        raise _other(folder, "plain LoRA", "another kind of adapter")
    merged = dict(weights)
    layers = {name.removesuffix(".lora_A.weight") for name in factors if name.endswith(".lora_A.weight")}
    if len(factors) != 2 * len(layers):
        raise _other(folder, "a lora_A and a lora_B per layer", f"{len(factors)} tensors of {len(layers)} layers")
    for layer in sorted(layers):
        name = layer.removeprefix(PREFIX) + ".weight"
        down, up = factors[f"{layer}.lora_A.weight"], factors.get(f"{layer}.lora_B.weight")
        if name not in merged or up is None or merged[name].shape != (up.shape[0], down.shape[1]):
            raise _other(folder, f"factors that fit {name} of the model", "others")
        change = scale * (up.astype(np.float32) @ down.astype(np.float32))
        merged[name] = merged[name].astype(np.float32) + change
    return merged


def _other(folder: Path, expected: str, found: str) -> ModelError:
    return ModelError(f"expected {expected} in the adapter {folder}, found {found}; name the adapter of this model")
