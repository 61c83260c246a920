"""The fan-out without a language model: rules split the question, and each part is answered by quoting."""

from __future__ import annotations

from collections.abc import Generator as Stream
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ragqa.english.words import quantity
from ragqa.generation.answers import nothing_kept
from ragqa.generation.concise import ConciseGenerator
from ragqa.generation.fanout.merging import RankedSubQuestion, Tree, answered
from ragqa.generation.fanout.searching import parts_of, search_parts, second_hop
from ragqa.plugins.protocols import Encoder, Generator, ObligationClassifier, Search, Verifier
from ragqa.settings.config import FilteringConfig, GenerationConfig
from ragqa.types import Answer, Passage, Question, Ranking, Selection, SubQuestion
from ragqa.types.events.generation import GenerationEvent, SubQuestionsAsked, Token, Working
from ragqa.types.events.pipeline import Selected
from ragqa.types.streams import returned

SENTENCES = 2  # quoted for each sub-question

NOTHING_TO_TAKE_APART = (
    "The rules found no parts in this question, and no name to follow in the passages found: it is answered as a whole."
)
_NOTHING_CONCLUDED = "Quoted for {n}, in their order; without a language model nothing is compared or concluded."


class FanOutGenerator:
    """Searches and quotes for every part of a question. May be shared by threads."""

    name = "fan-out, no language model"
    model = ""

    def __init__(self, answerer: Generator, config: GenerationConfig, filtering: FilteringConfig) -> None:
        """``answerer`` answers each part from its own evidence, without a language model."""
        self._answerer = answerer
        self._config = config
        self._filtering = filtering

    def stream_searching(
        self, question: Question, ranking: Ranking, search: Search
    ) -> Stream[GenerationEvent | Selected, None, tuple[Answer, Selection]]:
        """Yields the sub-questions, the evidence of each, the selection, their answers, then the joined answer.

        A question without parts is answered as a whole. Raises what the answerer raises.
        """
        tree = Tree(ranking, self._filtering)
        yield from searched_by_rules(question, tree, search, self._config.max_sub_questions)
        selection = tree.selection
        yield Selected(selection)
        if not selection.kept:
            return nothing_kept(self.name, self.model), selection
        if not any(node.found.question.parent == 0 and not node.found.question.is_bridge for node in tree.nodes):
            tree.root = yield from self._answered(question, tree.own_evidence)
            yield answered(0, tree.root, tree.own_evidence)
        for node in tree.nodes:
            node.answer = yield from self._answered(Question(node.found.question.text), node.evidence)
            yield answered(node.number, node.answer, node.evidence)
        answer = tree.joined(Answer("", (), self.name, self.model), selection)
        yield from (Token(piece) for piece in answer.raw.splitlines(keepends=True))
        return self._finished(answer, tree), selection

    def _answered(self, question: Question, evidence: Sequence[Passage]) -> Stream[GenerationEvent, None, Answer]:
        """The answerer's answer; its tokens are not passed on, because they are not those of the whole answer."""
        yield Working(f"Answering: {question.text}")
        return returned(self._answerer.stream(question, evidence))

    def _finished(self, answer: Answer, tree: Tree) -> Answer:
        n = len(tree.nodes)
        if not answer.sentences:
            return replace(answer, finish_reason="empty", note=(tree.root or answer).note)
        if not n:
            return replace(answer, note=NOTHING_TO_TAKE_APART)
        empty = [one.found.question.text for one in tree.nodes if one.answer is None or not one.answer.sentences]
        note = _NOTHING_CONCLUDED.format(n=quantity(n - len(empty), "sub-question"))
        note += tree.left_out_words(self._config.max_sub_questions)
        return replace(answer, note=f"{note} Nothing to quote for: {'; '.join(empty)}" if empty else note)


def fan_out_generator(
    obligations: ObligationClassifier,
    encoder: Encoder,
    verifier: Verifier,
    config: GenerationConfig,
    filtering: FilteringConfig,
) -> FanOutGenerator:
    """A generator that quotes at most `SENTENCES` most relevant sentences of each sub-question's evidence, verbatim."""
    quoting = ConciseGenerator(obligations, encoder, verifier, replace(config, max_sentences=SENTENCES))
    return FanOutGenerator(quoting, config, filtering)


def searched_by_rules(
    question: Question, tree: Tree, search: Search, most: int, note: str = ""
) -> Iterator[GenerationEvent]:
    """Fills the tree with at most ``most`` sub-questions and their evidence; ``note`` says why rules are used.

    A question of several parts is split. If no part is about a name, or if there are no parts, names in the best
    passages are followed to a second hop.
    """
    parts = parts_of(question.text, tree.ranking)
    tree.left_out, parts = len(parts[most:]), parts[:most]
    if parts:
        asked = [SubQuestion(n, part.text, 0, part.reason, part.name) for n, part in enumerate(parts, start=1)]
        yield SubQuestionsAsked(tuple(asked), "rules", note)
        for found in search_parts(parts, search):
            yield tree.add(found)[1]
    hops: tuple[RankedSubQuestion, ...] = ()
    if not any(part.name for part in parts):
        yield Working("Following names to a second hop")
        hops = second_hop(question.text, tree.ranking, search, most - len(parts), first=len(parts) + 1)
    if hops or not parts:
        words = note or ("" if hops else NOTHING_TO_TAKE_APART)
        yield SubQuestionsAsked(tuple(found.question for found in hops), "rules", "" if parts else words)
    for found in hops:
        yield tree.add(found)[1]
