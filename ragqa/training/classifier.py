"""A transformer with one output per label: loaded to be trained, written as the folder that ragqa loads.

This module imports torch.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from ragqa.errors import ModelError
from ragqa.inference.torch_engine import quiet_transformers
from ragqa.training.model_folder import write_manifest

if TYPE_CHECKING:
    from transformers import PreTrainedModel

WEIGHTS = "model.safetensors"


def load_classifier(
    base: Path, labels: Sequence[str], *, dropout: float, seed: int, frozen_words: bool = True
) -> PreTrainedModel:
    """The model in ``base``, on the GPU where there is one, in fp32; its outputs are kept where they are as many.

    New outputs are drawn with ``seed``; ``dropout`` is that between layers, in [0, 1). ``frozen_words`` leaves the word
    embeddings as they are: half of the weights, and they overfit first. Raises ModelError where there is no such model.
    """
    from transformers import AutoConfig, AutoModelForSequenceClassification

    torch.manual_seed(seed)
    try:
        with quiet_transformers():
            config = AutoConfig.from_pretrained(base, local_files_only=True)
            config.id2label = dict(enumerate(labels))
            config.label2id = {label: n for n, label in enumerate(labels)}
            config.attention_probs_dropout_prob = 0.0  # drawing that many random numbers takes a fifth of the time
            config.hidden_dropout_prob = dropout
            model: PreTrainedModel = AutoModelForSequenceClassification.from_pretrained(
                base,
                config=config,
                local_files_only=True,
                use_safetensors=True,
                dtype=torch.float32,
                ignore_mismatched_sizes=True,
                attn_implementation="eager",  # on processors faster than sdpa, whose backward pass is slow in bf16
            )
    except (OSError, ValueError) as error:
        msg = (
            f"expected a transformer with safetensors weights in {base}, found none that can be loaded "
            f"({str(error).strip()[:300]}); name another --base"
        )
        raise ModelError(msg) from error
    model.get_input_embeddings().requires_grad_(requires_grad=not frozen_words)
    model.to("cuda" if torch.cuda.is_available() else "cpu")  # type: ignore[arg-type]  # transformers does not type it
    return model


def export_classifier(model: PreTrainedModel, base: Path, out: Path, kind: str) -> None:
    """The weights in half precision with all that is needed to load them: config, tokenizer, MODEL.json of ``kind``."""
    from safetensors.torch import save_file

    tensors = {name: tensor.detach().cpu().half().contiguous() for name, tensor in model.state_dict().items()}
    save_file(tensors, out / WEIGHTS, metadata={"format": "pt"})
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(out)
    for file in base.glob("*token*"):
        if file.suffix == ".json":
            shutil.copyfile(file, out / file.name)
    write_manifest(out, kind, WEIGHTS)
