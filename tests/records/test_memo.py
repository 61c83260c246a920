"""A memo: what it says, every quotation word for word, nothing in it active, in each kind of file."""

import io
import zipfile
from dataclasses import replace
from html import unescape

import pytest
from docx import Document
from markdown_it import MarkdownIt

import ragqa.records.findings as findings
import ragqa.records.memo as memo_module
import ragqa.records.words as words
from ragqa.errors import ConfigError, RecordError
from ragqa.records.cases import CaseEvent, Signer, Step
from ragqa.records.memo import Grid, MemoSection, Points, Quotation, memo_of
from ragqa.records.memo_files import memo_bytes, write_memo
from ragqa.records.sign_off import SignOff
from ragqa.records.store import RecordStore
from ragqa.records.thread import records_back
from ragqa.types import FollowUp, Question
from ragqa.types.scores import Verdict
from tests.support.fakes import FakeGenerator, answer
from tests.support.helpers import PASSAGES, make_pipeline
from tests.support.hostile import hostile_texts

OUTER = '<script>alert(1)</script> =HYPERLINK("http://a.b") [x](http://a.b) { INCLUDETEXT "c:\\\\x" }'


@pytest.fixture
def store(tmp_path):
    return RecordStore(tmp_path / "records.sqlite3")


def asked(store, question, **changes):
    """The record of this question, answered by fakes."""
    for event in make_pipeline(records=store, **changes).run(question):
        record_id = getattr(event, "record_id", "")
    return store.load(record_id)


def quotations(memo):
    return [block for block in memo.blocks if isinstance(block, Quotation)]


def below(memo, head):
    """The blocks of the section with this head."""
    at = next(n for n, one in enumerate(memo.blocks) if isinstance(one, MemoSection) and one.text == head)
    rest = memo.blocks[at + 1 :]
    return rest[: next((n for n, one in enumerate(rest) if isinstance(one, MemoSection)), len(rest))]


def test_a_memo_has_question_result_sentences_rules_duties_settings_and_a_page_for_review(store):
    record = asked(store, Question("What must a firm do?"))
    record = replace(record, answer=replace(record.answer, not_found=("and when?",)))
    memo = memo_of([record])
    heads = [one.text for one in memo.blocks if isinstance(one, MemoSection)]
    assert heads == [
        "Question",
        "Result",
        "The answer, sentence by sentence",
        "What was not found",
        "Rules, word for word",
        "Obligations left out",
        "Settings and fingerprints",
        "Review",
    ]
    result = [one.text for one in below(memo, "Result")]
    assert result[0] == "Partly answered"
    assert "RePASs" in result[1]
    (grid,) = below(memo, "The answer, sentence by sentence")
    assert grid.rows[0][:3] == ("A firm must act at once.", "quoted", "General 1.1")
    assert grid.rows[1][1] == "not supported"
    assert below(memo, "What was not found") == (Points(("and when?",)),)
    (duties,) = below(memo, "Obligations left out")
    assert ("It must not sleep.", "not covered") in [row[:2] for row in duties.rows]
    settings = dict(below(memo, "Settings and fingerprints")[0].rows)
    assert settings["Corpus"] == record.index
    assert settings["Threshold"] == "0.70"
    assert any(name.startswith("Model, ") for name in settings)
    (form,) = below(memo, "Review")
    assert form.rows == (("Reviewed by", ""), ("Date", ""), ("Decision", ""), ("Remarks", ""))


def test_the_page_for_review_names_who_decided_what_when_and_what_has_changed_since(store):
    record = asked(store, Question("What must a firm do?"))
    submission = CaseEvent(Step.SUBMITTED, Signer("ann@example.org", "https://id|ann"))
    decision = CaseEvent(Step.APPROVED, Signer("Bob"), "2026-11-26T02:15:59.123456+00:00", "as the rule says")
    memo = memo_of([record], signed=[SignOff("Item 1 of case “X”", submission, decision, ("record changed",))])
    grid, form = below(memo, "Review")
    assert grid.rows == (
        (
            "Item 1 of case “X”",
            "ann@example.org",
            "approved by Bob (name not proven), 2026-11-26 02:15 UTC. Since then: record changed",
            "as the rule says",
        ),
    )
    assert form.is_form
    assert sum(grid.widths) == 100


def test_every_quotation_stands_in_the_corpus_word_for_word_in_the_file_too(store):
    memo = memo_of([asked(store, Question("What must a firm do?"))])
    corpus = {one.text for one in PASSAGES}
    assert len(quotations(memo)) >= 2
    assert {one.text for one in quotations(memo)} <= corpus
    document = Document(io.BytesIO(memo_bytes(memo, ".docx")))
    written = [one.text for one in document.paragraphs if one.style.name == "Quote"]
    assert written == [one.text for one in quotations(memo)]


def test_a_follow_up_brings_the_answers_before_it(store):
    first = asked(store, Question("What must a firm do?"))
    follow_up = FollowUp(first.record_id, "And else?", "What else must a firm do?")
    last = asked(store, Question("What else must a firm do?", follow_up=follow_up))
    thread = list(records_back(last.record_id, store))
    assert [one.record_id for one in thread] == [last.record_id, first.record_id]
    memo = memo_of(thread[::-1])
    assert [one.text for one in memo.blocks if isinstance(one, MemoSection) and one.level == 1] == [
        "Question 1",
        "Question 2",
        "Settings and fingerprints",
        "Review",
    ]
    assert sum(isinstance(one, Grid) for one in memo.blocks[-4:]) == 2  # the same settings stand there once
    store.delete([first.record_id])
    assert [one.record_id for one in records_back(last.record_id, store)] == [last.record_id]
    with pytest.raises(RecordError, match="no record"):
        list(records_back(first.record_id, store))


def test_a_checked_text_and_a_refusal(store):
    record = asked(store, Question("", given="A firm must act at once. The moon is green."), generator=None)
    memo = memo_of([store.comment(record.record_id, 1, Verdict.UNSUPPORTED, "ask the vendor")], "Our policy")
    (grid,) = below(memo, "The text, sentence by sentence")
    assert memo.title == "Our policy"
    assert grid.rows[0][1:3] == ("quoted", "General 1.1")
    assert "Note: ask the vendor" in grid.rows[1][3]
    refused = replace(answer("The documents do not say.", [()]), is_refusal=True)
    memo = memo_of([asked(store, Question("Who is the queen?"), generator=FakeGenerator(refused))])
    assert below(memo, "Result")[0].text == "Not found in these documents"
    assert below(memo, "What was not found") == (Points(("Who is the queen?",)),)


def test_an_answer_in_doubt_is_in_doubt_in_each_section(store, monkeypatch):
    for module in (findings, words, memo_module):
        monkeypatch.setattr(module, "weak_match", lambda _: 0.3)
    memo = memo_of([asked(store, Question("Does it apply to small firms?"))])
    assert below(memo, "Result")[0].text == "Possibly answered"
    assert below(memo, "What was not found")[0].text.startswith("Possibly the whole question")
    assert "may not cover" in below(memo, "Obligations left out")[0].text


def hostile_memo(store):
    """A memo on an answer from hostile passages, which it quotes, and their texts."""
    texts = [OUTER, *hostile_texts()[::40]]
    record = asked(store, Question(f"What of {OUTER}?"))
    passages = tuple(replace(PASSAGES[0], passage_id=f"h:{n}", text=text) for n, text in enumerate(texts))
    memo = memo_of([record], OUTER)
    blocks = (*(Quotation(one.text, one.text) for one in passages), Points(tuple(texts)))
    grid = Grid(("Text",), tuple((text,) for text in texts), (100,))
    return replace(memo, blocks=(*memo.blocks, *blocks, grid))


def test_no_text_becomes_a_field_a_link_or_markup(store):
    memo = hostile_memo(store)
    with zipfile.ZipFile(io.BytesIO(memo_bytes(memo, ".docx"))) as archive:
        body = archive.read("word/document.xml").decode()
        relations = archive.read("word/_rels/document.xml.rels").decode()
    assert not any(tag in body for tag in ("<w:hyperlink", "<w:fldSimple", "<w:instrText", "<w:fldChar"))
    assert 'TargetMode="External"' not in relations
    page = memo_bytes(memo, ".html").decode()
    assert not any(tag in page.lower() for tag in ("<script", "<a ", "<img", "<iframe", "<svg", ' onerror="', "<form"))
    assert unescape(page).count("<script>alert(1)</script>") >= 4
    rendered = MarkdownIt("gfm-like", {"linkify": False, "html": True}).render(memo_bytes(memo, ".md").decode())
    assert not any(tag in rendered.lower() for tag in ("<script", "<a ", "<img", "<iframe"))


def test_markdown_reads_as_the_corpus_has_it(store):
    text = "1. A *firm* must [act] <b>at</b> once | or &amp; pay $5.\n- It_must_not # (a) sleep: https://c.d.\n==="
    memo = replace(memo_of([asked(store, Question("What?"))]), blocks=(Quotation(text, "General 1.1"),))
    rendered = MarkdownIt("gfm-like", {"linkify": False}).render(memo_bytes(memo, ".md").decode())
    quoted = rendered.split("<blockquote>\n<p>")[1].split("</p>")[0]
    assert unescape(quoted.replace("<br />", "")) == text


def test_a_template_gives_its_styles_and_may_lack_some(store, tmp_path):
    memo = memo_of([asked(store, Question("What must a firm do?"))])
    template, out = tmp_path / "firm.docx", tmp_path / "memo.docx"
    document = Document()
    document.styles["Heading 1"].font.name = "Firm Sans"
    document.styles["Quote"].delete()
    document.sections[0].header.paragraphs[0].text = "The Firm"
    document.save(template)
    write_memo(memo, out, template)
    made = Document(out)
    assert made.styles["Heading 1"].font.name == "Firm Sans"
    assert made.sections[0].header.paragraphs[0].text == "The Firm"
    assert {one.text for one in quotations(memo)} <= {one.text for one in made.paragraphs}
    (tmp_path / "no.docx").write_text("no")
    with pytest.raises(ConfigError, match="expected a Word document"):
        write_memo(memo, out, tmp_path / "no.docx")
    whole = template.read_bytes()
    (tmp_path / "damaged.docx").write_bytes(whole[:60] + bytes(len(whole[60:400])) + whole[400:])
    with zipfile.ZipFile(tmp_path / "other.docx", "w") as archive:
        archive.writestr("[Content_Types].xml", "<a")
    for name in ("damaged.docx", "other.docx"):
        with pytest.raises(ConfigError, match="expected a Word document"):
            write_memo(memo, out, tmp_path / name)
    with pytest.raises(ConfigError, match="a template has the styles of"):
        write_memo(memo, tmp_path / "memo.md", template)
    with pytest.raises(ConfigError, match=r"\.md, \.html, \.docx, \.pdf"):
        write_memo(memo, tmp_path / "memo.odt")


def test_a_pdf_is_made_by_libreoffice_or_the_choices_are_named(store, tmp_path, monkeypatch):
    memo = memo_of([asked(store, Question("What must a firm do?"))])
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"no soffice on PATH.*\.docx, \.html or \.md"):
        memo_bytes(memo, ".pdf")
    office = tmp_path / "soffice"
    office.write_text('#!/bin/sh\nwhile [ "$1" != --outdir ]; do shift; done\nprintf "%%PDF of $3" > "$2/memo.pdf"\n')
    office.chmod(0o755)
    made = memo_bytes(memo, ".pdf")
    assert made.startswith(b"%PDF of ")
    assert made.endswith(b"memo.docx")
    office.write_text("#!/bin/sh\necho no room >&2\nexit 1\n")
    with pytest.raises(RecordError, match="no room"):
        memo_bytes(memo, ".pdf")


def test_what_no_xml_can_hold_is_replaced(store):
    memo = replace(memo_of([asked(store, Question("What?"))]), blocks=(Quotation("a\ufffeb\x00c", "x\uffff"),))
    document = Document(io.BytesIO(memo_bytes(memo, ".docx")))
    assert document.paragraphs[-1].text == "a\ufffdbc"
