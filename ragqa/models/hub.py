"""Finds a Hugging Face hub model by name: in the local cache, else fetched. Pickled weights are never used."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path

from ragqa.errors import ModelError

logger = logging.getLogger(__name__)

WANTED = ["*.json", "*.safetensors", "*.txt", "*.model"]
UNWANTED = ["onnx/*", "openvino/*", "*/*"]  # other formats of the same weights, in subfolders
TIMEOUT_SECONDS = 8.0  # to reach the hub; without a network the look-up must fail quickly

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def is_hub_name(name: str) -> bool:
    """Whether this reads as ``organisation/model``; a path needs ``./`` or ``/`` before it."""
    return _NAME.fullmatch(name) is not None


def fetch(name: str, alternative: str) -> Path:
    """The folder of this model's files, fetched once and then read from the cache.

    Raises ModelError, naming the model and the ``alternative`` ("use the embedded …"), if the model is not cached and
    cannot be fetched, or if it has no safetensors weights.
    """
    os.environ.setdefault("HF_HUB_ETAG_TIMEOUT", str(int(TIMEOUT_SECONDS)))
    os.environ.setdefault("HF_HUB_DOWNLOAD_TIMEOUT", str(int(TIMEOUT_SECONDS)))
    from huggingface_hub import model_info, snapshot_download

    reason = ""
    folder = None
    for local_only in (True, False):
        try:
            if not local_only:
                model_info(name, timeout=TIMEOUT_SECONDS)  # snapshot_download would wait for a silent hub for ever
            folder = Path(
                snapshot_download(
                    name,
                    allow_patterns=WANTED,
                    ignore_patterns=UNWANTED,
                    local_files_only=local_only,
                    etag_timeout=TIMEOUT_SECONDS,
                )
            )
        except Exception as error:  # the library raises its own errors, requests' and plain ones
            reason = f"{type(error).__name__}: {str(error).strip().splitlines()[0][:200] if str(error).strip() else ''}"
            continue
        if any(folder.glob("*.safetensors")):
            return folder
    if folder is None:
        logger.debug("hub: %s", reason)
        raise ModelError(
            f"The model '{name}' is not on this machine and could not be fetched ({reason.rstrip(': ')}). Allow the "
            f"network once, or give a local folder with its files, or {alternative}."
        )
    raise ModelError(
        f"The model '{name}' has no safetensors weights, and pickled ones are never loaded. Save it once elsewhere "
        f"with transformers' save_pretrained(folder) and give that folder, or {alternative}."
    )
