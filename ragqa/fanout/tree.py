"""The questions of one fan-out with their evidence and answers, and the answer they make together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ragqa.config import FilteringConfig
from ragqa.events.generation import EvidenceFound, SubQuestionAnswered
from ragqa.fanout.merging import Found, gather, kept_by
from ragqa.generation.answers import composed, separator_after
from ragqa.types import Answer, AnswerSentence, Passage, Ranking, Selection


@dataclass(slots=True)
class Node:
    """A sub-question, what it found, the passages it may be answered from, and its answer once there is one.

    Citations of ``answer`` count ``evidence``.
    """

    found: Found
    evidence: tuple[Passage, ...]
    answer: Answer | None = None

    @property
    def number(self) -> int:
        return self.found.question.number


@dataclass(slots=True)
class Tree:
    """What one question came to so far. ``root`` is the answer from the question's own evidence, where asked for."""

    ranking: Ranking
    filtering: FilteringConfig
    nodes: list[Node] = field(default_factory=list)
    root: Answer | None = None

    def add(self, found: Found) -> tuple[Node, EvidenceFound]:
        """The node of this sub-question, and the event that tells of its evidence."""
        hits = tuple((hit.passage.passage_id, hit.score) for hit in found.ranking.hits)
        evidence = tuple(hit.passage for _, hit in kept_by(found, self.filtering))
        node = Node(found, evidence)
        self.nodes.append(node)
        kept = tuple(passage.passage_id for passage in evidence)
        passages = tuple(hit.passage for hit in found.ranking.hits)
        return node, EvidenceFound(found.question.number, hits, kept, found.hop, passages)

    @property
    def selection(self) -> Selection:
        """The union of all evidence so far."""
        return gather(self.ranking, [node.found for node in self.nodes], self.filtering)

    @property
    def own_evidence(self) -> tuple[Passage, ...]:
        """What the question keeps of what it found by itself."""
        return gather(self.ranking, (), self.filtering).passages

    def answers(self) -> Iterator[tuple[int, Answer, tuple[Passage, ...]]]:
        """Every answer that says something, the question's own first: its number, the answer, what it cites from."""
        if self.root is not None:
            yield 0, self.root, self.own_evidence
        for node in self.nodes:
            if node.answer is not None:
                yield node.number, node.answer, node.evidence

    def joined(self, answer: Answer, selection: Selection) -> Answer:
        """``answer`` with the sentences of all answers in the order of the tree, each once, citing ``selection``.

        Refusals are left out.
        """
        number_of = {passage.passage_id: number for number, passage in enumerate(selection.passages, start=1)}
        sentences: dict[str, tuple[str, AnswerSentence]] = {}
        separator = ""
        for _, part, evidence in self.answers():
            if part.is_refusal:
                continue
            position = 0
            for sentence in part.sentences:
                cited = {number_of[evidence[number - 1].passage_id] for number in sentence.citations}
                key = " ".join(sentence.text.casefold().split())
                between, known = sentences.get(key, (part.text[position : sentence.start] or separator, sentence))
                cited |= set(known.citations) if key in sentences else set()
                sentences[key] = (between, replace(known, citations=tuple(sorted(cited))))
                position = sentence.end
            separator = separator_after(part.text)
        return composed(answer, sentences.values())


def answered(number: int, answer: Answer, evidence: Sequence[Passage]) -> SubQuestionAnswered:
    """The event that tells of this answer, whose citations count ``evidence``."""
    cited = {number for sentence in answer.sentences for number in sentence.citations}
    ids = tuple(evidence[number - 1].passage_id for number in sorted(cited))
    note = "" if answer.finish_reason == "stop" and not answer.is_refusal else answer.note
    return SubQuestionAnswered(number, answer.text, ids, note, answer.is_refusal)
