"""Markdown and plain text -> chunks that are verbatim slices; what `load_corpus` makes of a source."""

import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ragqa.corpus.chunking import Outline, Section, chunk, front_matter, markdown_outline, plain_outline
from ragqa.corpus.formats import Corpus, detect_format, load_corpus
from ragqa.corpus.streams import corpus_sha256
from ragqa.corpus.text import files, load_text, read_text
from ragqa.english.sentences import split_sentences
from ragqa.errors import ConfigError, CorpusError
from ragqa.types import Passage
from tests.support.effort import grows_no_faster


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return path


def load(tmp_path, text, max_tokens=128, name="page.md"):
    return load_text(write(tmp_path / name, text), max_tokens)


def chunks(text, max_tokens=128, outline=markdown_outline):
    return [span for section in outline(text).sections for span in chunk(text, section.blocks, max_tokens)]


def texts(text, max_tokens=128, outline=markdown_outline):
    return [span.text for span in chunks(text, max_tokens, outline)]


# Structure ----------------------------------------------------------------------------------------------------------

PAGE = """\
# Lake *Example*

It is a lake.

## Depth

It is deep.

### Records

Nobody knows.

## Area

It is wide.
"""


def test_passage_fields(tmp_path):
    passages = load(tmp_path, PAGE)
    begin = PAGE.index("Nobody")
    assert passages[2] == Passage(
        passage_id="page:3",
        document_id="page",
        text="Nobody knows.",
        title="Lake Example",
        section="Depth › Records",
        number="3",
        start=begin,
        end=begin + len("Nobody knows."),
    )
    assert [p.section for p in passages] == ["", "Depth", "Depth › Records", "Area"]
    assert [p.number for p in passages] == ["1", "2", "3", "4"]
    assert {p.title for p in passages} == {"Lake Example"}


def test_setext_headings_and_headings_in_code(tmp_path):
    passages = load(tmp_path, "Title\n=====\n\nOne.\n\nPart\n----\n\n```\n# not a heading\n```\n\nTwo.\n")
    assert [(p.title, p.section, p.text) for p in passages] == [
        ("Title", "", "One."),
        ("Title", "Part", "```\n# not a heading\n```\n\nTwo."),
    ]


def test_headings_inside_lists_and_quotations_are_text(tmp_path):
    (passage,) = load(tmp_path, "> # Quoted\n\n- # Item\n")
    assert (passage.title, passage.text) == ("page", "> # Quoted\n\n- # Item")


def test_a_second_level_one_heading_is_a_section(tmp_path):
    passages = load(tmp_path, "# One\n\na\n\n## Sub\n\nb\n\n# Two\n\nc\n\n## Sub\n\nd\n")
    assert [p.section for p in passages] == ["", "Sub", "Two", "Two › Sub"]


def test_without_a_level_one_heading_the_file_names_the_title(tmp_path):
    passages = load(tmp_path, "Before.\n\n## Part\n\nText.\n\n#\n\nAfter an empty heading.\n", name="a.b.md")
    assert [(p.document_id, p.title, p.section) for p in passages] == [
        ("a.b", "a.b", ""),
        ("a.b", "a.b", "Part"),
        ("a.b", "a.b", ""),
    ]


def test_heading_text_is_plain(tmp_path):
    heading = "## The `code` of [a *link*](http://x.invalid) ![pic](p.png) <b>&amp;</b> \\* ##"
    (passage,) = load(tmp_path, f"# A\n\n{heading}\n\nx\n")
    assert passage.section == "The code of a link pic & *"


def test_a_paragraph_above_dashes_is_not_a_heading(tmp_path):
    paragraph = " ".join(["word"] * 26)
    (passage,) = load(tmp_path, f"{paragraph}\n---\n\nMore.\n")
    assert (passage.section, passage.text) == ("", f"{paragraph}\n---\n\nMore.")
    (passage,) = load(tmp_path, f"{' '.join(['word'] * 25)}\n---\n\nMore.\n")
    assert passage.text == "More."


@pytest.mark.parametrize(
    ("text", "title", "found"),
    [
        ("---\ntitle: 'The page'\ntags: [a]\n---\nText.\n", "The page", ["Text."]),
        ("---\ntitle: x\n---\n# Heading\n\nText.\n", "Heading", ["Text."]),
        ("---\ndate: 2024\n...\n\nText.\n", "", ["Text."]),
        ("---\n\nText: it stays.\n\n---\n", "", ["---\n\nText: it stays.\n\n---"]),  # two rules, no front matter
        ("---\ntitle: never closed\n", "", ["---\ntitle: never closed"]),
        ("---\ntitle: only\n---", "only", []),
        ('---\nTitle : "A "b"" \t\n---', 'A "b"', []),
        ("---\ntitle: 'open\n---", "'open", []),
        ("---\ntitle: ''\n---", "''", []),
        ("---\ntitle: '\n---", "'", []),
        ("---\ntitle: \t \n---\nText.\n", "", ["Text."]),
    ],
)
def test_front_matter(text, title, found):
    assert markdown_outline(text).title == title
    assert texts(text) == found


def test_front_matter_takes_linear_time():
    assert grows_no_faster(lambda n: front_matter(f"---\ntitle: a{' ' * n}b\n---\n"), 5_000)


def test_link_definitions_comments_and_html_are_kept():
    text = "[one]: http://x.invalid\n\n<!-- note -->\n\n<div>\nhtml\n</div>\n\nText.\n\n[two]: http://y.invalid\n"
    assert " ".join(texts(text)).split() == text.split()


def test_plain_text_has_no_headings(tmp_path):
    passages = load(tmp_path, "# one\n\n  \ntwo\ntwo\n \nthree", max_tokens=3, name="notes.txt")
    assert [p.text for p in passages] == ["# one", "two\ntwo\n \nthree"]
    assert {(p.title, p.section) for p in passages} == {("notes", "")}


@pytest.mark.parametrize("outline", [markdown_outline, plain_outline])
@pytest.mark.parametrize("text", ["", "\n", " \n\t\n", "\x0c\n\u00a0"])
def test_blank_text_has_no_chunk(outline, text):
    assert chunks(text, outline=outline) == []


# Chunks -------------------------------------------------------------------------------------------------------------


def test_short_paragraphs_are_merged_up_to_the_limit():
    assert texts("One two.\n\nThree four.\n\nFive six.\n", 4) == ["One two.\n\nThree four.", "Five six."]


def test_a_chunk_never_crosses_a_heading():
    assert texts("One.\n\n## H\n\nTwo.\n", 100) == ["One.", "Two."]


def test_a_block_that_fits_is_not_divided():
    text = "One two three.\n\n- four\n- five\n- six\n\n| a | b |\n|---|---|\n| c | d |\n"
    assert texts(text, 8) == ["One two three.", "- four\n- five\n- six", "| a | b |\n|---|---|", "| c | d |"]
    assert texts(text, 11) == ["One two three.\n\n- four\n- five\n- six", "| a | b |\n|---|---|\n| c | d |"]


def test_a_long_list_is_divided_between_items_then_inside_them():
    text = "- one two\n- three four\n\n  Five six seven. Eight nine ten.\n- eleven\n"
    assert texts(text, 6) == ["- one two\n- three four", "Five six seven. Eight nine ten.", "- eleven"]
    assert texts(text, 3) == ["- one two", "- three four", "Five six seven.", "Eight nine ten.", "- eleven"]


def test_long_code_is_divided_between_lines():
    assert texts("```\na b c\nd e f\n```\n", 4) == ["```\na b c", "d e f\n```"]


def test_sentences_are_not_cut():
    text = "The lake is deep and cold. Many rivers reach it. It is said to be very old indeed.\n"
    assert texts(text, 10) == ["The lake is deep and cold. Many rivers reach it.", "It is said to be very old indeed."]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b c; d e f g", ["a b c;", "d e f g"]),
        ("a b c, d e f g", ["a b c,", "d e f g"]),
        ("a b, c; d e f g", ["a b, c;", "d e f g"]),
        ("a; b c d e f g", ["a; b c d", "e f g"]),  # a border in the first half would make crumbs
        ("a b c d e f g h i", ["a b c d", "e f g h", "i"]),
    ],
)
def test_a_sentence_beyond_the_limit_is_divided_at_clauses_or_words(text, expected):
    assert texts(text, 4) == expected


def test_sentences_that_touch_stay_in_one_word(monkeypatch):
    """A splitter that cuts inside a word or leaves a gap loses nothing."""
    from ragqa.types import Span

    text = "one two.three four five"
    monkeypatch.setattr("ragqa.corpus.chunking.split_sentences", lambda _: (Span("x", 8, 13), Span("five", 19, 23)))
    assert texts(text, 3) == ["one two.three four", "five"]


@pytest.mark.parametrize("text", ["word", "Ünïcödé 漢字 \U0001f600 عربى", "a\x1fb \x07 c"])
def test_short_texts_are_one_chunk(text):
    assert [(s.text, s.start, s.end) for s in chunks(text, 128)] == [(text, 0, len(text))]


# Properties ---------------------------------------------------------------------------------------------------------

SOUP = st.text(alphabet="ab .;,#>-|`~*=1\n\t[]()<é漢\u00a0\x1f", max_size=200)
BLOCKS = """\
# H\t## b c\ta b c.\ta; b, c d e f\t\t  \t- x\t  - y z\t1. q\t> q r\t> > s\t```\t~~~ py\t    code\t---\t===\t[r]: /u 't'
<div>\t</div>\t<!-- x\t-->\t  > - 1. # z\t- # h\t+ ```\t#\t* * *
| a | b |\t|---|---|\t| c | d |\ta|b\t-|-\té\u00a0漢\t\x1f"""
LINES = st.sampled_from(BLOCKS.replace("\n", "\t").split("\t"))
MARKUP = SOUP | st.lists(LINES, max_size=30).map("\n".join)
LIMITS = st.integers(min_value=1, max_value=12)
SENTENCES = st.lists(
    st.lists(st.sampled_from(["lakes", "rivers", "reach", "deep", "water", "it", "3.5"]), min_size=1, max_size=8).map(
        lambda words: " ".join(["The", *words]) + "."
    ),
    min_size=1,
    max_size=6,
).map(" ".join)


def heading_lines(text):
    """What a second reading by markdown-it, with all its rules, calls headings outside of containers."""
    for token, content in pairwise(MarkdownIt("commonmark").enable("table").parse(text)):
        if token.type == "heading_open" and token.level == 0 and len(content.content.split()) <= 25:
            yield from range(*token.map)


def check(text, spans, max_tokens):
    assert all(text[span.start : span.end] == span.text for span in spans)
    assert all(span.text == span.text.strip() != "" for span in spans)
    assert all(len(span.text.split()) <= max_tokens for span in spans)
    assert all(before.end <= after.start for before, after in pairwise(spans))


@given(text=MARKUP, max_tokens=LIMITS)
@settings(deadline=None, max_examples=300)
@pytest.mark.long
def test_markdown_chunks_hold_every_word_but_headings_once_in_order(text, max_tokens):
    assume(not text.startswith("---"))  # front matter has its own test
    spans = chunks(text, max_tokens)
    check(text, spans, max_tokens)
    headings = set(heading_lines(text))
    body = [line for number, line in enumerate(text.split("\n")) if number not in headings]
    assert [word for span in spans for word in span.text.split()] == "\n".join(body).split()


@given(text=MARKUP, max_tokens=LIMITS)
@settings(deadline=None)
def test_plain_chunks_hold_every_word_once_in_order(text, max_tokens):
    spans = chunks(text, max_tokens, plain_outline)
    check(text, spans, max_tokens)
    assert [word for span in spans for word in span.text.split()] == text.split()


@given(paragraphs=st.lists(SENTENCES, min_size=1, max_size=5), max_tokens=st.integers(min_value=9, max_value=40))
@settings(deadline=None)
@pytest.mark.long
def test_no_sentence_that_fits_is_cut(paragraphs, max_tokens):
    text = "\n\n".join(paragraphs)
    spans = chunks(text, max_tokens)
    check(text, spans, max_tokens)
    begin = 0
    for paragraph in paragraphs:
        for sentence in split_sentences(paragraph):
            if len(sentence.text.split()) <= max_tokens:
                start, end = begin + sentence.start, begin + sentence.end
                assert sum(span.start <= start and end <= span.end for span in spans) == 1
        begin += len(paragraph) + 2


@given(paragraphs=st.lists(SENTENCES, min_size=2, max_size=6), max_tokens=st.integers(min_value=9, max_value=60))
@settings(deadline=None)
@pytest.mark.long
def test_neighbours_that_fit_together_are_together(paragraphs, max_tokens):
    fitting = [paragraph for paragraph in paragraphs if len(paragraph.split()) <= max_tokens]
    spans = chunks("\n\n".join(fitting), max_tokens)
    counts = [len(span.text.split()) for span in spans]
    firsts = [len(span.text.split("\n\n")[0].split()) for span in spans]
    assert all(count + first > max_tokens for count, first in zip(counts, firsts[1:], strict=False))


# Files --------------------------------------------------------------------------------------------------------------


def test_folders_are_read_recursively_in_one_order(tmp_path):
    write(tmp_path / "b.md", "Beta.")
    write(tmp_path / "a" / "z.TXT", "Zeta.")
    write(tmp_path / "a" / "deep" / "y.markdown", "Upsilon.")
    write(tmp_path / "C.md", "Capital C.")
    write(tmp_path / "image.png", b"\xff")
    write(tmp_path / ".hidden.md", "Hidden.")
    write(tmp_path / ".git" / "x.md", "Hidden.")
    write(tmp_path / "empty.md", "")
    write(tmp_path / "only-headings.md", "# Nothing below\n")
    assert [p.passage_id for p in load_text(tmp_path)] == ["C:1", "a/deep/y:1", "a/z:1", "b:1"]


def test_files_that_differ_in_their_suffix_only_keep_it(tmp_path):
    write(tmp_path / "a.md", "One.")
    write(tmp_path / "a.txt", "Two.")
    write(tmp_path / "a.txt.md", "Three.")
    write(tmp_path / "b.txt", "Four.")
    assert [p.document_id for p in load_text(tmp_path)] == ["a.md", "a.txt", "a.txt.md", "b"]


def test_links_that_leave_the_folder_are_not_followed(tmp_path):
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    write(outside / "secret.md", "Secret.")
    write(folder / "page.md", "Page.")
    (folder / "link.md").symlink_to(outside / "secret.md")
    (folder / "linked").symlink_to(outside)
    (folder / "loop").symlink_to(folder)
    (folder / "broken.md").symlink_to(outside / "nothing.md")
    (folder / "same.md").symlink_to(folder / "page.md")
    assert [path.name for path in files(folder)] == ["page.md", "same.md"]


@pytest.mark.parametrize("ending", ["\r\n", "\r", "\n"])
def test_byte_order_mark_and_line_endings_do_not_move_offsets(tmp_path, ending):
    path = write(tmp_path / "a.md", ("\ufeff# T\n\nFirst.\n\n## S\n\nSecond\nline.\n").replace("\n", ending))
    passages = load_text(path)
    text = read_text(path)
    assert [(p.title, p.text) for p in passages] == [("T", "First."), ("T", "Second\nline.")]
    assert all(text[p.start : p.end] == p.text for p in passages)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"caf\xe9", r"sub/a\.md is not UTF-8 text \(byte 3 cannot be read\); save it as UTF-8"),
        ("text".encode("utf-16"), r"sub/a\.md is not UTF-8"),
        ("text".encode("utf-16-le"), r"sub/a\.md holds zero bytes"),
    ],
)
def test_files_that_are_not_utf8(tmp_path, content, message):
    write(tmp_path / "sub" / "a.md", content)
    with pytest.raises(CorpusError, match=message) as raised:
        load_text(tmp_path)
    assert str(tmp_path) not in str(raised.value)


def test_a_file_that_vanishes(tmp_path):
    with pytest.raises(CorpusError, match=r"gone\.md cannot be read: No such file"):
        read_text(tmp_path / "gone.md")


def test_a_folder_that_cannot_be_listed(tmp_path, monkeypatch):
    def walk(top, onerror):
        onerror(PermissionError(13, "Permission denied", "private"))
        return iter(())

    monkeypatch.setattr(os, "walk", walk)
    with pytest.raises(CorpusError, match="folder private cannot be read: Permission denied"):
        files(tmp_path)


def test_a_name_that_is_not_unicode(tmp_path):
    try:
        write(tmp_path / os.fsdecode(b"caf\xe9.md"), "Text.")
    except OSError:
        pytest.skip("this file system takes no such name")
    assert [p.document_id for p in load_text(tmp_path)] == ["caf\\udce9"]


def test_no_text(tmp_path):
    with pytest.raises(CorpusError, match="no text file in"):
        load_text(tmp_path)
    write(tmp_path / "a.md", "# Heading\n")
    with pytest.raises(CorpusError, match="1 text files in .* hold no text below their headings"):
        load_text(tmp_path)
    with pytest.raises(CorpusError, match="no text file in"):
        load_text(write(tmp_path / "a.pdf", b"%PDF"))


def test_the_limit_is_at_least_one(tmp_path):
    with pytest.raises(ConfigError, match="at least 1 token, got 0"):
        load(tmp_path, "Text.", max_tokens=0)


# load_corpus --------------------------------------------------------------------------------------------------------

JSON = '[{"ID": "x", "DocumentID": 1, "PassageID": "1", "Passage": "A rule."}]'


def test_formats_are_detected(tmp_path):
    page = write(tmp_path / "text" / "deep" / "page.md", "Text.")
    rule = write(tmp_path / "json" / "documents" / "1.json", JSON)
    write(tmp_path / "json" / "titles.json", "{}")
    assert detect_format(tmp_path / "text") == detect_format(page) == "text"
    assert detect_format(tmp_path / "json") == detect_format(rule.parent) == detect_format(rule) == "obliqa"


def test_ambiguous_and_empty_sources_ask_for_the_format(tmp_path):
    with pytest.raises(CorpusError, match=r"neither JSON documents nor .* --format"):
        load_corpus(tmp_path)
    write(tmp_path / "1.json", JSON)
    write(tmp_path / "README.md", "# About\n\nText.\n")
    with pytest.raises(CorpusError, match="holds 1 JSON and 1 text files; .* --format"):
        load_corpus(tmp_path)
    assert [p.text for p in load_corpus(tmp_path, "obliqa").passages] == ["A rule."]
    assert [p.text for p in load_corpus(tmp_path, "text").passages] == ["Text."]


def test_unknown_source_and_format(tmp_path):
    with pytest.raises(CorpusError, match="does not exist"):
        load_corpus(tmp_path / "nowhere")
    with pytest.raises(CorpusError, match="unknown corpus format 'tex'; expected one of: obliqa, documents"):
        load_corpus(tmp_path, "tex")


def test_the_chunk_size_reaches_the_chunker(tmp_path):
    path = write(tmp_path / "a.md", "One two three.\n\nFour five six.\n")
    assert [len(load_corpus(path, None, limit).passages) for limit in (3, 6)] == [2, 1]


def test_the_hash_is_of_the_content(tmp_path):
    here, there = (load_corpus(write(tmp_path / name / "a.md", PAGE)) for name in ("here", "there"))
    assert here == there == Corpus(here.passages, "text", corpus_sha256(here.passages))
    assert len(here.sha256) == 64
    windows = load_corpus(write(tmp_path / "windows" / "a.md", PAGE.replace("\n", "\r\n")))
    assert windows.sha256 == here.sha256


@pytest.mark.parametrize("field", ["passage_id", "title", "section", "text"])
def test_the_hash_changes_with_every_field(field):
    passage = Passage("a:1", "a", "Text.", title="T", section="S")
    assert corpus_sha256([passage]) != corpus_sha256([replace(passage, **{field: "other"})])
    assert corpus_sha256([passage]) == corpus_sha256([replace(passage, number="5", start=3, end=9)])


def test_the_hash_knows_order_and_borders():
    one, two = Passage("a:1", "a", "x"), Passage("a:2", "a", "y")
    assert corpus_sha256([one, two]) != corpus_sha256([two, one])
    assert corpus_sha256([replace(one, title="ab")]) != corpus_sha256([replace(one, title="a", section="b")])
    assert corpus_sha256([]) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # sha256 of nothing


@pytest.mark.long
def test_importing_stays_light():
    code = (
        "import sys, ragqa.corpus.demo; "
        "print(sorted({'torch', 'numpy', 'nupunkt', 'markdown_it', 'pydantic', 'streamlit'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_outline_of_sections_without_blocks():
    assert markdown_outline("# A\n## B\n### C\n") == Outline("A", ())
    assert plain_outline("") == Outline("", (Section((), ()),))
