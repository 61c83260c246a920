"""Writes the model card README.md, which every trained model's folder has besides its weights and MODEL.json."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragqa.models import fingerprint

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

LICENCE = (
    "ragqa is licensed under Apache-2.0. What these weights may be used for also depends on the licences of the model "
    "and of the data that they were made from."
)


@dataclass(frozen=True, slots=True)
class ModelCard:
    """The content of a model card; texts are Markdown, of one paragraph or more.

    A table is a header and rows with the same number of cells; a table without rows is shown as "not measured".
    """

    title: str
    use: str  # what the model is and how it is used
    figures: Sequence[Sequence[str]]
    figures_note: str  # the measure and the data of the figures
    data: str  # the training data and settings
    command: str  # that reproduces the model
    seed: int
    sources: Sequence[Sequence[str]] = ()  # an optional table
    further: str = ""  # more about the data
    limits: str = ""

    def __str__(self) -> str:
        sections = [
            ("", f"# {self.title}"),
            ("", self.use),
            ("Figures", f"{_table(self.figures)}\n\n{self.figures_note}"),
            ("Trained on", self.data),
            ("", _table(self.sources) if self.sources else ""),
            ("", self.further),
            ("", f"Made with seed {self.seed} by:\n\n    {self.command}"),
            ("Weak points", self.limits),
            ("Licence", LICENCE),
        ]
        return "\n\n".join(f"## {head}\n\n{text}" if head else text for head, text in sections if text) + "\n"


def write_card(folder: Path, card: ModelCard) -> None:
    """Writes the card as README.md."""
    (folder / "README.md").write_text(str(card), encoding="utf-8")


def settings_of(training: DataclassInstance) -> str:
    """``"epochs 2, rank 16, …"``, for a card, which names the base model elsewhere."""
    return ", ".join(f"{key} {value}" for key, value in asdict(training).items() if key != "base" and value != "")


def files_table(files: Iterable[Path], *further: tuple[str, str]) -> list[tuple[str, ...]]:
    """A table of the files read, each with its sha256, and of ``further`` (name, sha256)."""
    return [("file", "sha256"), *((file.name, fingerprint(file)) for file in files), *further]


def command_line(command: str, options: Mapping[str, Any]) -> str:
    """``ragqa tune --index=rulebook --step=0.05``, quoted for a shell, of ``command`` and its options by name.

    An option that is None or empty is left out; one with a tuple or list is repeated for each value.
    """
    given = []
    for name, value in options.items():
        values = value if isinstance(value, list | tuple) else () if value in (None, "") else (value,)
        option = f"--{name.replace('_', '-')}"
        given += [f"{option}={one:.12g}" if isinstance(one, float) else f"{option}={one}" for one in values]
    return shlex.join(["ragqa", *command.split(), *given])


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    body = body or [("not measured", *("" for _ in head[1:]))]
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, *body)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])
