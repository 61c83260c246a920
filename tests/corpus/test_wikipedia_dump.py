"""Dumps and ZIM files as streams: which pages, which text, from where on, how much memory, and what is broken."""

import bz2
import gzip
import os
import subprocess
import sys
import tracemalloc
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragqa.corpus.formats import detect_format, load_corpus, open_stream
from ragqa.corpus.streams import WHOLE_FILE_BYTES, PassageStream, file_identity
from ragqa.corpus.wikipedia import dump as dump_xml
from ragqa.corpus.wikipedia.article import article_passages
from ragqa.corpus.wikipedia.dump import DumpStream, files
from ragqa.corpus.wikipedia.wikitext import wikitext_markdown
from ragqa.errors import ConfigError, CorpusError
from tests.support.effort import effort, grows_no_faster
from tests.support.made import stream_passages
from tests.support.synthetic_dump import HEAD, TAIL, write_dump

pytestmark = pytest.mark.long

ARTICLE = """{{Short description|x}}<!-- hidden -->{{Infobox lake
| name = Lake [[Orl (lake)|Orl]]
| image = orl.jpg
| depth_m = {{convert|40|m|ft}}<br>(mean)
| formed = {{start date|1990|5|3}}
| inflows = {{ubl|A|B [[C]]}}
}}
'''Lake Orl''' &ndash; a ''lake''<ref name=a>{{cite web|title=T}}</ref> {{unknown|x}}of {{lang|xx|Bim}}, H<sub>2</sub>O
<math>\\frac{{a}}{b}</math> [https://example.org the site][[File:z.jpg|thumb|a [[b|c]] d]]<ref name="b"/>.
== Fish ''here'' ==
* carp
** [[Char|char]]
# first
; term
: meaning
=== Table ===
{| class="wikitable" style="x"
|+ Catches
|-
! Year !! Kind
! colspan="2" | Count
|-
| rowspan=2 | 1990 || char
|| 4 || 5
|-
| carp || 6 <br> 7
{|
| inner || table
|}
|}
----
After <nowiki>[[raw]]</nowiki>.
[[Category:Lakes]] [[Datei:x.png]]"""


def test_an_article_as_markdown():
    assert wikitext_markdown(ARTICLE, frozenset({"file", "category", "datei"})) == (
        "| Infobox lake | |\n| --- | --- |\n| name | Lake Orl |\n| depth m | 40 m, (mean) |\n"
        "| formed | 1990-05-03 |\n| inflows | A, B C |\n\n"
        "Lake Orl – a lake of Bim, H2O\n\\frac{{a}}{b} the site.\n\n"
        "## Fish here\n\n- carp\n   - char\n1. first\nterm\nmeaning\n\n### Table\n\n"
        "Catches\n\n| Year | Kind | Count | |\n| --- | --- | --- | --- |\n| 1990 | char | 4 | 5 |\n"
        "| 1990 | carp | 6, 7 | |\n\n| inner | table |\n| --- | --- |\n\nAfter [[raw]]."
    )


def test_every_passage_has_the_title_and_its_section_path():
    passages = article_passages("Lake Orl", wikitext_markdown(ARTICLE), 30)
    assert {passage.title for passage in passages} == {passage.document_id for passage in passages} == {"Lake Orl"}
    assert list(dict.fromkeys(passage.section for passage in passages)) == ["", "Fish here", "Fish here › Table"]
    assert [passage.passage_id for passage in passages] == [f"Lake Orl:{n + 1}" for n in range(len(passages))]
    markdown = wikitext_markdown(ARTICLE)
    assert all(markdown[passage.start : passage.end] == passage.text for passage in passages)


SPANNED = "| a | b |\n| --- | --- |\n| a | c |\n| a | d |\n| e | f |"


@pytest.mark.parametrize(
    ("wikitext", "markdown"),
    [
        ("", ""),
        ("{{unclosed | a [[b", "unclosed | a b"),
        ("a }} b ]] c", "a  b  c".replace("  ", " ")),
        ("x <ref>never closed", "x never closed"),
        ("x <!-- never closed", "x"),
        (
            "{|\n| a || b\n== Heading ==\ntext",
            "| a | b |\n| --- | --- |\n\n## Heading\n\ntext",
        ),  # a heading ends a table
        ("{|\n| alone\n|}", "alone"),
        ("{|\n|}", ""),
        ("{|\n| rowspan=3 | a || b\n|-\n| c\n|-\n| d\n|-\n| e || f\n|}", SPANNED),
        ("{|\n| rowspan=2 colspan=2 | a || b\n|-\n| c\n|}", "| a | | b |\n| --- | --- | --- |\n| a | | c |"),
        ("= Top =\ntext", "## Top\n\ntext"),
        ("==\n====\n= =", "\\==\n\\====\n= ="),
        ("Text\n----\nmore", "Text\n\nmore"),
        ("Text\n---\nmore", "Text\n\\---\nmore"),  # not a heading in Markdown
        ("<table><tr><td>x</td></tr></table>", "x"),
        ("{{{parameter}}} y", "} y"),
        ("a&nbsp;b &lt;ref&gt; &#124;", "a b <ref> |"),
        ("[[:Category:Lakes]] [[de:See]]", "Category:Lakes de:See"),
        ("{{nowrap|[[a|b]] c}}", "b c"),
        ("{{Infobox x|a=1|module={{Infobox y|b=2}}}}", None),
        ("\x00\x01\x02\x031\x01", "1"),
    ],
)
def test_odd_wikitext(wikitext, markdown):
    found = wikitext_markdown(wikitext)
    assert markdown is None or found == markdown


HOSTILE = {
    "open templates": (50_000, lambda n: "{{" * n),
    "open links": (50_000, lambda n: "[[" * n),
    "open tables": (30_000, lambda n: "{|\n" * n),
    "nested templates": (20_000, lambda n: "{{a|" * n + "}}" * n),
    "nested links": (300_000, lambda n: "[[a " * n + "]]" * n),
    "nested tables": (10_000, lambda n: "{|\n|-\n| a\n" * n + "|}\n" * n),
    "nested infoboxes": (20_000, lambda n: "{{infobox|a=" * n + "}}" * n),
    "crossed brackets": (20_000, lambda n: "{{[[" * n + "}}]]" * n),
    "open addresses": (30_000, lambda n: "[http://x " * n),
    "open elements": (50_000, lambda n: "<b>" * n),
    "open references": (50_000, lambda n: "<ref>" * n),
    "open comments": (50_000, lambda n: "<!--" * n),
    "open formulas": (50_000, lambda n: "<math>" * n),
    "unfinished elements": (50_000, lambda n: "<ref " * n),
    "less-than signs": (200_000, lambda n: "<" * n),
    "great spans": (1_000, lambda n: "{|\n" + "| rowspan=9999 colspan=9999 | x\n|-\n" * n),
    "a wide row": (50_000, lambda n: "{|\n|" + "a||" * n),
    "a long infobox": (20_000, lambda n: "{{infobox\n" + "|a=b\n" * n + "}}"),
    "a deep list": (100_000, lambda n: "*" * n),
    "quotes": (200_000, lambda n: "'" * n),
    "equals signs": (50_000, lambda n: "= " * n),
    "spaces": (200_000, lambda n: " " * n),
    "one line": (300_000, lambda n: "word " * n),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_wikitext_takes_linear_time(name):
    most, wikitext = HOSTILE[name]
    found = []

    def read(n):
        found.append(article_passages("T", wikitext_markdown(wikitext(n)), 128))

    assert grows_no_faster(read, most // 8)
    assert sum(len(passage.text) for passage in found[-1]) < 3e6


PIECES = (
    *("{{", "}}", "[[", "]]", "{|", "|}", "|-", "|", "!", "\n", "=", "a b", "<ref>", "</ref>", "<!--", "-->", "<br>"),
    *("infobox x", "*", "#", "'''", "File:", "rowspan=3", "&amp;", "http://x"),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=60))
def test_any_wikitext_gives_text_without_placeholders(pieces):
    markdown = wikitext_markdown("".join(pieces))
    assert not set(markdown) & set("\x00\x01\x02\x03")
    assert markdown == markdown.strip()


# Dumps ---------------------------------------------------------------------------------------------------------------


def page(title, text, *, namespace=0, redirect="", model="wikitext"):
    target = f'<redirect title="{redirect}" />' if redirect else ""
    return (
        f"<page><title>{title}</title><ns>{namespace}</ns><id>1</id>{target}<revision><id>2</id><model>{model}</model>"
        f'<text bytes="1" xml:space="preserve">{text}</text></revision></page>\n'
    )


def write_pages(path, *pages, head=HEAD, tail=TAIL):
    path.write_text(head + "".join(pages) + tail, encoding="utf-8")
    return path


def titles(path, start=0):
    return [passages[0].title for _, passages in DumpStream(path).articles(start)]


def test_only_articles_are_read(tmp_path):
    path = write_pages(
        tmp_path / "d.xml",
        page("A", "One &amp;amp; two."),
        page("Talk:A", "Said.", namespace=1),
        page("Old", "#REDIRECT [[A]]", redirect="A"),
        page("Module", "return {}", model="Scribunto"),
        page("Blank", "{{nothing}}"),
        page("B  &amp; C", "Three."),
    )
    articles = list(DumpStream(path).articles())
    assert [(position, passages[0].title, passages[0].text) for position, passages in articles] == [
        (0, "A", "One & two."),
        (2, "B & C", "Three."),  # the blank one has position 1
    ]


def test_the_last_revision_counts_and_local_names_of_namespaces_are_dropped(tmp_path):
    names = '<namespace key="6">Datei</namespace><namespace key="14">Kat</namespace>'
    head = HEAD.replace("</namespaces>", f"{names}</namespaces>")
    text = page("A", "now [[Datei:x.png|thumb|seen]] [[kat:K]] [[Bild]]")
    text = text.replace("<revision>", "<revision><id>1</id><text>before</text></revision><revision>")
    assert [p.text for p in stream_passages(write_pages(tmp_path / "d.xml", text, head=head))] == ["now Bild"]


SMALL = 0.4  # megabytes: some 200 articles


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    path = tmp_path_factory.mktemp("dump") / "small.xml"
    n_articles = write_dump(path, SMALL)
    return path, n_articles


def test_the_invented_dump_is_the_same_each_time_and_looks_like_one(small, tmp_path):
    path, n_articles = small
    assert write_dump(tmp_path / "again.xml", SMALL) == n_articles
    assert (tmp_path / "again.xml").read_bytes() == path.read_bytes()
    write_dump(tmp_path / "other.xml", 0.1, seed=2)
    assert (tmp_path / "other.xml").read_bytes() != path.read_bytes()[: 10**5]
    articles = list(DumpStream(path).articles())
    assert len(articles) == n_articles
    sections = {passage.section for _, passages in articles for passage in passages}
    texts = [passage.text for _, passages in articles for passage in passages]
    assert len(sections) > 30
    assert any("| --- |" in text for text in texts)
    assert not any(mark in text for text in texts for mark in ("{{", "[[", "<ref", "''"))


@pytest.mark.parametrize("suffix", [".xml.gz", ".xml.bz2"])
def test_packed_dumps_give_the_same(small, tmp_path, suffix):
    path = tmp_path / f"small{suffix}"
    write_dump(path, SMALL)
    data = path.read_bytes()
    assert (bz2 if suffix.endswith("bz2") else gzip).decompress(data) == small[0].read_bytes()
    assert list(DumpStream(path).articles()) == list(DumpStream(small[0]).articles())
    assert data.count(b"BZh5") > 1 or suffix == ".xml.gz"  # multistream


def test_from_any_article_on_it_gives_exactly_the_rest(small):
    path, n_articles = small
    everything = list(DumpStream(path).articles())
    for start in (0, 1, 17, n_articles - 1, n_articles, n_articles + 5):
        assert list(DumpStream(path).articles(start)) == [item for item in everything if item[0] >= start]
    assert [p.passage_id for p in stream_passages(path, start=n_articles - 1)] == [
        passage.passage_id for passage in everything[-1][1]
    ]


def test_parts_in_a_folder_are_read_in_numeric_order(tmp_path):
    write_pages(tmp_path / "wiki-pages-articles10.xml-p20p30", page("C", "c"), page("D", "d"))
    (tmp_path / "wiki-pages-articles2.xml-p1p9.bz2").write_bytes(
        bz2.compress((HEAD + page("A", "a") + page("B", "b") + TAIL).encode())
    )
    (tmp_path / "wiki-pages-articles-multistream-index.txt.bz2").write_bytes(b"no dump")
    (tmp_path / "settings.xml").write_text("<settings/>")
    assert len(files(tmp_path)) == 2
    assert titles(tmp_path) == ["A", "B", "C", "D"]
    assert [titles(tmp_path, start) for start in (1, 2, 3, 4)] == [["B", "C", "D"], ["C", "D"], ["D"], []]


@pytest.mark.parametrize(
    ("spoil", "found"),
    [
        (lambda text: text[: len(text) // 2], r"small.xml, line .*, column .* after \d+ articles, the last .*: "),
        (lambda text: text.replace("</revision>", "", 1), "mismatched tag"),
        (lambda text: text.replace("<mediawiki", "<rss", 1), "found the element <rss>"),
        (lambda text: "<!DOCTYPE x [<!ENTITY a 'b'>]>" + text, "document type declaration"),
        (lambda text: text.replace("<title>", "<name>").replace("</title>", "</name>"), "a page without a title"),
        (lambda _text: "", "no element found"),
        (lambda _text: "not XML", "found syntax error"),
        (lambda text: text.replace("<title>", "<title>\x07", 1), r"not well-formed \(invalid token\)"),
    ],
)
def test_broken_xml_is_named_with_its_place(small, tmp_path, spoil, found):
    path = tmp_path / "small.xml"
    path.write_text(spoil(small[0].read_text()))
    with pytest.raises(CorpusError, match=found) as caught:
        list(DumpStream(path).articles())
    assert "small.xml, line" in str(caught.value)


def test_what_stands_before_the_broken_place_was_given(tmp_path):
    path = write_pages(tmp_path / "d.xml", page("A", "a"), page("B", "b"), "<page><title>C</oops>" + " " * 600_000)
    stream = DumpStream(path).articles()
    with pytest.raises(CorpusError, match="after 2 articles, the last 'B'"):
        list(stream)


@pytest.mark.parametrize("suffix", [".xml.gz", ".xml.bz2"])
@pytest.mark.parametrize("spoil", [lambda data: data[: len(data) // 2], lambda _data: b"other", lambda _data: b""])
def test_broken_packing(tmp_path, suffix, spoil):
    path = tmp_path / f"d{suffix}"
    write_dump(path, 0.1)
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(CorpusError, match=f"d{suffix}.* fetch it again"):
        list(DumpStream(path).articles())


def test_an_enormous_page_is_passed_over_with_a_warning(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(dump_xml, "MAX_PAGE_CHARS", 10_000)
    path = write_pages(tmp_path / "d.xml", page("A", "a"), page("Huge", "word " * 200_000), page("B", "b"))
    assert titles(path) == ["A", "B"]
    assert "'Huge' is passed over" in caplog.text
    assert [position for position, _ in DumpStream(path).articles()] == [0, 2]


def test_an_enormous_page_is_not_held(tmp_path, monkeypatch):
    monkeypatch.setattr(dump_xml, "MAX_PAGE_CHARS", 10_000)
    path = write_pages(tmp_path / "d.xml", page("Huge", "word " * 4_000_000), page("B", "b"))
    tracemalloc.start()
    try:
        assert titles(path) == ["B"]
        assert tracemalloc.get_traced_memory()[1] < 5e6
    finally:
        tracemalloc.stop()


def test_a_dump_is_found_out_by_its_name(small, tmp_path):
    path, n_articles = small
    assert detect_format(path) == "dump"
    stream = open_stream(path)
    assert isinstance(stream, PassageStream)
    assert (stream.format, stream.name) == ("dump", "small.xml")
    corpus = load_corpus(path)
    assert corpus.format == "dump"
    assert corpus.passages == tuple(passage for _, passages in stream.articles() for passage in passages)
    assert len({passage.passage_id for passage in corpus.passages}) == len(corpus.passages)
    assert len({passage.document_id for passage in corpus.passages}) == n_articles
    assert open_stream(stream) is stream
    (tmp_path / "a.md").write_text("# A\n\ntext")
    (tmp_path / "settings.xml").write_text("<settings/>")
    assert detect_format(tmp_path) == "text"
    assert open_stream(tmp_path).format == "text"
    with pytest.raises(CorpusError, match="no dump in"):
        open_stream(tmp_path, "dump")
    with pytest.raises(ConfigError, match="at least 1 token"):
        open_stream(path, "dump", 0)
    with pytest.raises(CorpusError, match="a server's address"):
        load_corpus(path, "mediawiki")
    with pytest.raises(CorpusError, match="no article with text"):
        load_corpus(write_pages(tmp_path / "empty.xml"))


def test_the_identity_follows_content_and_settings(small, tmp_path):
    path = tmp_path / "small.xml"
    path.write_bytes(small[0].read_bytes())
    same = DumpStream(path).identity()
    assert same == DumpStream(small[0]).identity()
    os.utime(path, (1, 1))
    assert same == DumpStream(path).identity()
    assert same != DumpStream(path, 64).identity()
    path.write_bytes(path.read_bytes().replace(b"the", b"thy") + b" ")
    assert same != DumpStream(path).identity()


def test_the_identity_of_a_huge_file_is_cheap(tmp_path):
    path = tmp_path / "huge.xml"
    with path.open("wb") as file:
        file.truncate(WHOLE_FILE_BYTES * 100)  # 6.4 GB of nothing, on no disk
    whole = tmp_path / "whole.xml"
    with whole.open("wb") as file:
        file.truncate(WHOLE_FILE_BYTES)
    same = file_identity(path)
    assert effort(lambda: file_identity(path)) < effort(lambda: file_identity(whole))
    assert same == file_identity(path) != file_identity(path, "other")
    status = path.stat()
    for place in (0, -1):
        with path.open("r+b") as file:
            file.seek(place, 2 if place else 0)
            file.write(b"x")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        same, before = file_identity(path), same
        assert same != before
    os.utime(path, (1, 1))
    assert file_identity(path) != same
    with pytest.raises(CorpusError, match="cannot be read"):
        file_identity(tmp_path / "nothing.xml")


@pytest.mark.slow
def test_memory_does_not_grow_with_the_dump(tmp_path):
    code = (
        "import resource, sys\nfrom pathlib import Path\nfrom ragqa.corpus.wikipedia.dump import DumpStream\n"
        "n = sum(len(passages) for _, passages in DumpStream(Path(sys.argv[1])).articles())\n"
        "print(n, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)"
    )
    write_dump(tmp_path / "one.xml", 1)
    head, first, pages = (tmp_path / "one.xml").read_text(encoding="utf-8").partition("  <page>\n")
    pages, end, _ = (first + pages).rpartition("</mediawiki>")
    used = []
    for megabytes in (1, 12):
        (tmp_path / "d.xml").write_text(head + pages * megabytes + end, encoding="utf-8")
        command = [sys.executable, "-c", code, str(tmp_path / "d.xml")]
        n_passages, resident = map(int, subprocess.run(command, capture_output=True, check=True).stdout.split())
        assert n_passages > 900 * megabytes
        used.append(resident)
    assert used[1] < used[0] + 15  # megabytes


def test_nothing_is_read_before_it_is_asked_for(tmp_path):
    path = tmp_path / "d.xml"
    write_dump(path, 0.5)
    path.write_bytes(path.read_bytes() + b"<" * 10**6)
    assert len(list(islice(DumpStream(path).articles(), 3))) == 3


# ZIM -----------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def zim_file(tmp_path_factory) -> Path:
    writer = pytest.importorskip("libzim.writer", reason="libzim is not installed: pip install 'ragqa[zim]'")

    class Page(writer.Item):
        def __init__(self, path, title, content, mimetype="text/html"):
            super().__init__()
            self._values = path, title, content, mimetype

        def get_path(self):
            return self._values[0]

        def get_title(self):
            return self._values[1]

        def get_contentprovider(self):
            return writer.StringProvider(self._values[2])

        def get_mimetype(self):
            return self._values[3]

        def get_hints(self):
            return {writer.Hint.FRONT_ARTICLE: True}

    path = tmp_path_factory.mktemp("zim") / "lakes.zim"
    lake = "<html><head><title>Lake</title></head><body><h1>Lake Orl</h1><p>Deep.</p><h2>Fish</h2><p>Carp.</p></body>"
    with writer.Creator(path).config_indexing(False, "eng") as creator:
        creator.set_mainpath("Lake_Orl")
        creator.add_item(Page("Lake_Orl", "Lake Orl", lake))
        creator.add_item(Page("Lake_Bim", "Lake Bim", "<table><tr><th>a</th><td>b</td></tr></table><p>Small.</p>"))
        creator.add_item(Page("style.css", "", "p { color: red }", "text/css"))
        creator.add_item(Page("Empty", "Empty", "<p></p>"))
        creator.add_redirection("Orl", "Orl", "Lake_Orl", {writer.Hint.FRONT_ARTICLE: True})
    return path


def test_the_articles_of_a_zim_file(zim_file):
    stream = open_stream(zim_file)
    assert (stream.format, stream.name) == ("zim", "lakes.zim")
    articles = list(stream.articles())
    assert [[(p.passage_id, p.title, p.section, p.text) for p in passages] for _, passages in articles] == [
        [("Lake_Bim:1", "Lake Bim", "", "| a | b |\n| --- | --- |\n\nSmall.")],
        [("Lake_Orl:1", "Lake Orl", "", "Deep."), ("Lake_Orl:2", "Lake Orl", "Fish", "Carp.")],
    ]
    for start in range(12):
        assert list(stream.articles(start)) == [item for item in articles if item[0] >= start]
    assert load_corpus(zim_file).format == "zim"


def test_a_zim_file_that_is_none(zim_file, tmp_path):
    path = tmp_path / "lakes.zim"
    whole = zim_file.read_bytes()
    for spoilt in (b"", b"no ZIM file", whole[: len(whole) // 2]):
        path.write_bytes(spoilt)
        with pytest.raises(CorpusError, match=r"lakes.zim is truncated or corrupt|lakes.zim, entry"):
            list(open_stream(path).articles())
    with pytest.raises(CorpusError, match="no ZIM file at"):
        open_stream(tmp_path, "zim")


def test_without_the_library_it_says_what_to_install(zim_file, monkeypatch):
    monkeypatch.setitem(sys.modules, "libzim.reader", None)
    with pytest.raises(ConfigError, match=r"pip install 'ragqa\[zim\]'"):
        list(open_stream(zim_file).articles())


@pytest.mark.parametrize(
    ("wikitext", "shown"),
    [
        ("{{convert|5|ft|11|in|m}}", "5 ft 11 in"),
        ("{{convert|5|to|11|km|mi}}", "5 to 11 km"),
        ("{{convert|5|km|1|abbr=on}}", "5 km"),
        ("{{frac|3|1|2}} miles", "3 1/2 miles"),
        ("{{frac|3|4}}", "3/4"),
        ("{{frac|2}}", "1/2"),
        ("{{formatnum: 12345 }} people", "12345 people"),
    ],
)
def test_numbers_in_templates_are_whole(wikitext, shown):
    assert wikitext_markdown(wikitext) == shown
