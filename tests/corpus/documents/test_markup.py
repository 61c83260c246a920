"""XML of laws is read by what its elements hold, whatever the maker calls them."""

import pytest

from ragqa.corpus.documents.conservation import lost_words
from ragqa.corpus.documents.markup import parse_markup
from ragqa.corpus.documents.passages import passages_of
from ragqa.corpus.documents.structure import build
from ragqa.corpus.formats import detect_format, load_corpus
from ragqa.errors import CorpusError
from ragqa.types import Passage

NESTED = """<?xml version='1.0'?>
<law xmlns="urn:lamps">
  <num>7-1001.09a</num>
  <heading>Checks of lamps.</heading>
  <para><num>(a)</num><text>In this section, the term:</text>
    <para><num>(1)</num><text>“Lamp” means a light with a wick, or one without, that a keeper has lit.</text></para>
    <para><num>(2)</num><text>“Oil” means what burns in it.</text></para>
  </para>
  <para><num>(b)</num>
    <para><num>(1)</num><text>The Warden shall check:</text>
      <para><num>(A)</num><text>At least 5% of the lamps; and</text></para>
      <para><num>(B)</num><text>All oil, see <cite ref="x">D.C. Law 3</cite>.</text></para>
    </para>
    <para><num>(2)</num><text>The Warden may check more lamps than these, at any time of the year.</text></para>
  </para>
  <notes><note type="History">As added Feb. 4, 2010, Law 18-103, § 2(g), 56 LR 9169</note>
  <note type="History">Amended May 2, 2015, Law 20-273, § 2(e), 62 LR 1938</note>
  <note type="History">Amended May 3, 2016, Law 21-3, § 4(e), 63 LR 12</note></notes>
</law>
"""
FLAT = (
    "<Statute id='s1'><Front><Instrument>LG/2018-64</Instrument><Made><Y>2018</Y><M>3</M><D>27</D></Made>"
    "<LongTitle>Lamp Regulations</LongTitle><Order><Text>The Warden, under section 26<Ref to='fn1'>a</Ref> of the "
    "Coast Act, makes these rules.</Text><Foot id='fn1'><Label>a</Label><Text>C.L. 2015, c. 32</Text></Foot></Order>"
    "</Front><Body><Heading><TitleText>Interpretation</TitleText></Heading>"
    "<Sec id='p1'><Margin>Definition of <i>lamp</i></Margin><Label>1</Label><Text>In these rules, <i>lamp</i> means a "
    "light&#8212;with a wick.</Text></Sec><Heading><TitleText>Reports</TitleText></Heading>"
    "<Sec id='p2'><Margin>Report of a fault</Margin><Label>2</Label><Sub><Label>(1)</Label><Text>A report must contain"
    "</Text><Par><Label>(a)</Label><Text>the day of the fault, and its cause;</Text></Par><Par><Label>(b)</Label><Text>"
    "the name of the keeper; and</Text></Par><Text>and is sent to the Warden.</Text></Sub>"
    "<Sub><Margin>New facts</Margin><Label>(2)</Label><Text>A keeper may add new facts to a report that was made."
    "</Text></Sub></Sec><Sec id='p3'><Margin>Secure means</Margin><Label>3</Label><Text>A report may be sent by any "
    "secure means of the coast.</Text></Sec><Sec id='p4'><Margin>Fees</Margin><Label>4</Label><Text>The fees are "
    "these:</Text><table><tgroup><row><entry>Lamp</entry><entry>Fee</entry></row><row><entry>small</entry>"
    "<entry>2</entry></row></tgroup></table></Sec></Body></Statute>"
)


def read(tmp_path, text: str) -> dict[str, Passage]:
    """Number -> passage; for several of one number the first."""
    path = tmp_path / "law.xml"
    path.write_text(text, encoding="utf-8")
    parsed = parse_markup(path)
    found = passages_of(build(parsed.blocks), "law", parsed.title, 128)
    assert not lost_words(parsed, found)
    return {one.number: one for one in reversed(found)}


def test_nested_elements_with_numbers_are_read_with_their_parents(tmp_path):
    found = read(tmp_path, NESTED)
    assert found["7-1001.09a.(a)"].section == "7-1001.09a Checks of lamps."
    assert found["7-1001.09a.(b).(1)"].text == (
        "The Warden shall check:\n(A)\tAt least 5% of the lamps; and\n(B)\tAll oil, see D.C. Law 3."
    )
    assert found["7-1001.09a.(b).(2)"].text == "The Warden may check more lamps than these, at any time of the year."


def test_a_day_before_a_source_is_no_source(tmp_path):
    (tmp_path / "law.xml").write_text(NESTED, encoding="utf-8")
    texts = "\n".join(one.text for one in load_corpus(tmp_path).passages)
    assert "As added Feb. 4, 2010, Law 18-103, § 2(g), 56 LR 9169" in texts


def test_headings_beside_sections_and_in_margins_name_them(tmp_path):
    found = read(tmp_path, FLAT)
    assert found["1"].title == "Lamp Regulations"
    assert found["1"].text == "In these rules, lamp means a light—with a wick."
    assert found["1"].section.endswith("Interpretation › 1 Definition of lamp")
    assert found["2.(1)"].section.endswith("Reports › 2 Report of a fault")
    assert found["2.(1)"].text == (
        "A report must contain\n(a)\tthe day of the fault, and its cause;\n(b)\tthe name of the keeper; and\n"
        "and is sent to the Warden."
    )
    assert found["2.(2)"].section.endswith("2 Report of a fault › (2) New facts")
    assert found["3"].text == "A report may be sent by any secure means of the coast."


def test_tables_and_notes_are_read(tmp_path):
    (tmp_path / "law.xml").write_text(FLAT, encoding="utf-8")
    found = [(one.number, one.text) for one in load_corpus(tmp_path).passages]
    assert ("4", "The fees are these:") in found
    assert ("4", "Lamp | Fee\nsmall | 2") in found
    assert ("note a", "C.L. 2015, c. 32") in found
    assert ("", "The Warden, under section 26 of the Coast Act, makes these rules.") in found


def test_xml_is_a_document_and_a_wiki_dump_is_none(tmp_path):
    (tmp_path / "law.xml").write_text(NESTED, encoding="utf-8")
    (tmp_path / "enwiki-pages.xml").write_text("<mediawiki><page/></mediawiki>", encoding="utf-8")
    assert detect_format(tmp_path) == detect_format(tmp_path / "law.xml") == "documents"
    assert detect_format(tmp_path / "enwiki-pages.xml") == "dump"
    assert {one.document_id for one in load_corpus(tmp_path).passages} == {"law"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<a><b>1</b><c>port</c><c>host</c></a>", "expected XML with numbers or headings and sentences"),
        ("<a><b>", "expected XML, found none that can be read"),
        ("<!DOCTYPE a [<!ENTITY b 'c c'><!ENTITY d '&b;&b;'>]><a>&d;</a>", "found other data"),
    ],
)
def test_other_xml_is_refused_in_words(tmp_path, text, why):
    with pytest.raises(CorpusError, match=why):
        read(tmp_path, text)
