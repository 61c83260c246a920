"""A memo for the file: question, answer, verdicts, rules word for word, open points, the review page. Pure.

`memo_of` makes one document of stored records; `ragqa.records.memo_files` writes it as Markdown, HTML, DOCX and PDF.
Every `Quotation` is the whole unchanged text of a passage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Final, TypeAlias

from ragqa.corpus.citing import short_name
from ragqa.english.words import cut
from ragqa.records.differences import writer_model
from ragqa.records.findings import Finding, findings_of
from ragqa.records.record import AnswerRecord
from ragqa.records.sign_off import SignOff
from ragqa.records.view import Shown, View, from_record, shown, weak_match
from ragqa.records.words import (
    cited_by,
    counted_mark,
    headline,
    mark_word,
    note_of,
    place,
    trust_facts,
    with_names,
)
from ragqa.scoring.repass.explanation import model_line, provenance
from ragqa.settings.config import Config, settings_at, values_by_key
from ragqa.settings.schema import Place, ranking_label
from ragqa.types import Passage
from ragqa.types.scores import SentenceVerdict, Verdict

LONGEST_TITLE: Final = 120  # characters
_REVIEW: Final = ("Reviewed by", "Date", "Decision", "Remarks")


@dataclass(frozen=True, slots=True)
class MemoSection:
    """A heading of level 1 or 2; with ``new_page`` it begins a page."""

    text: str
    level: int = 2
    new_page: bool = False


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text; with ``is_strong`` in bold."""

    text: str
    is_strong: bool = False


@dataclass(frozen=True, slots=True)
class Points:
    """A bulleted list."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Quotation:
    """A word-for-word quotation; ``source`` says where it stands."""

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: ``heads`` (empty: no head row), rows of equal length, ``widths`` in percent of the line.

    With ``is_form`` its cells have room to be filled in by hand.
    """

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    widths: tuple[int, ...]
    is_form: bool = False


Block: TypeAlias = MemoSection | Paragraph | Points | Quotation | Grid


@dataclass(frozen=True, slots=True)
class Memo:
    """A document: its title and blocks."""

    title: str
    blocks: tuple[Block, ...]


def memo_of(records: Sequence[AnswerRecord], title: str = "", signed: Sequence[SignOff] = ()) -> Memo:
    """The memo on these records (at least one), in order; the default title is that of the first question.

    ``signed`` are the decisions on them, for the review page.
    """
    parts = [
        block for n, record in enumerate(records, 1) for block in _answer(record, f" {n}" if len(records) > 1 else "")
    ]
    made = dict.fromkeys(map(_made_with, records))
    return Memo(
        title or cut(records[0].question.title, LONGEST_TITLE),
        (
            *parts,
            MemoSection("Settings and fingerprints", 1),
            *(Grid(("What", "Value"), rows, (35, 65)) for rows in made),
            *review_page(signed),
        ),
    )


def review_page(signed: Sequence[SignOff] = ()) -> Iterable[Block]:
    """The last page: the decisions so far, and a form for a decision by hand."""
    yield MemoSection("Review", 1, new_page=True)
    yield from _signed(signed)
    yield Grid((), tuple((name, "") for name in _REVIEW), (30, 70), is_form=True)


def _signed(signed: Sequence[SignOff]) -> Iterable[Block]:
    if signed:
        heads = ("What", "Submitted by", "Decision", "Reason")
        yield Grid(heads, tuple(map(_decision, signed)), (26, 20, 30, 24))


def _decision(one: SignOff) -> tuple[str, ...]:
    event, since = one.decision, f". Since then: {', '.join(one.changed)}" if one.changed else ""
    when = event.at[:16].replace("T", " ")
    return one.what, one.submission.by.shown, f"{event.step} by {event.by.shown}, {when} UTC{since}", event.text


def trust_line(view: View, found: Shown) -> str:
    """One line: the number of sentences with each mark, further facts on the answer, and RePASs."""
    if view.answer is None:
        return ""
    repass = found.evaluation.repass if found.evaluation and not view.answer.is_refusal else None
    score = f"RePASs {repass.composite:.2f}" if repass else "not scored"
    return "; ".join((*trust_marks(found), *trust_facts(view, found), score))


def trust_marks(found: Shown) -> tuple[str, ...]:
    """The number of sentences with each mark, in words."""
    return tuple(counted_mark(mark, n) for mark, n in Counter(_marks(found).values()).items())


def rules_of(view: View, found: Shown) -> tuple[tuple[Passage, ...], ...]:
    """For each sentence of an answer the passages that it cites; for one of a checked text the deciding passage."""
    if view.answer is None or view.selection is None:
        return ()
    passages, checks = view.selection.passages, found.explanation.citations if found.explanation else ()
    if view.asked.given:
        findings = findings_of(view, found)[: len(view.answer.sentences)]
        return tuple((one.rule,) if one.rule else () for one in findings)
    numbers = [
        cited_by(one, checks[index] if index < len(checks) else None) for index, one in enumerate(view.answer.sentences)
    ]
    return tuple(tuple(passages[n - 1] for n in cited if n <= len(passages)) for cited in numbers)


def _marks(found: Shown) -> dict[int, str]:
    judged = {one.index: one for one in found.verdicts}
    return {
        one.index: mark_word(judged[one.index].verdict if one.index in judged else one.verdict, judged.get(one.index))
        for one in found.sentences
    }


# One record ---------------------------------------------------------------------------------------------------------


def _answer(record: AnswerRecord, number: str) -> Iterable[Block]:
    view = from_record(record)
    found = shown(view, record.scoring.mode)
    notes = {one.index: one.why or f"should be {one.verdict}" for one in record.feedback}
    findings = findings_of(view, found, notes)
    is_check = bool(view.asked.given)
    yield MemoSection(("Checked text" if is_check else "Question") + number, 1)
    if view.question:
        yield Paragraph(view.question, is_strong=True)
    if view.asked.follow_up:
        yield Paragraph(f"Asked as “{view.asked.follow_up.asked}” after the answer before.")
    when = record.created_at[:16].replace("T", " ")
    yield Paragraph(f"Record {record.record_id} of {when} UTC, corpus {record.index}.")
    yield MemoSection("Result")
    words, _ = headline(view, found)
    yield Paragraph(words or record.status.capitalize(), is_strong=True)
    yield Paragraph(trust_line(view, found))
    for said in filter(None, (note_of(record.answer), record.error)):
        yield Paragraph(said)
    sentences = [one for one in findings if one.kind == "sentence"]
    yield MemoSection("The text, sentence by sentence" if is_check else "The answer, sentence by sentence")
    if sentences:
        heads = ("Sentence", "Verdict", "Rule", "Reason")
        yield Grid(heads, tuple(_rows(view, found, sentences)), (43, 14, 18, 25))
    else:
        yield Paragraph(record.answer.text or "There is no text.")
    yield MemoSection("What was not found")
    missing = record.answer.not_found or ((view.question,) if record.answer.state == "not found" else ())
    if missing:
        yield Points(missing)
    elif is_check:
        yield Paragraph("Every sentence was searched for.")
    else:
        doubt = "Possibly the whole question: the corpus may not cover its subject."
        yield Paragraph("No part of the question is without an answer." if weak_match(view) is None else doubt)
    yield from _rules(view, found, sentences)
    yield from _duties(view, found, [one for one in findings if one.kind == "duty"])


def _rows(view: View, found: Shown, sentences: Sequence[Finding]) -> Iterable[tuple[str, ...]]:
    """A row for each sentence, and for each heading or other text between them."""
    assert view.answer  # noqa: S101 - findings are of an answer
    passages = view.selection.passages if view.selection else ()
    judged, marks, position = {one.index: one for one in found.verdicts}, _marks(found), 0
    cited = rules_of(view, found)
    for one, sentence in zip(sentences, view.answer.sentences, strict=True):
        between, position = view.answer.text[position : sentence.start].strip(), sentence.end
        if between:
            yield between, "", "", ""
        reason = with_names(one.reason, passages)
        note = f"Note: {one.note}" if one.note else ""
        mark = marks.get(one.index, "")
        rules = _named(one, cited[one.index], judged.get(one.index), is_check=bool(view.asked.given))
        yield one.text, mark, rules, " ".join(filter(None, (reason, note)))


def _named(one: Finding, cited: Sequence[Passage], judged: SentenceVerdict | None, *, is_check: bool) -> str:
    """The short names of a sentence's rules; where no rule decided, the nearest one, marked as such."""
    is_near = judged is not None and judged.deciding is None
    if cited and not (is_check and is_near):
        return "; ".join(map(short_name, cited))
    return f"nearest: {short_name(one.rule)}" if one.rule else ""


def _rules(view: View, found: Shown, sentences: Sequence[Finding]) -> Iterable[Block]:
    """The full text of each rule that a sentence rests on or was compared with, each once."""
    named = [passage for cited in rules_of(view, found) for passage in cited]
    named += [one.rule for one in sentences if one.rule and one.verdict is not Verdict.SUPPORTED]
    yield MemoSection("Rules, word for word")
    if not named:
        yield Paragraph("No rule is cited.")
    for passage in {one.passage_id: one for one in named}.values():
        yield Quotation(
            passage.text, f"{short_name(passage)}: {place(passage, whole=True)} (document {passage.document_id})"
        )


def _duties(view: View, found: Shown, duties: Sequence[Finding]) -> Iterable[Block]:
    yield MemoSection("Obligations left out")
    if duties:
        passages = view.selection.passages if view.selection else ()
        rows = (
            (one.text, str(one.verdict), short_name(one.rule) if one.rule else "", with_names(one.reason, passages))
            for one in duties
        )
        yield Grid(("Obligation", "Verdict", "Rule", "Reason"), tuple(rows), (43, 14, 18, 25))
    elif not view.scored or weak_match(view) is not None:
        yield Paragraph("Not checked: the corpus may not cover this subject." if view.scored else "Not scored.")
    else:
        yield Paragraph(
            "None of the obligations in the kept passages." if found.obligations else "The passages hold none."
        )


def _made_with(record: AnswerRecord) -> tuple[tuple[str, str], ...]:
    """(name, value) rows: versions, fingerprints and the settings that had an effect."""
    manifest, config = record.manifest, Config(**{one.name: getattr(record, one.name) for one in fields(Config)})
    rows = {
        "ragqa": record.ragqa_version,
        "Corpus": record.index,
        "sha256 of the corpus": str(manifest.get("corpus_sha256", "")),
        "Index built": str(manifest.get("created", ""))[:16].replace("T", " "),
        "Written by": " ".join(filter(None, (record.answer.generator, record.answer.model))),
        **{f"Prompt {one.name}": one.version for one in record.answer.prompts},
        **{f"Model, {role}": model_line(info) for role, info in sorted(record.models.items())},
    }
    if record.scored:
        scored = dict(provenance(record.scored.of(record.scoring.mode)))
        rows |= {f"Scored, {name}": scored[name] for name in ("verdicts by", "definition", "thresholds")}
    return tuple((name, value) for name, value in (rows | settings_words(config)).items() if value)


def settings_words(config: Config) -> dict[str, str]:
    """The settings that had an effect, as the page calls them."""
    values = values_by_key(config)
    weights = ", ".join(f"{ranking_label(name)} {share:.2f}" for name, share in config.fusion.weights.items() if share)
    used = (one for one in settings_at(Place.DIFFERENCE) if one.applies(values))
    rows = {"Weights": weights} | {one.label: one.text(values[one.key]) for one in used}
    return {
        name: value for name, value in (rows | {"Language model": writer_model(config.generation)}).items() if value
    }
