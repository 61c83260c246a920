"""What is drawn from a corpus, which passages a probe meets, and what counts as a right verdict."""

from types import SimpleNamespace

import numpy as np
import pytest

from ragqa.evaluation.benchmarks.verdicts.judging import N_PASSAGES, passages_for, stated_in
from ragqa.evaluation.benchmarks.verdicts.labelled import labelled
from ragqa.evaluation.benchmarks.verdicts.probes import KINDS, Expected, Probe, drawn, has_nearly, sentences_of
from ragqa.evaluation.benchmarks.verdicts.tables import Judged, data_of, tables, wilson
from tests.support.fakes import FakeObligations, passage

TEXTS = {
    "1:1": "A firm must keep records for six years. It may use paper.",
    "1:2": "A firm must report losses within three months. The Commission is in London.",
    "2:1": "The lake was mapped on 5 March 1890. Its depth is 1,642 metres in winter.",
    "2:2": "A firm must keep records for six years.",
    "2:3": "Records and Books of the Firm",
}


def index_of(texts):
    passages = [passage(name, text) for name, text in texts.items()]
    hidden = np.array([text.istitle() or not text.endswith(".") for text in texts.values()])
    return SimpleNamespace(passages=passages, hidden=hidden)


def probes(kinds=KINDS, n=0, seed=1, texts=TEXTS):
    return drawn(sentences_of(index_of(texts), seed, n), kinds, n, seed, FakeObligations())


def test_sentences_are_distinct_five_words_long_and_not_of_hidden_passages():
    found = {one.text for one in sentences_of(index_of(TEXTS), 1, 0)}
    assert found == {
        "A firm must keep records for six years.",
        "A firm must report losses within three months.",
        "The Commission is in London.",
        "The lake was mapped on 5 March 1890.",
        "Its depth is 1,642 metres in winter.",
    }


def test_each_kind_has_the_verdict_that_its_making_says():
    expected = {probe.kind: probe.expected for probe in probes()}
    assert expected.pop("verbatim") == Expected.SUPPORTED
    assert expected.pop("removed") == expected.pop("other document") == Expected.UNSUPPORTED
    assert expected.pop("obligation") == Expected.COVERED
    assert set(expected) >= {"number", "date", "unit", "amount", "modal", "modal strength", "negation"}
    assert set(expected.values()) == {Expected.CONTRADICTED}


def test_the_seed_alone_decides_what_is_drawn():
    assert probes(n=2, seed=3) == probes(n=2, seed=3)
    assert len({tuple(probe.text for probe in probes(("verbatim",), 2, seed)) for seed in range(6)}) > 1


def test_n_of_each_kind_and_none_is_all():
    assert len(probes(("verbatim", "removed"), n=2)) == 4
    assert len(probes(("verbatim",), n=0)) == 5
    assert len(probes(("obligation",), n=0)) == 2


def test_a_sentence_of_another_document_is_asked_about_something_of_that_one():
    of_document = {one.text: one.passage.document_id for one in sentences_of(index_of(TEXTS), 1, 0)}
    for probe in probes(("other document",)):
        assert probe.document_id == of_document[probe.text] != of_document[probe.asked]
    assert probes(("other document",), texts={"1:1": TEXTS["1:1"]}) == []


# Passages -----------------------------------------------------------------------------------------------------------

FOUND = [passage(f"3:{n}", f"Passage number {n} speaks of other things.") for n in range(15)]
OWN = passage("1:1", TEXTS["1:1"])
TEXT = "A firm must keep records for six years."


def test_its_own_passage_is_among_the_ten():
    probe = Probe("verbatim", TEXT, Expected.SUPPORTED, TEXT, ("1:1",))
    assert passages_for(probe, [*FOUND[:3], OWN, *FOUND[3:]], [OWN]) == [*FOUND[:3], OWN, *FOUND[3:9]]
    assert passages_for(probe, FOUND, [OWN]) == [*FOUND[:9], OWN]
    assert passages_for(probe, [], [OWN]) == [OWN]


def test_what_says_nearly_the_same_is_withheld_and_the_next_take_its_place():
    near = passage("2:2", "For six years a firm must keep all records of its own.")
    document = passage("9:9", "This is of the withheld document.")
    probe = Probe("removed", TEXT, Expected.UNSUPPORTED, TEXT, ("1:1",), withheld=True, document_id="9")
    assert passages_for(probe, [OWN, near, document, *FOUND], [OWN]) == FOUND[:N_PASSAGES]


@pytest.mark.parametrize(("passage_text", "is_near"), [("a b c d", True), ("D c B a x y", True), ("a b c", False)])
def test_nearly_is_four_fifths_of_the_words(passage_text, is_near):
    assert has_nearly(passage_text, "A b c d e") is is_near


def test_an_edit_that_a_passage_states_is_seen():
    assert stated_in("a FIRM must\nkeep records for six years.", [*FOUND, OWN]) is OWN
    assert stated_in("A firm must keep records for seven years.", [*FOUND, OWN]) is None


def test_labelled_probes_are_those_whose_passages_the_index_holds():
    assert labelled(index_of(TEXTS), "open") == []
    source = "The Danube flows through or along ten countries, more than any other river in the world."
    texts = {"danube:1": f"About the river. {source}", "danube:2": "Nothing of it.", "1:1.2.2.(2)": "Another corpus."}
    (found,) = labelled(index_of(texts), "open")
    assert (found.kind, found.expected, found.own) == ("number", Expected.CONTRADICTED, ("danube:1",))
    assert found.name == "number, by hand"


# Counting -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "n"), [(0, 1), (0, 12), (12, 12), (5, 12), (199, 200)])
def test_intervals_are_those_of_scipy(count, n):
    from scipy.stats import binomtest

    expected = binomtest(count, n).proportion_ci(method="wilson")
    assert wilson(count, n) == pytest.approx((expected.low, expected.high), abs=1e-6)


def scripted(kind, expected, said, **fields):
    probe = Probe(kind, "A firm must act.", Expected(expected), "", **fields)
    return Judged(probe, dict(zip(("verdicts", "thresholds", "model"), said, strict=True)))


FOUND_OUT = [
    scripted("verbatim", "supported", ("supported", "sources disagree", "contradicted")),
    scripted("verbatim", "supported", ("no verdict", "supported", "supported")),
    scripted("number", "contradicted", ("contradicted", "contradicted", "supported")),
    scripted("modal", "contradicted", ("unsupported", "contradicted", "unsupported")),
    scripted("obligation", "covered", ("covered", "not covered", "covered"), obligation="A firm must act."),
    scripted("only dropped", "not supported", ("unsupported", "supported", "contradicted"), by_hand=True),
    scripted("some for all", "not supported", ("supported", "supported", "sources disagree"), by_hand=True),
]


def test_the_tables_count_what_each_judge_said():
    beside, *confusions = tables(FOUND_OUT)
    rights = {line.name: line.cells for line in beside.lines}
    assert rights["verbatim → supported"][0] == "2"
    assert [cell.split()[0] for cell in rights["verbatim → supported"][1:]] == [".50", ".50", ".50"]
    assert [cell.split()[0] for cell in rights["all edits → contradicted"][1:]] == [".50", "1.00", ".00"]
    assert [cell.split()[0] for cell in rights["only dropped, by hand → not supported"][1:]] == ["1.00", ".00", "1.00"]
    assert [cell.split()[0] for cell in rights["all that say more, by hand → not supported"][1:]] == [
        ".50",
        ".00",
        ".50",
    ]
    verdicts, obligations = confusions[:2]
    assert verdicts.headings == ("supported", "contradicted", "unsupported", "sources disagree", "no verdict")
    assert [cell.split()[0] for cell in verdicts.lines[0].cells] == ["1", "0", "0", "0", "1"]
    assert obligations.headings == ("covered", "covered in part", "in conflict", "not covered")
    assert obligations.lines[0].cells == ("1 · 1.00 [.21–1.00]", *["0 · .00 [.00–.79]"] * 3)
    assert len(confusions) == 6
    assert tables([]) == ()


def test_the_same_stands_in_the_data():
    of_verdicts = data_of(FOUND_OUT)["verdicts"]
    assert of_verdicts["verbatim"]["right"] == {"count": 1, "share": 0.5, "interval": list(wilson(1, 2))}
    assert of_verdicts["verbatim"]["said"]["no verdict"]["count"] == 1
    assert of_verdicts["all edits"]["n"] == 2
