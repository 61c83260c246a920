"""What every trained model's folder holds beside its weights and MODEL.json: the model card README.md."""

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
    """What a model card says; texts are Markdown, of one paragraph or more.

    A table is its header and its rows, all of the same number of cells; one without rows is shown as "not measured".
    """

    title: str
    use: str  # what it is and how it is used
    figures: Sequence[Sequence[str]]
    figures_note: str  # what was measured, and on what
    data: str  # what it was trained on, and with which settings
    command: str  # the one that makes it again
    seed: int
    sources: Sequence[Sequence[str]] = ()  # a table; may be left out
    further: str = ""  # what else is to be known of the data
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
    """As README.md."""
    (folder / "README.md").write_text(str(card), encoding="utf-8")


def settings_of(training: DataclassInstance) -> str:
    """``"epochs 2, rank 16, …"``, for a card; the base model stands elsewhere in it."""
    return ", ".join(f"{key} {value}" for key, value in asdict(training).items() if key != "base" and value != "")


def files_table(files: Iterable[Path], *further: tuple[str, str]) -> list[tuple[str, ...]]:
    """Which files were read, each with its sha256, and ``further`` (name, sha256)."""
    return [("file", "sha256"), *((file.name, fingerprint(file)) for file in files), *further]


def command_line(command: str, options: Mapping[str, Any]) -> str:
    """``ragqa tune --index=rulebook --step=0.05``, quoted for a shell, of ``command`` and its options by name.

    An option that is None or empty is left out, one with a tuple or list is repeated for each of its values.
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
