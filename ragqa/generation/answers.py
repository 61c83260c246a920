"""Builds answers from sentences or quotations, and the notes of empty and unfinished ones. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from ragqa.english.sentences import split_sentences
from ragqa.errors import GenerationError, RagqaError, ScoringError
from ragqa.infra.cleaning import without_controls
from ragqa.settings.scoring import SplitterName
from ragqa.types import Answer, AnswerSentence, Passage

NOTHING_KEPT = (
    "No passage was kept, so there is nothing to answer from. Lower the threshold, raise the max drop, "
    "or ask in the words of the corpus."
)


def empty_answer(generator: str, model: str, note: str) -> Answer:
    """An answer without text or sentences, finish reason ``"empty"``, whose note says why and what to change."""
    return Answer(text="", sentences=(), generator=generator, model=model, finish_reason="empty", note=note)


def nothing_kept(generator: str, model: str) -> Answer:
    """The answer of every generator when filtering kept no passage; no model is called."""
    return empty_answer(generator, model, NOTHING_KEPT)


def separator_after(text: str) -> str:
    """The separator after a sentence in running text: a space after a full stop, else a line end."""
    return " " if text.rstrip("\"'”’)]»").endswith((".", "!", "?")) else "\n"


def composed(answer: Answer, parts: Iterable[tuple[str, AnswerSentence]]) -> Answer:
    """The answer with exactly these sentences, each after its separator; text, offsets and raw are updated."""
    text = ""
    sentences = []
    for separator, sentence in parts:
        text += separator if text else ""
        sentences.append(replace(sentence, start=len(text), end=len(text) + len(sentence.text)))
        text += sentence.text
    new = replace(answer, text=text, sentences=tuple(sentences))
    return replace(new, raw=marked(new))


def answer_of_text(text: str, splitter: SplitterName = "nupunkt") -> Answer:
    """An answer written elsewhere, split into sentences, without citations; nothing is removed."""
    spans = split_sentences(text, splitter)
    sentences = tuple(AnswerSentence(span.text, span.start, span.end) for span in spans)
    return Answer(text, sentences, generator="file", model="", raw=text)


def passages_of_texts(texts: Iterable[str | Passage]) -> list[Passage]:
    """Passages from the texts that came with an answer, numbered from 1 as in citations."""
    return [
        Passage(str(n), "", text, number=str(n)) if isinstance(text, str) else text
        for n, text in enumerate(texts, start=1)
    ]


def without(answer: Answer, indexes: Collection[int]) -> Answer:
    """The answer without these sentences. The white space before each kept sentence stays, and no line end is lost."""
    parts = []
    gap, position = "", 0
    for index, sentence in enumerate(answer.sentences):
        before = answer.text[position : sentence.start]
        gap = max(gap, before, key=lambda space: (space.count("\n"), len(space)))
        position = sentence.end
        if index not in indexes:
            parts.append((gap, sentence))
            gap = ""
    return composed(answer, parts)


def marked(answer: Answer) -> str:
    """The text with its citations as marks after each sentence, as a language model would write it."""
    pieces, position = [], 0
    for sentence in answer.sentences:
        pieces.append(answer.text[position : sentence.end])
        if sentence.citations:
            pieces.append(" " + "".join(f"[{number}]" for number in sentence.citations))
        position = sentence.end
    return "".join(pieces) + answer.text[position:]


def unfinished(answer: Answer, step: str) -> Answer:
    """The answer as it stands after this step, marked as unfinished."""
    note = f"The best answer when the work stopped, after {step}; it may lack what was still to come."
    return replace(answer, finish_reason="unfinished", note=note)


def budget_note(budget: int) -> str:
    """A note that the budget ended the work, and what to change."""
    return (
        f"The budget of {budget:,} calls was used up before the work was done; this is the best answer until then. "
        "Raise the call budget in the settings for more."
    )


def failure_note(error: RagqaError) -> str:
    """A note on the error that ended the work, saying that the best answer until then is shown."""
    what = "could not be checked" if isinstance(error, ScoringError) else "could not be continued"
    return f"The answer {what}; the best until then is shown: {str(error).rstrip('.')}."


_KEYED = re.compile(r"\w+|[%‰$€£¥₹₽₩₺<>≤≥=±+−]|(?<![\w-])-(?=\d)")  # words, and signs that change a rule: "$5", "€5"
_NUMBERING = re.compile(r"\A(?:\(?(?:\d{1,3}|[a-z]|[ivx]{1,5})(?:\.\d{1,3})*[.)]+\s+)+")  # "3.2.1. ", "(a) ", "iv) "


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence on one line and the 1-based numbers of the passages that hold it; quotes keep the passages' order."""

    text: str
    citations: tuple[int, ...]


def quotes_of(passages: Sequence[Passage]) -> list[Quote]:
    """Every sentence once, in the order of the passages, with the numbers of all passages that hold it.

    White space inside a sentence becomes single spaces. Sentences are the same if their words are. Sentences that are
    merely similar ("must" and "must not", 10 days and 20 days) are different rules, and both stay.
    """
    texts: dict[str, str] = {}
    numbers: dict[str, list[int]] = {}
    for number, passage in enumerate(passages, start=1):
        for span in split_sentences(without_controls(passage.text)):
            text = " ".join(span.text.split())
            key = _words(text)
            texts.setdefault(key, text)
            held = numbers.setdefault(key, [])
            if number not in held:
                held.append(number)
    return [Quote(text, tuple(numbers[key])) for key, text in texts.items()]


def _words(text: str) -> str:
    """The key by which sentences are the same: words in lower case and signs, without punctuation or a leading number.

    A text without any word is its own key.
    """
    return " ".join(_KEYED.findall(_NUMBERING.sub("", text.casefold()))) or text


def check_answer(answer: object, n_passages: int, generator: str) -> None:
    """Raises GenerationError, naming the generator, unless this is an answer whose citations are among the passages.

    This checks generators of other packages; ours always return a valid answer.
    """
    if not isinstance(answer, Answer):
        found = f"{type(answer).__name__}: its stream must return an Answer"
    else:
        wrong = [n for sentence in answer.sentences for n in sentence.citations if not 1 <= n <= n_passages]
        if not wrong:
            return
        found = f"a citation of passage {wrong[0]} of {n_passages}"
    msg = f"the generator {generator!r} gave {found}; fix it, or choose another generator"
    raise GenerationError(msg)


def quoted(quotes: Sequence[Quote], generator: str, note: str) -> Answer:
    """The answer made of these quotes, each with its citations."""
    text = ""
    sentences = []
    for quote in quotes:
        text += separator_after(text) if text else ""
        sentences.append(AnswerSentence(quote.text, len(text), len(text) + len(quote.text), quote.citations))
        text += quote.text
    return Answer(text, tuple(sentences), generator, "", raw="".join(pieces_of(quotes)), note=note)


def pieces_of(quotes: Sequence[Quote]) -> list[str]:
    """The streamed text of each quote: ``"sentence [1][3] "``."""
    return [
        quote.text + " " + "".join(f"[{number}]" for number in quote.citations) + separator_after(quote.text)
        for quote in quotes
    ]
