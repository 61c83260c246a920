"""FanOutQA's files as questions, pages from folders and servers, fragments cut and ranked as the package does."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import ragqa
from ragqa.errors import ConfigError, CorpusError
from ragqa.evaluation.benchmarks.fanoutqa.evidence import (
    FolderPages,
    Fragment,
    NoPageError,
    WikiPages,
    count_tokens,
    cut,
    fitting,
    open_pages,
    ranked,
)
from ragqa.evaluation.benchmarks.fanoutqa.instruments import plain_normaliser
from ragqa.evaluation.benchmarks.fanoutqa.questions import (
    WITHDRAWN,
    EvidencePage,
    FanOutQuestion,
    load_fanoutqa,
    looks_like_fanoutqa,
    revisions_of,
)
from ragqa.types import Question

DEMO = Path(ragqa.__file__).parent / "corpus/demo/encyclopedia"
PAGE = {"pageid": 1, "revid": 11, "title": "Alpha", "url": "https://w/Alpha"}
OTHER = {"pageid": "2", "revid": "22", "title": "Beta", "url": ""}
LATER = {"pageid": "###TBD###", "revid": "###TBD###", "title": "Gamma", "url": ""}


def step(number, evidence, decomposition=(), answer="x", depends_on=()):
    return {
        "id": f"s{number}",
        "question": f"Step {number}?",
        "decomposition": list(decomposition),
        "answer": answer,
        "depends_on": list(depends_on),
        "evidence": evidence,
    }


def dev(**changes):
    steps = [step(1, PAGE), step(2, None, [step(3, OTHER, depends_on=["s1"]), step(4, PAGE)]), step(5, LATER)]
    item = {
        "id": "q1",
        "question": " Who?\n",
        "decomposition": steps,
        "answer": {"A": 1, "B": True},
        "categories": ["C"],
    }
    return item | changes


def written(tmp_path, *items):
    path = tmp_path / "questions.json"
    path.write_text(json.dumps(list(items)), encoding="utf-8")
    return path


def test_a_dev_question_has_its_answer_its_steps_and_every_page_once(tmp_path):
    (found,) = load_fanoutqa(written(tmp_path, dev()))
    assert found.question == Question("Who?", "q1")
    assert found.answer == {"A": 1, "B": True}
    assert found.evidence == (
        EvidencePage("Alpha", "1", 11, "https://w/Alpha"),
        EvidencePage("Beta", "2", 22),
        EvidencePage("Gamma", "###TBD###", None),
    )
    assert found.categories == ("C",)
    assert [s.question.question_id for s in found.steps] == ["s1", "s2", "s5"]
    assert found.steps[1].steps[0].depends_on == ("s1",)
    assert found.steps[1].evidence is None


def test_a_test_question_has_pages_and_no_answer(tmp_path):
    item = {"id": "q1", "question": "Who?", "necessary_evidence": [PAGE, OTHER, PAGE], "categories": []}
    path = written(tmp_path, item)
    (found,) = load_fanoutqa(path)
    assert (found.answer, [page.title for page in found.evidence]) == (None, ["Alpha", "Beta"])
    assert looks_like_fanoutqa(path)
    assert not looks_like_fanoutqa(tmp_path / "nothing.json")
    (tmp_path / "other.json").write_text('[{"question": "Who?"}]')
    assert not looks_like_fanoutqa(tmp_path / "other.json")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answer": None}, "'answer' a text, a number, .* found null"),
        ({"answer": {}}, "that is not empty, found an object"),
        ({"answer": [["nested"]]}, "found a list of 1"),
        ({"answer": {"a": None}}, "found an object"),
        ({"decomposition": []}, "'necessary_evidence' or 'decomposition', found neither"),
        ({"decomposition": [step(1, "page")]}, "expected an object under 'evidence', found the text 'page'"),
        ({"question": ""}, "a text that is not empty"),
    ],
)
def test_an_item_that_is_something_else_is_refused_with_its_place(tmp_path, changes, message):
    with pytest.raises(CorpusError, match=message) as error:
        load_fanoutqa(written(tmp_path, dev(**changes)))
    assert "questions.json, item 1" in str(error.value)


def test_an_id_must_stand_once(tmp_path):
    with pytest.raises(CorpusError, match="found 'q1' several times"):
        load_fanoutqa(written(tmp_path, dev(), dev()))
    with pytest.raises(CorpusError, match="found no question"):
        load_fanoutqa(written(tmp_path))
    with pytest.raises(CorpusError, match="no file .*none.json; expected fanout-final-dev.json"):
        load_fanoutqa(tmp_path / "none.json")


@pytest.mark.data
def test_the_real_files_load(shared_data):
    folder = shared_data / "fanoutqa"
    dev_set, test_set = (load_fanoutqa(folder / f"fanout-final-{name}.json") for name in ("dev", "test"))
    assert (len(dev_set), len(test_set)) == (310, 724)
    assert all(q.answer is not None for q in dev_set)
    assert all(q.answer is None for q in test_set)
    assert all(q.evidence for q in (*dev_set, *test_set))
    assert not WITHDRAWN & {q.question_id for q in test_set}
    assert len(revisions_of((*dev_set, *test_set))) > 4_000
    assert looks_like_fanoutqa(folder / "fanout-final-dev.json")


def test_the_newest_revision_of_a_title_counts():
    pages = (
        [EvidencePage("A", "1", 5), EvidencePage("B", "2", None)],
        [EvidencePage("A", "1", 7), EvidencePage("C", "3", 1)],
    )
    questions = [FanOutQuestion(Question("?", str(n)), tuple(evidence)) for n, evidence in enumerate(pages)]
    assert revisions_of(questions) == {"A": 7, "C": 1}


# Pages --------------------------------------------------------------------------------------------------------------


def test_pages_of_a_folder_by_title_and_by_search(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"title": "Rivers of Europe", "text": "The Danube and the Rhine."}\n\n')
    (tmp_path / "Lake_Ohrid.md").write_text("A lake in the Balkans.")
    (tmp_path / "upper-lake.md").write_text("# Lake Prespa\n\nIt lies above the other.")
    (tmp_path / "ignored.csv").write_text("x")
    pages = FolderPages(tmp_path)
    assert pages.page("rivers of  europe", 17) == "The Danube and the Rhine."
    assert pages.page("Lake_Ohrid", None) == "A lake in the Balkans."
    assert pages.search("which lake is in the Balkans", 1) == ("Lake Ohrid",)
    assert pages.search("zzz", 5) == ()
    with pytest.raises(NoPageError, match="no page 'Nile' among the 3 given with --pages"):
        pages.page("Nile", None)
    assert pages.name.startswith(f"{tmp_path.name}, 3 pages, sha256 ")
    assert pages.page("Lake Prespa", None).endswith("above the other.")


def test_the_demonstration_questions_have_their_answers_in_their_pages():
    questions, pages = load_fanoutqa(DEMO / "fan_out.json"), FolderPages(DEMO / "articles")
    for question in questions:
        assert set(question.answer) == {page.title for page in question.evidence}
        for step in question.steps:
            assert re.search(rf"\b{step.answer}\b", pages.page(step.evidence.title, None))
            assert question.answer[step.evidence.title] == step.answer


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "found none; name others"),
        ("[1]", "line 1: expected one JSON object"),
        ("{", "line 1: expected one whole JSON object"),
    ],
)
def test_a_file_of_pages_that_is_none_is_refused(tmp_path, content, message):
    (tmp_path / "pages.jsonl").write_text(content)
    with pytest.raises(CorpusError, match=message):
        FolderPages(tmp_path / "pages.jsonl")
    with pytest.raises(ConfigError, match="--pages must name a folder"):
        open_pages(str(tmp_path / "none"), tmp_path)


@dataclass(frozen=True)
class FakePage:
    title: str
    text: str
    revision: int | None


class FakeWiki:
    def __init__(self):
        self.asked = []

    def page(self, title, revision=None):
        self.asked.append((title, revision))
        if title != "Alpha":
            msg = f"no page {title}"
            raise CorpusError(msg)
        return FakePage(title, f"text at {revision}", revision)

    def search(self, query, limit):
        return ("Alpha", "Broken")[:limit]


def test_pages_of_a_wiki_come_at_the_revision_that_the_data_set_names():
    wiki = FakeWiki()
    pages = WikiPages(wiki, "http://w/api.php", {"Alpha": 7})
    assert pages.page("Alpha", None) == "text at 7"
    assert pages.page("Alpha", 9) == "text at 9"
    with pytest.raises(NoPageError):  # the server answers, and has no such title
        pages.page("Nothing", None)
    with pytest.raises(CorpusError) as error:  # it has the title, and fails all the same
        pages.page("Broken", None)
    assert not isinstance(error.value, NoPageError)
    assert wiki.asked == [("Alpha", 7), ("Alpha", 9), ("Nothing", None), ("Broken", None)]


# Fragments ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def retrieval(tmp_path_factory):
    pytest.importorskip("fanoutqa", reason="the oracle needs the package: pip install 'ragqa[fanoutqa]'")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        import fanoutqa.retrieval

        return fanoutqa.retrieval


@given(
    st.lists(st.sampled_from(["word", "\n\n", "\n", ". ", ", ", " ", "x" * 40, "é"]), max_size=120).map("".join)
    | st.text(alphabet="ab .,\n", max_size=300),
    st.integers(8, 60),
)
@example("aa aaaa. a", 8)  # loses a blank in the middle
@example("a" * 11, 8)  # loses a letter
@pytest.mark.long
def test_a_text_is_cut_as_in_the_package_losses_included(retrieval, text, max_chars):
    assert cut(text, max_chars) == retrieval.chunk_text(text, max_chars)


@given(st.text(alphabet="ab .,\n", max_size=300), st.integers(8, 40))
def test_no_piece_is_longer_than_allowed(text, max_chars):
    assert all(len(piece) <= max_chars for piece in cut(text, max_chars))


def test_fragments_are_ranked_as_in_the_package(retrieval, monkeypatch):
    texts = {
        "Danube": "The Danube is 2,850 km long. " * 60 + "\n\nIt ends in the Black Sea.",
        "Rhine": "The Rhine is long.\n\nIt ends in the North Sea. " * 40,
    }
    plain = plain_normaliser()
    monkeypatch.setattr(retrieval, "normalize", plain)
    monkeypatch.setattr(retrieval, "wiki_content", lambda document: texts[document.title])
    documents = [type("Document", (), {"title": title})() for title in texts]
    question = "Into which sea does the Danube end?"
    theirs = retrieval.Corpus(documents, doc_len=1024)
    scores = dict(
        zip(
            [(d.title, d.content) for d in theirs.documents],
            theirs.index.get_scores(theirs.tokenize(question)),
            strict=True,
        )
    )
    ours = ranked(texts.items(), question, plain)
    assert sorted((f.title, f.text) for f in ours) == sorted(scores)
    assert [scores[f.title, f.text] for f in ours] == sorted(scores.values(), reverse=True)
    assert (ours[0].title, "Black Sea" in ours[0].text) == ("Danube", True)


def test_nothing_to_rank_is_nothing():
    assert ranked([], "?", plain_normaliser()) == ()
    assert ranked([("Empty", "")], "?", plain_normaliser()) == ()


def test_the_first_fragment_that_does_not_fit_ends_the_list():
    fragments = [Fragment("A", "x" * n, n) for n in (35, 35, 350, 7)]
    assert count_tokens("x" * 35) == 10
    assert count_tokens("é" * 35) == 20
    assert fitting(fragments, 25, 5, lambda f: f.text) == ["x" * 35, "x" * 35]
    assert fitting(fragments, 24, 5, lambda f: f.text) == ["x" * 35]
    assert fitting(fragments, 4, 5, lambda f: f.text) == []
