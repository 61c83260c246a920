"""Values -> HTML. Pure; every value is escaped here, so that no text of a corpus, a question or a model becomes markup.

Rows that open are ``<details>``: they work by keyboard, on a phone and without a round trip to the server.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from html import escape
from urllib.parse import quote

from ragqa.records.record import RecordSummary
from ragqa.records.recorder import FIRST_WORDS
from ragqa.scoring.repass.attribution import citation_flag
from ragqa.scoring.repass.explanation import verdict_by_index
from ragqa.types import Answer, AnswerSentence, Passage, Span
from ragqa.types.scores import CitationCheck, SentenceScore, SentenceVerdict, Verdict
from ragqa.ui.state.differences import Difference

VERDICT_CLASS = {
    Verdict.SUPPORTED: "good",
    Verdict.UNSUPPORTED: "plain",
    Verdict.CONTRADICTED: "bad",
    Verdict.DISPUTED: "mixed",
    Verdict.DISAGREEING: "mixed",
    Verdict.NONE: "none",
}
_STAGES = ("retrieval", "fusion", "reranking", "filtering", FIRST_WORDS, "generation", "scoring")


def text_html(value: str) -> str:
    """Escaped, with its line breaks shown."""
    return escape(value).replace("\n", "<br>")


def number_html(value: float | None, digits: int = 3) -> str:
    """The number, a dash for None."""
    return "–" if value is None else f"{value:.{digits}f}"


def badge_html(text: str, kind: str) -> str:
    """A word on a coloured ground; the word says it all, the colour only helps."""
    return f'<span class="rq-badge rq-{kind}">{escape(text)}</span>'


def marked_html(text: str, spans: Sequence[Span], kind: str) -> str:
    """The text, escaped, with these slices of it marked; where they overlap the earlier one is, what is outside not."""
    pieces, position = [], 0
    for span in sorted(spans, key=lambda one: one.start):
        start, end = max(span.start, position), min(span.end, len(text))
        if start < end:
            words = f'<mark class="rq-word rq-mark-{kind}">{text_html(text[start:end])}</mark>'
            pieces += [text_html(text[position:start]), words]
            position = end
    return "".join(pieces) + text_html(text[position:])


def said_html(text: str, judged: SentenceVerdict | None) -> str:
    """An answer sentence with the words that decide its verdict marked, where they are not all of it."""
    spans = [span for span in judged.said if span.text != text] if judged else []
    return marked_html(text, spans, VERDICT_CLASS[judged.verdict] if judged else "plain")


def place(passage: Passage) -> str:
    """Where a passage stands, in words: title, section path, number."""
    section = f" › {passage.section}" if passage.section else ""
    number = f" › {passage.number}" if passage.number and not passage.section.endswith(passage.number) else ""
    return f"{passage.title or passage.document_id}{section}{number}"


def read_link_html(passage: Passage, span: tuple[int, int] | None = None) -> str:
    """A link that opens the document at this passage, these characters of it marked; `in_corpus` completes it."""
    marked = f"&amp;from={span[0]}&amp;to={span[1]}" if span else ""
    address = f"read?passage={quote(passage.passage_id, safe='')}{marked}"
    return f'<a class="rq-read" href="{address}" target="_blank">Read in the document</a>'


def in_corpus(html: str, corpus: str) -> str:
    """The HTML with its links into documents pointing at this corpus; text is escaped and cannot hold such a link."""
    return html.replace('href="read?passage=', f'href="read?corpus={quote(corpus, safe="")}&amp;passage=')


def notice_html(text: str, kind: str = "plain") -> str:
    """One boxed line; ``kind`` is plain, good, mixed or bad."""
    return f'<div class="rq-notice rq-{kind}" role="status">{text_html(text)}</div>'


def question_html(question: str) -> str:
    """The question that the answer below belongs to; the box above may hold another by now."""
    return f'<h2 class="rq-question">{text_html(question)}</h2>'


def changed_html(head: str, changed: Sequence[Difference]) -> str:
    """Settings that differ, a line each, under a head."""
    rows = "".join(f"<li>{escape(row.name)} {escape(row.a)} → <b>{escape(row.b)}</b></li>" for row in changed)
    return f'<div class="rq-changed"><b>{escape(head)}</b><ul class="rq-list">{rows}</ul></div>'


# Answer -------------------------------------------------------------------------------------------------------------


def answer_html(
    answer: Answer,
    scores: Sequence[SentenceScore] = (),
    *,
    n_passages: int,
    final: Collection[int] | None = None,
    checks: Sequence[CitationCheck] = (),
    flagged: bool = True,
    verdicts: Sequence[SentenceVerdict] = (),
) -> str:
    """The answer as text; each sentence marked by its verdict once there is one, each citation showing its passage.

    Sentence ``i`` shows the card ``s{i}``, its citation of passage ``n`` the card ``s{i}.{n}``. ``final`` are the
    sentences whose verdict stands (None: all scored ones). With ``checks`` a citation that does not hold is struck
    out, one that was put in is underlined, and, if ``flagged``, a few words behind the sentence say so. Without
    ``verdicts`` the raw ones of ``scores`` are shown.
    """
    known, judged = verdict_by_index(scores, verdicts), {one.index: one for one in verdicts}
    check_of = {check.index: check for check in checks}
    pieces, position = [], 0
    for index, sentence in enumerate(answer.sentences):
        between = answer.text[position : sentence.start]
        pieces.append(text_html(between) if between.strip() else (_BREAK if "\n" in between else " "))
        is_final = final is None or index in final
        pieces.append(_answer_sentence(index, sentence.text, known.get(index), judged.get(index), final=is_final))
        check = check_of.get(index)
        cited = cited_by(sentence, check)
        pieces.extend(_citation(index, number, check) for number in cited if number <= n_passages)
        if flagged and check and (flag := citation_flag(check)):
            pieces.append(f'<span class="rq-flag">⚑ {escape(flag)}</span>')
        position = sentence.end
    pieces.append(text_html(answer.text[position:]))
    return f'<div class="rq-answer">{"".join(pieces)}</div>'


def cited_by(sentence: AnswerSentence, check: CitationCheck | None) -> tuple[int, ...]:
    """The passages shown behind a sentence: those it cites and those that the check put in."""
    return tuple(sorted({*sentence.citations, *check.verified})) if check else sentence.citations


def _answer_sentence(
    index: int, text: str, verdict: Verdict | None, judged: SentenceVerdict | None, *, final: bool
) -> str:
    """The sentence with its badge; words that tell the verdict and its reason appear on focus and under the pointer."""
    if verdict is None:
        return f'<span class="rq-sentence rq-u-pending" title="not scored yet">{text_html(text)}</span>'
    kind, state = VERDICT_CLASS[verdict], "" if final else " rq-provisional"
    words = str(verdict) if final else f"so far {verdict}"
    reason = f" {escape(judged.reason)}" if judged else ""
    return (
        f'<span class="rq-said" tabindex="0" role="button" data-show="s{index}" aria-describedby="rq-why-{index}">'
        f'<span class="rq-sentence rq-u-{kind}{state}">{said_html(text, judged)}</span>'
        f'<span class="rq-badge rq-{kind}{state}">{escape(_SIGNS.get(verdict, verdict))}</span>'
        f'<span class="rq-tip" id="rq-why-{index}" aria-hidden="true"><b>{escape(words)}</b>'
        f"{':' if reason else ''}{reason}</span></span>"
    )


_SIGNS = {Verdict.SUPPORTED: "✓"}  # the others have their words in the text: they are what a reader looks for
_BREAK = '<span class="rq-break"></span>'


def _citation(index: int, number: int, check: CitationCheck | None = None) -> str:
    mark, state = f"[{number}]", ""
    if check and number not in check.verified:
        mark, state = f"<del>{mark}</del>", ", cited but does not support this"
    elif check and number not in check.written:
        mark, state = f"<ins>{mark}</ins>", ", not cited but supports this"
    label = f"Passage {number}{state}"
    return f'<button type="button" class="rq-cite" data-show="s{index}.{number}" aria-label="{label}">{mark}</button>'


# Stages -------------------------------------------------------------------------------------------------------------


def record_link_html(record_id: str, again: str = "") -> str:
    """A link to the record's own page, which can be shared, and the address that asks it again, where it is known."""
    link = f'<a href="records?record={quote(record_id)}" target="_blank">{escape(record_id)}</a>'
    once_more = f' · <a href="{escape(again)}" target="_blank">a link that asks it again</a>' if again else ""
    return f'<p class="rq-fine">Kept as record {link}{once_more}</p>'


def again_html(own: str, todays: str, record_id: str) -> str:
    """How a record can be asked again, with its own settings or with those of today, and compared with another."""
    return (
        f'<p class="rq-fine">Ask it again: <a href="{escape(own)}" target="_self">with its settings</a> · '
        f'<a href="{escape(todays)}" target="_self">with today’s</a>. '
        f'<a href="records?compare={quote(record_id)}" target="_self">Compare it with another record</a></p>'
    )


def settings_html(settings: Mapping[str, object]) -> str:
    """Every setting by name, as a table."""
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="rq-wide">{escape(str(value))}</td></tr>'
        for name, value in settings.items()
    )
    return (
        '<div class="rq-scroll rq-tall" tabindex="0" role="region" aria-label="Settings"><table class="rq-table">'
        f"<tbody>{rows}</tbody></table></div>"
    )


def records_html(records: Sequence[RecordSummary], stale: Collection[str] = (), against: str = "") -> str:
    """The record list as a table; each question links to its record. Of ``stale`` ids the source has changed since.

    The last column compares: first the one record is chosen, then, with that one's id as ``against``, the other.
    """
    changed = f" {badge_html('the source has changed since', 'mixed')}"
    rows = "".join(
        f'<tr><td>{escape(r.created_at[:16].replace("T", " "))}</td><td class="rq-wide">'
        f'<a href="records?record={quote(r.record_id)}" target="_self">{escape(r.question)}</a>'
        f"{changed if r.record_id in stale else ''}</td>"
        f"<td>{escape(r.index)}</td><td>{escape(r.generator)}</td><td>{escape(r.status)}</td>"
        f"<td>{number_html(r.composite)}</td><td>{_compare_html(r, against)}</td></tr>"
        for r in records
    )
    names = ("time (UTC)", "question", "corpus", "generator", "status", "RePASs", "compare")
    heads = "".join(f'<th scope="col">{head}</th>' for head in names)
    return (
        '<div class="rq-scroll rq-tall" tabindex="0" role="region" aria-label="Records"><table class="rq-table">'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _compare_html(record: RecordSummary, against: str) -> str:
    """The link that chooses this record, as A where none is, then as B."""
    if record.record_id == against:
        return "<b>A</b>"
    if against:
        words, href = "with A", f"compare?a={quote(against)}&amp;b={quote(record.record_id)}"
    else:
        words, href = "choose", f"records?compare={quote(record.record_id)}"
    return f'<a href="{href}" target="_self" aria-label="{words}: {escape(record.question)}">{words}</a>'


def progress_html(phase: str, seconds: float) -> str:
    """What a run does now and for how long it has been at work."""
    return (
        f'<div class="rq-progress"><span class="rq-busy" aria-hidden="true"></span><b>{escape(phase)}</b>'
        f"<span>{seconds:.0f} s</span></div>"
    )


def seconds_html(seconds: Mapping[str, float], words_per_second: float | None = None) -> str:
    """Seconds per stage, in the order of the work, and how fast a language model wrote."""
    known = [(stage, seconds[stage]) for stage in _STAGES if stage in seconds]
    cells = "".join(f"<span>{stage} <b>{_duration(value)}</b></span>" for stage, value in known)
    if words_per_second:
        cells += f"<span>words a second <b>{words_per_second:.1f}</b></span>"
    return f'<div class="rq-seconds" aria-label="Seconds per stage">{cells}</div>'


def _duration(value: float) -> str:
    return f"{1000 * value:.0f} ms" if value < 1 else f"{value:.1f} s"
