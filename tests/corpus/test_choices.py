"""What a corpus chooses by itself: how its words are read."""

from ragqa.corpus.choices import chosen_analyser, is_rule_number, sample_of, spread
from ragqa.corpus.documents import DOCUMENT_FORMATS
from ragqa.index import build_index, open_index
from ragqa.settings.config import IndexingConfig
from tests.support.fakes import passage


def test_the_analyser_has_a_reason():
    rules = [
        passage(f"d:{n}", f"A firm must keep record {n} and the report that is with it.", number=f"4.{n}")
        for n in range(9)
    ]
    assert chosen_analyser(rules)[:2] == ("en", "headed")
    plain = [
        passage(f"d:{n}", "The lake is deep and the water of it is cold in winter.", number=str(n)) for n in range(9)
    ]
    assert chosen_analyser(plain)[:2] == ("en", "english")
    other = "Gospodarska družba mora voditi evidenco vseh poslov, ki jih je sklenila v preteklem letu s strankami."
    language, analyser, reason = chosen_analyser([passage("d:1", other)])
    assert (language, analyser) == ("sl", "characters")
    assert "not in English (sl)" in reason
    assert is_rule_number("Article 6")
    assert is_rule_number("3.Section 2.Article 273a.6.")
    assert not is_rule_number("12")


def test_headings_and_what_stands_first_decide_nothing():
    head = [passage(f"d:h{n}", "Menu") for n in range(400)]
    rules = [
        passage(
            f"d:{n}", f"A firm must keep record {n} and the report that is with it, for five years.", number=f"4.{n}"
        )
        for n in range(9)
    ]
    assert chosen_analyser(head + rules)[:2] == ("en", "headed")
    assert chosen_analyser(head)[:2] == ("en", "english")
    assert list(spread(range(10), 4)) == [0, 3, 6, 9]
    assert list(spread(range(3), 4)) == [0, 1, 2]


def test_a_build_chooses_from_documents_spread_over_the_folder(tmp_path):
    source = tmp_path / "pages"
    source.mkdir()
    for name in "abcdefghij":
        rule = "<p>1.1 A firm must keep the record of each trade that it makes on a venue.</p>" * (name > "a")
        text = f"<html><body><main><h1>Page {name}</h1><p>Words that stand first on this page.</p>{rule}</main></body>"
        (source / f"{name}.html").write_text(text, encoding="utf-8")
    stream = DOCUMENT_FORMATS["documents"].stream(source, 128)
    assert len({one.document_id for one in sample_of(stream)}) == 5
    assert not stream.messages
    build_index("x", source, indexes=tmp_path / "indexes", config=IndexingConfig(encoder="none"), encoder=None)
    assert str(open_index("x", tmp_path / "indexes").manifest.analyser).startswith("headed")
