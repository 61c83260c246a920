"""Claims of our own over passages of others: read where these lie, left out where they read otherwise."""

import gzip
import json
from collections import Counter

import pytest

from ragqa.corpus.jsonl import read_json_lines
from ragqa.lab import written
from ragqa.lab.written import (
    JUDGED,
    WRITTEN,
    digest_of,
    judged_questions,
    law_questions,
    written_gaps,
    written_gold,
    written_passages,
)
from tests.support.fakes import passage

TEXT = "Fees are due in May. They are paid to the Registrar."
CLAIM = {"text": "Fees fall due in spring.", "label": "supported", "kind": "weaker", "from": [0]}
QUESTION = {"text": "when fees due", "answerable": True, "style": "careless", "sentences": [0], "short": "in May"}


@pytest.fixture
def data(tmp_path, monkeypatch):
    (tmp_path / "wikipedia").mkdir()
    (tmp_path / "wikipedia/hotpotqa_a.jsonl").write_text(json.dumps({"id": 7, "title": "Fees", "text": TEXT}))
    documents = tmp_path / "obliqa/documents"
    documents.mkdir(parents=True)
    rows = [{"ID": str(n), "DocumentID": n, "PassageID": "1.1", "Passage": TEXT} for n in (1, 3)]
    for row in rows:
        (documents / f"{row['DocumentID']}.json").write_text(json.dumps([row]))
    sha256 = digest_of(["Fees are due in May.", "They are paid to the Registrar."])
    common = {"corpus": "x", "writer": "w", "claims": [CLAIM], "questions": [QUESTION], "sha256": sha256}
    file = tmp_path / "written.jsonl.gz"
    ids = ("hotpot:7", "hotpot:8", "adgm:1:1.1", "adgm:3:1.1")
    changed = {**common, "id": "hotpot:7", "sha256": "0" * 16}
    lines = [*(json.dumps({**common, "id": name}) for name in ids), json.dumps(changed)]
    file.write_bytes(gzip.compress("\n".join(lines).encode()))
    monkeypatch.setattr(written, "WRITTEN", file)
    return tmp_path


def test_a_passage_is_read_where_it_lies_and_left_out_where_it_is_absent_or_reads_otherwise(data):
    found = written_passages(data)
    assert [one.claimed.id for one in found] == ["hotpot:7", "adgm:1:1.1", "adgm:3:1.1"]
    article, rule = found[:2]
    assert article.claimed.sentences == ("Fees are due in May.", "They are paid to the Registrar.")
    assert (article.claimed.title, article.heading) == ("Fees", "Fees")
    assert rule.claimed.title == ""  # headings are context for the selector alone
    assert article.claimed.questions[0].sentences == (0,)


def test_questions_are_asked_of_an_index_by_the_text_of_its_passages(data):
    same = [passage("a:1", "Fees are due in May.\nThey are paid to the Registrar."), passage("a:2", TEXT)]
    found = written_gold(data, [*same, passage("a:3", "Fees are due in June.")])
    assert {one.question.text for one in found} == {"when fees due"}
    assert {one.gold for one in found} == {frozenset({"a:1", "a:2"})}
    assert written_gold(data, [passage("a:3", "Fees are due in June.")]) == []


def test_documents_of_the_fold_held_out_are_left_out(data):
    assert [one.claimed.id for one in written_passages(data, fold=0)] == ["hotpot:7", "adgm:1:1.1"]


def test_passages_that_measure_are_read_alone_and_never_with_those_that_teach(data, monkeypatch):
    monkeypatch.setattr(written, "TEST_WRITERS", ("w",))
    assert written_passages(data) == ()
    assert len(written_passages(data, is_test=True)) == 3


def test_judged_sentences_are_read_where_they_lie_without_those_of_the_fold_held_out(data, tmp_path, monkeypatch):
    shas = [digest_of([text]) for text in ("Fees are due in May.", "They are paid to the Registrar.")]
    places = [
        ("hotpot:7", 0, shas[0], 2),
        ("adgm:3:1.1", 1, shas[1], 1),
        ("hotpot:7", 1, "0" * 16, 2),
        ("hotpot:8", 0, shas[0], 0),
    ]
    rows = [{"question": name, "is_test": name == "test", "sentences": places} for name in ("when fees due", "test")]
    file = tmp_path / "judged.jsonl.gz"
    file.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    monkeypatch.setattr(written, "JUDGED", file)
    (found,) = judged_questions(data)
    assert found.question == "when fees due"
    assert found.sentences == (("Fees are due in May.", "Fees", 1.0), ("They are paid to the Registrar.", "", 0.5))
    (apart,) = judged_questions(data, fold=0, is_test=True)
    assert (apart.question, apart.sentences) == ("test", found.sentences[:1])


def test_shipped_judgements_hold_no_text_of_others():
    rows = [item.values for item in read_json_lines(JUDGED, JUDGED.name)]
    assert len({row["question"] for row in rows}) == len(rows) > 200
    for row in rows:
        assert row.keys() == {"question", "is_test", "sentences"}
        for place, number, sha256, answers in row["sentences"]:
            assert ":" in place
            assert number >= 0
            assert len(sha256) == 16
            assert answers in {0, 1, 2}


def test_the_shipped_questions_about_law_have_sentences_that_answer_or_none():
    found = law_questions()
    answered = [one for one in found if any(far for *_, far in one.sentences)]
    assert len(found) > 1_500
    assert 0.6 < len(answered) / len(found) < 0.8
    assert all(len({text for text, *_ in one.sentences}) == len(one.sentences) > 2 for one in found)


def test_each_shipped_passage_has_two_claims_of_each_label_and_holds_no_text_of_others():
    rows = [item.values for item in read_json_lines(WRITTEN, WRITTEN.name)]
    assert len({row["id"] for row in rows}) == len(rows) >= 80
    two = Counter(dict.fromkeys(("supported", "contradicted", "unsupported"), 2))
    for row in rows:
        labels = Counter(claim["label"] for claim in row["claims"])
        answerable = Counter(question["answerable"] for question in row["questions"])
        if row["writer"] < "w14":
            assert labels == two
            assert answerable[True] == 2
        else:  # what is worded too close to the passage was left out
            assert labels
            assert labels <= two
            assert answerable <= Counter({True: 2, False: 2})
        assert row.keys() == {"id", "corpus", "sha256", "writer", "claims", "questions"}


def test_parts_and_clashing_words_of_each_shipped_rule_stand_in_it():
    gaps, measuring = written_gaps(), written_gaps(is_test=True)
    assert (len(gaps), len(measuring)) == (642, 54)
    for gap in (*gaps, *measuring):
        keys = {part.key for part in gap.parts}
        assert all(part.text in gap.rule for part in gap.parts)
        labels = Counter(text.label for text in gap.texts)
        fifth = labels - Counter(("covered", "partly", "conflicts"))
        if "i" <= gap.id.split(":")[1] <= "o":  # a second covered text, and a second conflict or an absent one
            assert fifth in (Counter(("covered", "conflicts")), Counter(("covered", "absent")))
        else:
            assert fifth == Counter(("absent",))
        for text in gap.texts:
            assert set(text.missing) <= keys
            assert text.label != "partly" or text.missing
            if text.label == "conflicts":
                assert text.clash.policy in text.text
                assert text.clash.rule in gap.rule
