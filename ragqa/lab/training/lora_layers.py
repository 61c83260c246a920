"""Adds low-rank factors to BERT's linear layers and writes them in PEFT's format. This module imports torch.

``y = W x + (lora_alpha / r) * B A x`` (Hu et al. 2021, https://arxiv.org/abs/2106.09685, section 4.1): A is drawn at
random and B is 0, so that training starts from the unchanged model. `ragqa.models.inference.bert_graph` reads the files
written here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import nn

from ragqa.errors import ConfigError, ModelError
from ragqa.infra.files import replacing, write_whole
from ragqa.lab.training.loop import export_classifier, load_classifier, trains_in_bf16
from ragqa.models import write_manifest
from ragqa.models.inference.pair_encoding import encodable, padded_length
from ragqa.models.inference.weights import ADAPTER_CONFIG, ADAPTER_WEIGHTS, PREFIX, merge_adapter
from ragqa.retrieval.encoder import covers
from ragqa.retrieval.local_models import ADAPTER, EncoderWeights, weights_of
from ragqa.settings.schema import Precision

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

SCALE: Final = 2  # lora_alpha / r
TEXTS_PER_PASS: Final = 32  # of similar length, computed together
FARAWAY: Final = -1e9  # added to the attention scores of padding
TARGETS: Final = (  # of one layer
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)


class LoraLinear(nn.Module):
    """A frozen linear layer with trainable low-rank factors."""

    def __init__(self, linear: nn.Linear, rank: int, chance: torch.Generator) -> None:
        """``down`` is A, shape (rank, n_in), normal of variance 1 / n_in; ``up`` is B, shape (n_out, rank), 0."""
        super().__init__()
        n_in, device = linear.in_features, linear.weight.device
        self.linear = linear
        self.down = nn.Parameter((torch.randn(rank, n_in, generator=chance) / math.sqrt(n_in)).to(device))
        self.up = nn.Parameter(torch.zeros(linear.out_features, rank, device=device))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Maps shape (..., n_in) to (..., n_out)."""
        change = nn.functional.linear(nn.functional.linear(x, self.down), self.up)
        out: torch.Tensor = self.linear(x) + SCALE * change
        return out


def add_lora(model: nn.Module, n_layers: int, rank: int, seed: int) -> list[nn.Parameter]:
    """Freezes this BERT and adds trainable factors to its last ``n_layers`` layers; returns the factors.

    ``rank`` is at least 1. Raises ConfigError if the model has fewer layers.
    """
    n_all = len(model.get_submodule("encoder.layer")._modules)
    if not 1 <= n_layers <= n_all:
        msg = f"--layers must be 1 to {n_all}, the layers of this encoder, got {n_layers}; change it and try again"
        raise ConfigError(msg)
    model.requires_grad_(requires_grad=False)
    chance = torch.Generator().manual_seed(seed)
    factors: list[nn.Parameter] = []
    for number in range(n_all - n_layers, n_all):
        layers = model.get_submodule(f"encoder.layer.{number}")
        for target in [name for name, module in layers.named_modules() if isinstance(module, nn.Linear)]:
            parent, _, name = target.rpartition(".")
            owner = layers.get_submodule(parent)
            layer = LoraLinear(getattr(owner, name), rank, chance)
            setattr(owner, name, layer)
            factors += [layer.down, layer.up]
    return factors


def merge_lora(model: nn.Module) -> None:
    """Merges the factors into the weights and restores plain linear layers."""
    for name, layer in list(_lora_layers(model)):
        parent, _, last = name.rpartition(".")
        with torch.no_grad():
            layer.linear.weight += SCALE * layer.up @ layer.down
        setattr(model.get_submodule(parent), last, layer.linear)


def load_adaptable(
    base: Path,
    labels: Sequence[str],
    *,
    rank: int,
    frozen_layers: int,
    dropout: float,
    seed: int,
    frozen_words: bool = True,
) -> PreTrainedModel:
    """The model of `load_classifier`; with a ``rank``, factors of that rank are trained above its frozen layers.

    Raises ModelError, and ConfigError if there is no layer above.
    """
    frozen = 0 if rank else frozen_layers
    model = load_classifier(base, labels, dropout=dropout, seed=seed, frozen_words=frozen_words, frozen_layers=frozen)
    if rank:
        add_lora(model.base_model, int(model.config.num_hidden_layers) - frozen_layers, rank, seed)
    return model


def export_merged(model: PreTrainedModel, base: Path, out: Path, kind: str) -> None:
    """As `export_classifier`, with the factors, if any, merged into the weights."""
    merge_lora(model)
    export_classifier(model, base, out, kind)


def export_adapter(model: PreTrainedModel, folder: Path, base: str) -> None:
    """Writes the factors in half precision and their configuration; ``base`` is the name of their model.

    Each file is replaced in one rename; MODEL.json is written last and marks the folder as complete.
    """
    from safetensors.torch import save_file

    tensors: dict[str, torch.Tensor] = {}
    numbers: set[int] = set()
    rank = 0
    for name, layer in _lora_layers(model):
        tensors[f"{PREFIX}{name}.lora_A.weight"] = layer.down.detach().cpu().half().contiguous()
        tensors[f"{PREFIX}{name}.lora_B.weight"] = layer.up.detach().cpu().half().contiguous()
        numbers.add(int(name.split(".")[2]))  # encoder.layer.N. ...
        rank = layer.down.shape[0]
    config = {
        "peft_type": "LORA",
        "task_type": "FEATURE_EXTRACTION",
        "base_model_name_or_path": base,
        "r": rank,
        "lora_alpha": SCALE * rank,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": list(TARGETS),
        "layers_to_transform": sorted(numbers),
        "layers_pattern": "layer",
        "fan_in_fan_out": False,
        "use_dora": False,
        "use_rslora": False,
        "inference_mode": True,
    }
    with replacing(folder / ADAPTER_WEIGHTS) as new:
        save_file(tensors, new, metadata={"format": "pt"})
    write_whole(folder / ADAPTER_CONFIG, [json.dumps(config, indent=2) + "\n"])
    write_manifest(folder, ADAPTER, ADAPTER_WEIGHTS)


def _lora_layers(model: nn.Module) -> Iterator[tuple[str, LoraLinear]]:
    return ((name, module) for name, module in model.named_modules() if isinstance(module, LoraLinear))


class RetrieverModel:
    """A BERT with mean pooling and factors in its last layers, on the GPU if there is one."""

    def __init__(self, base: str, layers: int, rank: int, seed: int, precision: Precision = "auto") -> None:
        """Loads the base, named as for `weights_of`. The other arguments are those of `add_lora`.

        Raises ModelError if the base is no BERT with mean pooling, ConfigError for too many layers.
        """
        from transformers import AutoModel, AutoTokenizer

        found = weights_of(base)
        if not covers(found):
            msg = (
                f"expected a BERT with mean pooling and without prompts to train, found another encoder in "
                f"{base!r}; build the index with all-MiniLM-L6-v2, or a model of its kind"
            )
            raise ModelError(msg)
        self.base_sha256 = found.sha256
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(found.folder, local_files_only=True)
        self.bert: PreTrainedModel = AutoModel.from_pretrained(
            found.folder,
            local_files_only=True,
            use_safetensors=True,
            dtype=torch.float32,
            attn_implementation="eager",  # on CPUs faster than sdpa, whose backward pass is slow in bf16
        )
        _merge(self.bert, found)
        self.factors = add_lora(self.bert, layers, rank, seed)
        bert: Any = self.bert  # transformers types its parts as tensors or modules
        self._embeddings, self._layers = bert.embeddings, list(bert.encoder.layer)
        bert.to(self.device).eval()
        self._bf16 = trains_in_bf16(self.bert, self.base_sha256, precision)
        self._n_frozen = int(self.bert.config.num_hidden_layers) - layers

    @torch.no_grad()
    def lower(self, texts: Sequence[str], max_tokens: int) -> Iterator[list[tuple[int, torch.Tensor]]]:
        """Yields the frozen layers' output for 32 texts at a time: (position, fp16 of shape (n_tokens, width))."""
        limit = min(max_tokens, int(self.bert.config.max_position_embeddings))
        clean = [encodable(text) for text in texts]
        ids = self._tokenizer(clean, truncation=True, max_length=limit)["input_ids"] if clean else []
        tokens = [torch.tensor(row) for row in ids]
        for group in _groups(tokens):
            padded, mask = self._padded([tokens[n] for n in group])
            states = self._through(self._embeddings(input_ids=padded), mask, slice(0, self._n_frozen))
            yield [(n, states[row, : len(tokens[n])].half().cpu().clone()) for row, n in enumerate(group)]

    def upper(self, states: Sequence[torch.Tensor]) -> torch.Tensor:
        """Unit vectors from the states of `lower`, of shape (n_texts, width), float32."""
        rows: list[torch.Tensor] = [torch.empty(0)] * len(states)
        for group in _groups(states):
            hidden, mask = self._padded([states[n].float() for n in group])
            hidden = self._through(hidden, mask, slice(self._n_frozen, None)).float()
            means = (hidden * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
            for n, vector in zip(group, nn.functional.normalize(means, dim=1), strict=True):
                rows[n] = vector
        return torch.stack(rows)

    def encode(self, texts: Sequence[str], max_tokens: int = 128) -> torch.Tensor:
        """Unit vectors of the current model, of shape (n_texts, width), on its device. Needs at least one text."""
        known = dict(item for part in self.lower(texts, max_tokens) for item in part)
        with torch.no_grad():
            return self.upper([known[n] for n in range(len(texts))])

    def _through(self, hidden: torch.Tensor, mask: torch.Tensor, layers: slice) -> torch.Tensor:
        attention = (1 - mask)[:, None, None, :] * FARAWAY
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self._bf16):
            for layer in self._layers[layers]:
                out = layer(hidden, attention)
                hidden = out[0] if isinstance(out, tuple) else out
        return hidden

    def _padded(self, rows: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        """The rows stacked and padded with 0, and a mask (n_rows, n_tokens) that is 1 on text."""
        length = padded_length(max(len(row) for row in rows))  # few shapes, because torch keeps a kernel for each
        padded = rows[0].new_zeros((len(rows), length, *rows[0].shape[1:]))
        mask = torch.zeros(len(rows), length)
        for n, row in enumerate(rows):
            padded[n, : len(row)] = row
            mask[n, : len(row)] = 1
        return padded.to(self.device), mask.to(self.device)


def _groups(rows: Sequence[Any]) -> Iterator[list[int]]:
    """Positions, the shortest first, 32 at a time."""
    order = sorted(range(len(rows)), key=lambda n: len(rows[n]))
    return (order[start : start + TEXTS_PER_PASS] for start in range(0, len(order), TEXTS_PER_PASS))


def _merge(bert: PreTrainedModel, found: EncoderWeights) -> None:
    """Merges the adapters that the base already has."""
    for adapter in found.adapters:
        state = {name: tensor.numpy() for name, tensor in bert.state_dict().items()}
        bert.load_state_dict({name: torch.from_numpy(array) for name, array in merge_adapter(state, adapter).items()})
