"""Values -> HTML. Pure; every value is escaped here, so that no text of a corpus, a question or a model becomes markup.

Rows that open are ``<details>``: they work by keyboard, on phones and without a request to the server.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from html import escape
from typing import Final
from urllib.parse import quote

from markupsafe import Markup

from ragqa.corpus.citing import short_name, short_names
from ragqa.records.comparison import Said
from ragqa.records.words import QUOTED, cited_by, in_lines, mark_word, with_names
from ragqa.scoring.repass.attribution import citation_flag
from ragqa.scoring.repass.explanation import verdict_by_index
from ragqa.types import Answer, Passage, Span
from ragqa.types.events.pipeline import FIRST_WORDS, STAGE_NAMES, STAGES, Answered
from ragqa.types.scores import CitationCheck, SentenceScore, SentenceVerdict, Verdict
from ragqa.ui.html.reader import passage_text_html
from ragqa.ui.html.template import Templates, shared, text_html

VERDICT_CLASS = {
    Verdict.SUPPORTED: "good",
    Verdict.UNSUPPORTED: "plain",
    Verdict.CONTRADICTED: "bad",
    Verdict.DISPUTED: "mixed",
    Verdict.DISAGREEING: "mixed",
    Verdict.NONE: "none",
}
RENDER: Final = Templates("render.html")
_ITEM: Final = re.compile(r"([:;](?: and| or)?) (\((?:[a-z]{1,2}|[ivx]{1,5}|\d{1,2})\) )")  # items get separate lines


def badge_html(text: str, kind: str) -> str:
    """A word on a coloured background; the meaning never depends on the colour alone."""
    return f'<span class="rq-badge rq-{kind}">{escape(text)}</span>'


@shared
def marked_html(text: str, spans: Sequence[Span], kind: str) -> str:
    """The text, escaped, with these spans marked; of overlapping spans the earlier one wins."""
    pieces, position = [], 0
    for span in sorted(spans, key=lambda one: one.start):
        start, end = max(span.start, position), min(span.end, len(text))
        if start < end:
            words = f'<mark class="rq-word rq-mark-{kind}">{text_html(text[start:end])}</mark>'
            pieces += [text_html(text[position:start]), words]
            position = end
    return "".join(pieces) + text_html(text[position:])


@shared
def said_html(text: str, judged: SentenceVerdict | None) -> str:
    """An answer sentence with the words that decide its verdict marked, unless they are the whole sentence."""
    if " | " in text:  # a row of a table
        return passage_text_html(text)
    spans = [span for span in judged.said if len(span.text) < len(text)] if judged else []
    return _ITEM.sub(r"\1<br>\2", marked_html(text, spans, VERDICT_CLASS[judged.verdict] if judged else "plain"))


@shared
def read_link_html(passage: Passage, span: tuple[int, int] | None = None) -> str:
    """A link that opens the document at this passage, with ``span`` marked; `in_corpus` completes it."""
    marked = f"&amp;from={span[0]}&amp;to={span[1]}" if span else ""
    return f'<a class="rq-read" href="{_address(passage)}{marked}" target="_blank">Read in the document</a>'


def _address(passage: Passage) -> str:
    return f"read?passage={quote(passage.passage_id, safe='')}"


def in_corpus(html: str, corpus: str) -> str:
    """The HTML with its links into documents pointing at this corpus; text is escaped and cannot hold such a link."""
    return html.replace('href="read?passage=', f'href="read?corpus={quote(corpus, safe="")}&amp;passage=')


def notice_html(text: str, kind: str = "plain") -> str:
    """One boxed line; ``kind`` is plain, good, mixed or bad."""
    return f'<div class="rq-notice rq-{kind}" role="status">{text_html(text)}</div>'


def question_html(question: str) -> str:
    """The question of the answer below; the input above may hold another question by now."""
    return f'<h2 class="rq-question">{text_html(question)}</h2>'


# Answer -------------------------------------------------------------------------------------------------------------


def answer_html(
    answer: Answer,
    scores: Sequence[SentenceScore] = (),
    *,
    passages: Sequence[Passage],
    final: Collection[int] | None = None,
    checks: Sequence[CitationCheck] = (),
    verdicts: Sequence[SentenceVerdict] = (),
) -> str:
    """The answer as a list of its sentences, each with its verdict (if known) and the rules that it cites.

    Sentence ``i`` opens the card ``s{i}``, its citation of passage ``n`` the card ``s{i}.{n}``. ``final`` are the
    sentences whose verdict is final (None: all scored ones). With ``checks`` a citation that does not hold is struck
    out and an added one is underlined, and a few words after the sentence say so. Without ``verdicts`` the raw ones of
    ``scores`` are shown. The names of passages in the text of a refusal are links.
    """
    known, judged = verdict_by_index(scores, verdicts), {one.index: one for one in verdicts}
    check_of, names, rows = {check.index: check for check in checks}, short_names(passages), []
    position = 0
    for index, sentence in enumerate(answer.sentences):
        between, position = answer.text[position : sentence.start].strip(), sentence.end
        verdict, check = known.get(index), check_of.get(index)
        words, kind = mark_of(verdict, judged.get(index)) if verdict else ("", "")
        numbers = [number for number in cited_by(sentence, check) if number <= len(passages)]
        cited = [(number, names[number - 1], passages[number - 1]) for number in numbers]
        text = in_lines(sentence.text, [of for _, _, of in cited])
        flag = with_names(citation_flag(check), passages) if check else ""
        one, is_final = judged.get(index), final is None or index in final
        reason = with_names(one.reason, passages) if one else ""
        rows.append((index, between, text, verdict, words, kind, one, reason, is_final, cited, check, flag))
    rest = answer.text[position:].strip()
    return RENDER.answer(rows, _linked(rest, passages if answer.is_refusal else ()))


def _linked(text: str, passages: Sequence[Passage]) -> Markup:
    """The text, in which the short names of these passages are links."""
    named = {text_html(short_name(one)): one for one in passages}
    names = "|".join(re.escape(name) for name in sorted(named, key=len, reverse=True)) or r"\b\B"
    link = '<a href="{}" target="_blank">{}</a>'
    found = re.sub(rf"(?:{names})(?=[;.]|$)", lambda it: link.format(_address(named[it[0]]), it[0]), text_html(text))
    return Markup(found)  # noqa: S704 - escaped by `text_html`


def mark_of(verdict: Verdict, judged: SentenceVerdict | Said | None = None) -> tuple[str, str]:
    """The mark of a sentence: a word, and the kind of its colour."""
    word = mark_word(verdict, judged)
    return word, QUOTED if word == QUOTED else VERDICT_CLASS[verdict]


def seconds_html(seconds: Mapping[str, float], words_per_second: float | None = None) -> str:
    """Seconds per stage, in the order of the pipeline, and the writing speed of a language model."""
    before = STAGE_NAMES.index(STAGES[Answered])
    order = (*STAGE_NAMES[:before], FIRST_WORDS, *STAGE_NAMES[before:])
    known = [(stage, seconds[stage]) for stage in order if stage in seconds]
    return RENDER.seconds(known, words_per_second)
