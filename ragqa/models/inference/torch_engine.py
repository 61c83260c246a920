"""A sequence classifier of any architecture with transformers and torch, on the GPU if there is one."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ragqa.errors import ModelError
from ragqa.models.inference.pair_encoding import Inputs
from ragqa.models.inference.weights import needs_base, read_weights, tokenizer_folder

logger = logging.getLogger(__name__)


class TorchEngine:
    """A loaded model. Not thread-safe: its owner must lock it."""

    def __init__(self, folder: Path, precision: str) -> None:
        """Loads ``folder``'s safetensors and nothing else. Raises ModelError."""
        import torch
        from transformers import AutoModelForSequenceClassification

        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.precision = precision
        try:
            with quiet_transformers():
                if needs_base(folder):
                    model = classifier_of(folder)
                else:
                    model, told = AutoModelForSequenceClassification.from_pretrained(
                        folder,
                        local_files_only=True,
                        use_safetensors=True,
                        dtype=torch.float32,
                        output_loading_info=True,
                    )
                    _check_whole(told["missing_keys"])
        except Exception as error:
            raise ModelError(
                f"The model in {folder} cannot be loaded ({_said(error)}); expected "
                "a sequence-classification model with safetensors weights. Choose another folder, or an embedded model."
            ) from error
        self._model = model.eval().to(self.device)
        self._names = set(inspect.signature(model.forward).parameters)
        if precision == "bf16" and not self._computes():
            logger.warning("%s cannot be computed in bf16 by this version of transformers; fp32 is used", folder.name)
            self.precision = "fp32"
        logger.info("loaded %s on %s", folder, self.device)

    def infer(self, batches: Sequence[Inputs]) -> list[npt.NDArray[np.float32]]:
        """float32 arrays of shape (n_rows, n_labels), one per batch of int64 inputs of shape (n_rows, n_tokens)."""
        return [self._infer(inputs) for inputs in batches]

    def _infer(self, inputs: Inputs) -> npt.NDArray[np.float32]:
        import torch

        tensors = {name: torch.from_numpy(rows).to(self.device) for name, rows in inputs.items() if name in self._names}
        with torch.inference_mode(), torch.autocast(self.device, torch.bfloat16, enabled=self.precision == "bf16"):
            found = self._model(**tensors).logits
        numbers: npt.NDArray[np.float32] = found.float().cpu().numpy()
        return numbers

    def _computes(self) -> bool:
        """Whether a small batch can be computed; DeBERTa's first version, for example, fails in bf16."""
        ones = np.ones((1, 8), np.int64)
        try:
            self._infer({"input_ids": ones, "attention_mask": ones, "token_type_ids": ones - 1})
        except RuntimeError:
            return False
        return True


def classifier_of(folder: Path, config: Any = None) -> Any:  # noqa: ANN401 - a model of transformers
    """The packed or adapted classifier in this folder, in float32. Raises ModelError.

    ``config`` replaces its own; weights that the folder lacks are then random, to be trained. Else raises ValueError.
    """
    import torch
    from transformers import AutoConfig, AutoModelForSequenceClassification

    auto: Any = AutoModelForSequenceClassification  # its class methods are not annotated
    model = auto.from_config(config or AutoConfig.from_pretrained(folder, local_files_only=True))
    weights = {name: torch.from_numpy(tensor.astype(np.float32)) for name, tensor in read_weights(folder).items()}
    found = model.load_state_dict(weights, strict=False)
    if config is None:
        _check_whole(name for name in found.missing_keys if not name.endswith("position_ids"))  # which are no weights
    return model


def _check_whole(missing: Iterable[str]) -> None:
    """Raises ValueError if a weight is missing: transformers would take random numbers in its place."""
    names = sorted(missing)
    if names:
        raise ValueError(f"{len(names)} of its weights are missing, such as {names[0]}")


def graphics_card() -> str:
    """The name of the graphics card that torch uses; "" if it uses the processor."""
    import torch

    return str(torch.cuda.get_device_name()) if torch.cuda.is_available() else ""


def torch_version() -> str:
    """PyTorch's version without its build."""
    import torch

    return str(torch.__version__).partition("+")[0]


def load_tokenizer(folder: Path) -> Any:  # noqa: ANN401 - a tokenizers.Tokenizer
    """The fast tokenizer of a folder, or of an adapter's base, converted by transformers. Raises ModelError."""
    from transformers import AutoTokenizer

    try:
        with quiet_transformers():
            return AutoTokenizer.from_pretrained(
                tokenizer_folder(folder), local_files_only=True, use_fast=True
            ).backend_tokenizer
    except Exception as error:
        raise ModelError(
            f"The tokenizer in {folder} cannot be loaded ({_said(error)}); expected a tokenizer.json, or "
            "files that transformers can convert to one. Choose an embedded model, or add the file."
        ) from error


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Within this context, transformers prints only errors, and no progress bars."""
    from transformers.utils import logging as transformers_logging

    display: Any = transformers_logging  # its functions are not annotated
    showed_progress, verbosity = display.is_progress_bar_enabled(), display.get_verbosity()
    display.disable_progress_bar()
    display.set_verbosity_error()
    try:
        yield
    finally:
        display.set_verbosity(verbosity)
        if showed_progress:
            display.enable_progress_bar()


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip()[:300]}"
