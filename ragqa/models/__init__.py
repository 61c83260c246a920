"""Finds the folder of a model by name, and checks that its weights are the expected ones.

Each embedded model is a folder here with its weights, a model card (README.md) and a ``MODEL.json``::

    {"name": "nli-minilm-l6", "kind": "nli", "weights": "model.safetensors", "sha256": "..."}
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from ragqa.errors import ModelError
from ragqa.models.hub import fetch, is_hub_name
from ragqa.settings.paths import Paths

__all__ = [
    "ADAPTED",
    "ADAPTERS",
    "EMBEDDED",
    "check_model",
    "fingerprint",
    "joined_model",
    "manifest_of",
    "resolve_model",
    "shown_name",
    "write_manifest",
]

EMBEDDED = (
    *("nli-minilm-l6", "verifier-minilm-l6", "policies-minilm-l6", "answers-minilm-l12", "strength-minilm-l6"),
    "obligations-tfidf",
    *("ranker-regulation", "ranker-adgm", "ranker-adgm-large"),
)
ADAPTERS = ("encoder-adgm",)  # of encoders
ADAPTED = ("verifier-mpnet", "answers-mpnet")  # adapters whose base models are fetched
MANIFEST = "MODEL.json"
_ALTERNATIVES = {  # proposed in errors, by kind of model
    "obligations": "use the embedded 'obligations-tfidf'",
    "reranker": "leave the reranker out",
}

_HERE = Path(__file__).resolve().parent
_BLOCK_BYTES = 1 << 20


def resolve_model(name: str, kind: str = "") -> Path:
    """The folder of this model: an embedded name, the path of a local folder, or a name on the hub.

    Embedded names come first, so a folder of the same name in the working directory needs ``./`` before it; local
    folders come before the hub. ``kind`` decides which alternative an error proposes. Raises ModelError.
    """
    if name in (*EMBEDDED, *ADAPTERS):
        folder = _HERE / name
        if not folder.is_dir():
            raise ModelError(f"Embedded model '{name}' is missing from {_HERE}; reinstall ragqa.")
        return folder
    if name in ADAPTED:
        return joined_model(name, adapter_of(name), Paths.from_env().local_models)
    local = Path(name).expanduser() if name else None
    if local is not None and local.is_dir():
        return local.resolve()
    alternative = _ALTERNATIVES.get(kind, "use the embedded 'nli-minilm-l6'")
    if is_hub_name(name):
        return fetch(name, alternative)
    raise ModelError(
        f"No model '{name}': expected one of {', '.join((*EMBEDDED, *ADAPTED))}, the path of a local folder or a hub "
        f"name (organisation/model). Correct the name, or {alternative}."
    )


def adapter_of(name: str) -> Path:
    """The folder of the bundled adapter of this name, one of `ADAPTED`."""
    return _HERE / name


def joined_model(name: str, adapter: Path, folder: Path) -> Path:
    """The folder of this joined model in ``folder``. Raises ModelError if it is missing or has another adapter."""
    found = folder / name
    if not (found / MANIFEST).is_file():
        msg = f"expected the model {name} in {folder}, found none; fetch it (440 MB): ragqa models fetch {name}"
        raise ModelError(msg)
    if manifest_of(found).get("adapter") != fingerprint(adapter):
        msg = f"expected {found} of this version of ragqa, found another; fetch it again: ragqa models fetch {name}"
        raise ModelError(msg)
    return found


def shown_name(name: str, folder: Path) -> str:
    """The model's name in records: its hub name, else the name of its folder."""
    return folder.name if name in (*EMBEDDED, *ADAPTED) or Path(name).expanduser().is_dir() else name


def fingerprint(path: Path) -> str:
    """sha256, in hexadecimal, of the model's weights file; ``path`` is its folder or the file itself.

    Weights in several files (a sharded model) are hashed one after the other, in the order of their names.
    """
    digest = hashlib.sha256()
    for file in _weights_files(path):
        try:
            with file.open("rb") as stream:
                while block := stream.read(_BLOCK_BYTES):
                    digest.update(block)
        except OSError as error:
            msg = f"The weights {file} cannot be read ({error.strerror or error}); check the file or reinstall ragqa."
            raise ModelError(msg) from error
    return digest.hexdigest()


def check_model(path: Path, kind: str) -> str:
    """The fingerprint of the model in this folder, after checking it against MODEL.json.

    A local folder without MODEL.json is not checked. Raises ModelError if the weights differ, or if the folder holds
    another kind of model than ``kind``.
    """
    manifest = manifest_of(path)
    found = fingerprint(path)
    if not manifest:
        return found
    if manifest.get("kind") != kind:
        msg = f"{path} holds a model of kind '{manifest.get('kind')}', expected '{kind}'; choose another model."
        raise ModelError(msg)
    expected = manifest.get("sha256")
    if found != expected:
        raise ModelError(
            f"The weights in {path} do not match their manifest: expected sha256 {expected}, found {found}; "
            "reinstall ragqa, or train the model again."
        )
    return found


def manifest_of(folder: Path) -> dict[str, str]:
    """The content of MODEL.json; empty if there is none. Raises ModelError if an embedded model lacks it."""
    file = folder / MANIFEST
    if not file.is_file():
        if folder.parent == _HERE:
            raise ModelError(f"{folder} has no {MANIFEST}, so its weights cannot be checked; reinstall ragqa.")
        return {}
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        msg = f"{file} cannot be read as JSON ({error}); reinstall ragqa, or train the model again."
        raise ModelError(msg) from error
    if not isinstance(manifest, dict):
        raise ModelError(f"{file} must hold a JSON object, found {type(manifest).__name__}; reinstall ragqa.")
    return {str(key): str(value) for key, value in manifest.items()}


def write_manifest(folder: Path, kind: str, weights: str, **further: str) -> None:
    """Writes MODEL.json, with which `check_model` checks the folder; ``further`` is added to it.

    Write the file ``weights`` first: a folder that is left half-written then fails its check.
    """
    manifest = {"name": folder.name, "kind": kind, "weights": weights, "sha256": fingerprint(folder / weights)}
    manifest |= {key: value for key, value in further.items() if value}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def _weights_files(path: Path) -> list[Path]:
    if path.is_file() or path.suffix == ".safetensors":
        return [path]
    named = manifest_of(path).get("weights")
    files = [path / named] if named else sorted(path.glob("*.safetensors"))
    if not files:
        msg = f"{path} holds no *.safetensors weights; expected a model saved in that format. Choose another folder."
        raise ModelError(msg)
    return files
