"""Validates made questions against their passages by RIRAG's rule (section 3.2) or ours, and ranks the passages.

In RIRAG's rule the passage is the premise and the question the hypothesis. Entailment is kept, contradiction is
dropped, and neutral is kept if ``|neutral - entailment| < |neutral - contradiction|``. This amounts to one comparison:
whatever the label, a pair is kept exactly if entailment is above contradiction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ragqa.english.reading import read
from ragqa.fusion import fuse
from ragqa.generation.direct.generator import DirectGenerator
from ragqa.index import Index
from ragqa.lab.dataset.checks import problem
from ragqa.plugins.protocols import Encoder, NliModel, Retriever
from ragqa.retrieval import rank
from ragqa.settings.config import FilteringConfig, FusionConfig, GenerationConfig
from ragqa.types import Passage, Question, Ranking, ScoredPassage
from ragqa.types.scores import NliProbabilities
from ragqa.types.streams import returned

RULES: Final = ("ours", "rirag", "none")
SAID: Final = {"ours": "the passage answers the question", "rirag": "RIRAG's rule", "none": "checks only"}
COVERED: Final = 0.5  # share of the question's content words that the passage and its headings have
DEEP: Final = 100
FUSED: Final = "fused"


def kept_by_rirag(found: NliProbabilities) -> bool:
    """RIRAG's rule for one passage of a question."""
    return found.entailment > found.contradiction


def cover(question: str, passage: Passage) -> float:
    """The share of the question's content words that occur in the passage, its title or its headings, in [0, 1]."""
    asked = read(question).content
    said = read(f"{passage.title} {passage.section} {passage.text}").stems
    return len(asked & said) / (len(asked) or 1)


class Validator:
    """Compares questions with their passages. May be shared by threads if the models may."""

    def __init__(
        self, index: Index, retrievers: Sequence[Retriever], fusion: FusionConfig, nli: NliModel, encoder: Encoder
    ) -> None:
        self.index, self.nli = index, nli
        self._retrievers, self._fusion = retrievers, fusion
        self._direct = DirectGenerator(encoder, GenerationConfig(), FilteringConfig())

    def validated(self, question: str, passages: Sequence[Passage], kind: str) -> dict[str, Any]:
        """{problem, passages: [{nli, rirag, cover, alone, with_neighbours}], ranks}, in the order of the passages.

        ``alone`` tells whether the direct generator answers the question, or a part of it, from the passage alone;
        ``with_neighbours``, from the passage with those before and after it. ``ranks`` are from 1 by ranking, None
        beyond 100.
        """
        found = self.nli.predict([(passage.text, question) for passage in passages])
        rows = [
            {
                "nli": [round(value, 4) for value in (one.contradiction, one.entailment, one.neutral)],
                "rirag": kept_by_rirag(one),
                "cover": round(cover(question, passage), 4),
                "alone": self._answers(question, [passage]),
                "with_neighbours": self.answered(question, passage),
            }
            for passage, one in zip(passages, found, strict=True)
        ]
        texts = [passage.text for passage in passages]
        return {"problem": problem(question, texts, kind), "passages": rows, "ranks": self._ranks(question, passages)}

    def answered(self, question: str, passage: Passage) -> bool:
        """Whether the direct generator answers the question, or a part of it, from the passage and its neighbours."""
        return self._answers(question, [passage, *filter(None, self.index.neighbours(passage))])

    def _answers(self, question: str, passages: Sequence[Passage]) -> bool:
        ranking = Ranking.of("one", [ScoredPassage(one, 1.0 - n / 10) for n, one in enumerate(passages)])
        answer, _ = returned(self._direct.stream_searching(Question(question), ranking, lambda _: ranking))
        return not answer.is_refusal and bool(answer.sentences)

    def _ranks(self, question: str, passages: Sequence[Passage]) -> dict[str, list[int | None]]:
        rankings = rank(self._retrievers, question, DEEP)
        found: dict[str, list[int | None]] = {}
        for name, ranking in [(one.retriever, one) for one in rankings] + [(FUSED, fuse(rankings, self._fusion))]:
            ids = {hit.passage.passage_id: place for place, hit in enumerate(ranking.hits, start=1)}
            found[name] = [ids.get(passage.passage_id) for passage in passages]
        return found


def judged(row: Mapping[str, Any], rule: str) -> tuple[list[int], str]:
    """The positions of a question's passages that this rule (of `RULES`) keeps, and the reason if it keeps none.

    RIRAG's rule judges each passage alone. "ours" keeps all of them or none, because a question about several passages
    changes without some of them. Each must have enough of the question's words, and the direct generator must find an
    answer in one of them, read with its neighbours.
    """
    passages = row["passages"]
    every = list(range(len(passages)))
    if row["problem"]:
        return [], str(row["problem"])
    if rule == "rirag":
        stay = [place for place in every if passages[place]["rirag"]]
        return stay, "" if stay else "the NLI model leans to contradiction (RIRAG 3.2)"
    if rule == "ours":
        low = min(one["cover"] for one in passages)
        if low < COVERED / len(passages) ** 0.5:
            return [], f"a passage has too few of the question's words ({low:.2f})"
        if not any(one["with_neighbours"] for one in passages):
            return [], "its passages and their neighbours do not answer it"
    return every, ""
