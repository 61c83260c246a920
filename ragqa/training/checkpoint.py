"""A training that can be killed: its whole state in one safetensors file, replaced in one rename. No pickle."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

import torch

from ragqa.errors import ModelError

FILE = "checkpoint.safetensors"
MOMENTS = ("exp_avg", "exp_avg_sq")  # what AdamW keeps per parameter, beside its step
NOT_STAMPED = {"checkpoint_every", "stop_after"}  # settings that decide how often a run is saved, not what it learns


def stamp_of(settings: Mapping[str, object], *sha256: str) -> str:
    """One sha256 of all that decides a run: its settings, and the sha256 of the base's weights and of the data."""
    deciding = {name: value for name, value in settings.items() if name not in NOT_STAMPED}
    return hashlib.sha256(json.dumps([deciding, *sha256], sort_keys=True).encode()).hexdigest()


def save_checkpoint(folder: Path, model: torch.nn.Module, optimizer: torch.optim.AdamW, step: int, stamp: str) -> None:
    """Trained parameters, AdamW's moments and the number of finished steps; ``stamp`` names settings and data."""
    from safetensors.torch import save_file

    tensors: dict[str, torch.Tensor] = {}
    for name, parameter in _trained(model):
        tensors[f"parameter/{name}"] = parameter.detach().cpu().contiguous()
        for moment in MOMENTS:
            if parameter in optimizer.state:
                tensors[f"{moment}/{name}"] = optimizer.state[parameter][moment].cpu().contiguous()
    aside = folder / f"{FILE}.new"
    save_file(tensors, aside, metadata={"step": str(step), "stamp": stamp})
    os.replace(aside, folder / FILE)  # noqa: PTH105 - a crash leaves the old file or the new one


def load_checkpoint(folder: Path, model: torch.nn.Module, optimizer: torch.optim.AdamW, stamp: str) -> int:
    """Puts the saved state in place and gives the number of finished steps; 0 where nothing was saved.

    Raises ModelError where the file belongs to other settings or data, or cannot be read.
    """
    from safetensors import SafetensorError, safe_open

    file = folder / FILE
    if not file.is_file():
        return 0
    try:
        with safe_open(file, framework="pt") as saved:
            metadata = saved.metadata()
            tensors = {name: saved.get_tensor(name) for name in saved.keys()}  # noqa: SIM118 - no mapping
    except (OSError, SafetensorError) as error:
        msg = f"{file} cannot be read ({error}); delete it to begin the training anew."
        raise ModelError(msg) from error
    if metadata.get("stamp") != stamp:
        msg = f"{file} is of a training with other settings or data; choose another --out folder, or delete the file."
        raise ModelError(msg)
    step = int(metadata["step"])
    for name, parameter in _trained(model):
        parameter.data.copy_(tensors[f"parameter/{name}"])
        if f"exp_avg/{name}" in tensors:
            state = {moment: tensors[f"{moment}/{name}"].to(parameter.device) for moment in MOMENTS}
            optimizer.state[parameter] = {"step": torch.tensor(float(step), device=parameter.device), **state}
    return step


def _trained(model: torch.nn.Module) -> list[tuple[str, torch.nn.Parameter]]:
    return [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
