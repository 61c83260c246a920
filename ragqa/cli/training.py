"""What the training commands share: questions with gold parted for learning and testing, and the bar they show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from ragqa.cli.output import progress_bar, stderr
from ragqa.config import Config
from ragqa.errors import ConfigError, CorpusError
from ragqa.paths import Paths

if TYPE_CHECKING:
    from ragqa.corpus.questions import GoldQuestion
    from ragqa.evaluation.folds import Fold
    from ragqa.indexing import Index
    from ragqa.protocols import Retriever
    from ragqa.training.loop import Progress, Reading
    from ragqa.training.retriever_data import RetrieverData
    from ragqa.types import Ranking


@dataclass(frozen=True, slots=True)
class AskedIndex:
    """An index, and the questions that training learns from and those it is measured on; either may be none."""

    index: Index
    texts: list[str]  # what an encoder reads of each passage
    learnt: list[GoldQuestion]
    tested: list[GoldQuestion]  # none of them shares a gold text with one of ``learnt``, where a fold parted them

    @classmethod
    def of(cls, name: str, files: Sequence[Path], fold: str = "", test: Path | None = None) -> AskedIndex:
        """The index of this name and the questions of ``files``, without the test part of ``fold`` (``"K/N"`` or "").

        Without a fold, ``test`` is measured on. Raises CorpusError for a file without questions with gold passages, and
        ConfigError for what is no fold.
        """
        from ragqa.indexing import open_index
        from ragqa.retrieval.analysis import indexed_text
        from ragqa.training.retriever_data import text_numbers, with_equal_gold

        index = open_index(name, Paths.from_env().indexes)
        with stderr().status("Reading passages and questions"):
            texts = [indexed_text(passage, index.manifest.indexed_text) for passage in index.passages]
            gold = _questions_with_gold(files, index) if files else []
        part = _fold_named(fold, with_equal_gold(gold, index.position_of, text_numbers(texts)))
        if part is None:
            return cls(index, texts, gold, _questions_with_gold([test], index) if test else [])
        return cls(index, texts, [gold[n] for n in part.train], [gold[n] for n in part.test])

    def gathered(
        self,
        negatives_of: Retriever,
        *,
        limit: int | None,
        seed: int,
        further: Sequence[GoldQuestion] = (),
        spared: Mapping[int, frozenset[str]] = MappingProxyType({}),
    ) -> RetrieverData:
        """What is trained on: the questions learnt from, then ``further`` ones; the rest is as in `gather_pairs`."""
        from ragqa.training.retriever_data import gather_pairs

        asked = [*self.learnt, *further]
        with stderr().status("Looking for hard negatives"):
            data = gather_pairs(
                asked, self.texts, self.index.position_of, negatives_of, limit=limit, seed=seed, spared=spared
            )
        stderr().print(f"{len(data.pairs):,} pairs; {data.n_missing:,} gold ids are not in the index")
        return data


def shown(reports: Iterable[Reading | Progress]) -> Progress:
    """The last report of a training, all of them shown in a bar."""
    from ragqa.training.loop import Reading

    with progress_bar() as bar:
        task = bar.add_task("Training", total=None)
        for now in reports:
            if isinstance(now, Reading):
                bar.update(task, completed=now.done, total=now.total, description="Reading")
                continue
            last, figures = now, f"loss {now.loss:.3f}, {now.pairs_per_second:.0f} pairs/s"
            bar.update(task, completed=now.step, total=now.steps, description=figures)
            if now.held_out is not None:
                stderr().print(f"step {now.step:,} of {now.steps:,}: {figures}, held-out accuracy {now.held_out:.4f}")
    return last


def fused_rankings(gold: Sequence[GoldQuestion], index: Index) -> dict[str, Ranking]:
    """The default fused ranking by question; kept as `ragqa eval retrieval` keeps rankings."""
    from ragqa.cli.evaluate_retrieval import rankings_of
    from ragqa.fusion import fuse

    config = Config()
    columns, _ = rankings_of(tuple(gold), index, config)
    rankings = zip(*columns, strict=True)
    return {item.question.text: fuse(found, config.fusion) for item, found in zip(gold, rankings, strict=True)}


def sources(files: Iterable[Path]) -> list[tuple[str, str]]:
    """(name, sha256) of each file, for the model card."""
    from ragqa.models import fingerprint

    return [(file.name, fingerprint(file)) for file in files]


def _questions_with_gold(files: Sequence[Path], index: Index) -> list[GoldQuestion]:
    """The questions of all files that name a gold passage, in their order."""
    from ragqa.corpus.questions import load_gold

    found: list[GoldQuestion] = []
    for file in files:
        gold, unit = load_gold(file, index.passages)
        if unit != "passage":
            msg = (
                f"expected questions with gold passages in {file}, found gold documents; name a file in ObliQA's schema"
            )
            raise CorpusError(msg)
        found += [question for question in gold if question.gold]
    if not found:
        msg = f"expected questions with gold passages in {', '.join(map(str, files))}, found none; name another file"
        raise CorpusError(msg)
    return found


def _fold_named(text: str, questions: Sequence[GoldQuestion]) -> Fold | None:
    """The fold that ``"K/N"`` names, K from 1; None for no text."""
    from ragqa.evaluation.folds import folds_by_gold

    if not text:
        return None
    number, _, total = text.partition("/")
    if not (number.isdecimal() and total.isdecimal() and 1 <= int(number) <= int(total) and int(total) > 1):
        msg = f"--fold must be K/N with K from 1 to N and N at least 2, got {text!r}; give for example 1/5"
        raise ConfigError(msg)
    return folds_by_gold(questions, int(total))[int(number) - 1]
