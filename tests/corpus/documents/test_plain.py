"""Plain text with numbered headings is read as a document: white space alone shows its structure."""

from ragqa.corpus.documents.conservation import lost_words
from ragqa.corpus.documents.passages import passages_of
from ragqa.corpus.documents.plain import is_numbered, parse_plain
from ragqa.corpus.documents.structure import build
from ragqa.corpus.documents.titles import leave_out_contents
from ragqa.corpus.documents.worker import read_document
from ragqa.corpus.formats import detect_format, load_corpus
from ragqa.types import Passage

STATUTES = """\
              Statutes of the Lamp Guild (3rd edition)

   Adopted on May 2nd, 2019.

1. Purpose

   The Guild is an association of keepers who keep the lamps of the
   coast.

2. Bodies

   Each decision is taken by one of these:
    1. the Keepers, by a vote under section
       3. This is rare;
    2. the Warden.

   The order above is the order of rank.

  2.1. Rules for all

    1. A keeper may hold two posts, except that the Warden must
       hold one only.
    2. A keeper may leave.

3. Votes

  3.1. Procedure

    1. Votes are taken in this manner:
         1. The Warden calls for
            them.
         2. The clerk counts them.
       A count is final.
    2. A tie is broken by the Warden.

A. Counting of Votes

   These rules apply to section 3.

  A.0. Ballots

    1. A ballot ranks the options.

  A.1. Ties

    1. A tie is no victory.
"""


def read(tmp_path, text: str) -> dict[str, Passage]:
    """Number -> passage; for several of one number the first."""
    path = tmp_path / "rules.txt"
    path.write_text(text, encoding="utf-8")
    assert is_numbered(path)
    parsed = parse_plain(path)
    leave_out_contents(parsed)
    found = passages_of(build(parsed.blocks), "rules", parsed.title, 128)
    assert not lost_words(parsed, found)
    return {one.number: one for one in reversed(found)}


def test_numbers_of_plain_text_are_read_by_blank_lines_and_indents(tmp_path):
    found = read(tmp_path, STATUTES)
    assert found["1."].text == "The Guild is an association of keepers who keep the lamps of the coast."
    assert found["2."].text == (
        "Each decision is taken by one of these:\n1.\tthe Keepers, by a vote under section 3. This is rare;\n"
        "2.\tthe Warden.\nThe order above is the order of rank."
    )
    assert found["2.1.1."].text == "A keeper may hold two posts, except that the Warden must hold one only."
    assert found["2.1.1."].section == "Statutes of the Lamp Guild (3rd edition) › 2. Bodies › 2.1 Rules for all"
    assert found["3.1.1."].text == (
        "Votes are taken in this manner:\n1.\tThe Warden calls for them.\n2.\tThe clerk counts them.\nA count is final."
    )
    assert found["3.1.2."].text == "A tie is broken by the Warden."
    assert found["2.1.2."].place == "line=23"


def test_a_lettered_part_is_beside_numbered_ones_and_a_nought_beside_the_next(tmp_path):
    found = read(tmp_path, STATUTES)
    assert found["A."].section.endswith("(3rd edition) › A. Counting of Votes")
    assert found["A.1.1."].section.endswith("(3rd edition) › A. Counting of Votes › A.1 Ties")


def test_lines_under_headings_and_boxes_are_no_text(tmp_path):
    found = read(
        tmp_path,
        "Lamp Licence\n============\n\n1. Terms\n--------\n\n1.1. Lamp\n     means a light\n     with a wick.\n\n"
        "1.2. Oil\n\nOil is bought by\n\n(a) the keeper; or\n\n(b) the Warden under section\n    1.1 of this "
        "licence.\n\n"
        "**********************\n*                    *\n*  2. No warranty    *\n*  --------------    *\n"
        "*                    *\n"
        "*  Lamps are given   *\n*  as they are.      *\n**********************\n\n"
        "3. Versions of this licence that the Warden and the\nclerk have written\n----\n\nNew ones bind.\n\n"
        "Form A - Notice\n---------------\n\nThis lamp is free.\n",
    )
    assert found["1.1"].text == "Lamp means a light with a wick."
    assert found["1.2"].text == (
        "Oil is bought by\n(a)\tthe keeper; or\n(b)\tthe Warden under section 1.1 of this licence."
    )
    assert (found["2."].text, found["2."].section) == ("Lamps are given as they are.", "Lamp Licence › 2. No warranty")
    assert found["3."].text == "New ones bind."
    assert (found[""].title, found[""].text) == ("Lamp Licence", "Lamp Licence")


def test_a_heading_that_is_drawn_under_like_the_sections_ends_the_last(tmp_path):
    path = tmp_path / "rules.txt"
    path.write_text(
        "1. Oil\n------\n\nBuy oil.\n\n2. Days\n-------\n\nRest.\n\n3. End\n------\n\nGo.\n\nForm\n----\n\n"
        "This lamp is lit.\n"
    )
    found = passages_of(build(parse_plain(path).blocks), "rules", "", 128)
    assert (found[-1].text, found[-1].number, found[-1].section) == ("This lamp is lit.", "", "Form")


PAGES = """\
Guild of Keepers                                              A. Wick
Memo: 12                                                 Lamp Society

                       On the Keeping of Lamps

Contents

   1.  Terms . . . . . . . . . . . . . . . . . . . . . . . .   1
   2.  Oil . . . . . . . . . . . . . . . . . . . . . . . . .   2
     2.1.  Stores  . . . . . . . . . . . . . . . . . . . . .   2

1.  Terms

   A lamp is a light that a keeper has lit and that burns with
   a wick, as other memos



Wick                          Memo                          [Page 1]
\f
Memo 12                  Keeping of Lamps                 March 1997


   say.

2.  Oil

   Oil is of these kinds:

   o  train oil, which is the
      best;

   o  colza oil.

2.1.  Stores

   kind    litres    months
   train   4         12
   colza   6         9

Wick                          Memo                          [Page 2]
\f
Memo 12                  Keeping of Lamps                 March 1997

3.  Thanks

   To A. Lamplighter.

Wick                          Memo                          [Page 3]
"""


def test_pages_of_plain_text_lose_their_heads_and_feet_and_their_contents(tmp_path):
    found = read(tmp_path, PAGES)
    assert found["1."].text == "A lamp is a light that a keeper has lit and that burns with a wick, as other memos say."
    assert found["2."].text == "Oil is of these kinds:\no train oil, which is the best;\no colza oil."
    assert found["2.1"].text == "kind litres months\ntrain 4 12\ncolza 6 9"
    assert not any("Page" in one.text or ". . ." in one.text for one in found.values())


def test_articles_and_sections_alone_in_their_lines_number_the_paragraphs_below(tmp_path):
    found = read(
        tmp_path,
        "The Charter of the Coast\n\nPreamble\n\nWe the Keepers make this Charter.\n\n\nArticle I\n\nSection 1\n\n"
        "All lamps shall be lit by a Keeper.\n\nNo Keeper shall be\nless than twenty.\n\nSection 2\n\nThe Warden keeps "
        "oil.\n\nArticle II\n\nSection 1\n\nThe clerk counts.\n\nSection 2\n\nThe clerk may rest.\n\nArticle III\n\n"
        "This Charter binds.\n",
    )
    assert found[""].title == "The Charter of the Coast"
    assert found["Article I.Section 1"].text == (
        "All lamps shall be lit by a Keeper.\nNo Keeper shall be less than twenty."
    )
    assert found["Article II.Section 2"].text == "The clerk may rest."
    assert found["Article III"].text == "This Charter binds."


def test_a_folder_of_numbered_plain_text_is_read_as_documents(tmp_path):
    (tmp_path / "guild.txt").write_text(STATUTES, encoding="utf-8")
    assert detect_format(tmp_path) == "documents"
    assert "3.1.2." in {one.number for one in load_corpus(tmp_path).passages}
    assert {one.number for one in load_corpus(tmp_path, "text").passages} == {"1", "2"}


def test_other_plain_text_stays_verbatim(tmp_path):
    text = (
        "On lamps\n\nA lamp is a light.  It burns\nwith a wick.\n\nKinds are:\n\n1. train lamps\n\n2. colza lamps\n\n"
        "3. others\n\nThey are old.\n\nThey burn.\n\nNobody knows since when.\n\nMost are of brass.\n"
    )
    path = tmp_path / "note.txt"
    path.write_text(text)
    assert not is_numbered(path)
    assert detect_format(tmp_path) == "text"
    assert read_document(path, "text", "note", 128)["passages"][0]["text"] in text


def test_paragraphs_that_count_on_through_a_text_are_numbered_without_headings(tmp_path):
    found = read(
        tmp_path,
        "        LAMP LICENCE\n\n  0. This licence is for any lamp\nof the coast.\n\nOil is not covered.\n\n"
        "  1. You may light a lamp as you\nget it.\n\n  2. You may put out a lamp if:\n\n    a) it is day; and\n\n"
        "    b) you say so.\n\nThese conditions bind the whole\nlamp.\n\n  3. Lamps are given as they are.\n",
    )
    assert found["0."].text == "This licence is for any lamp of the coast.\nOil is not covered."
    assert found["2."].text == (
        "You may put out a lamp if:\na)\tit is day; and\nb)\tyou say so.\nThese conditions bind the whole lamp."
    )
    assert found["3."].text == "Lamps are given as they are."
    assert found["3."].section == "LAMP LICENCE"
