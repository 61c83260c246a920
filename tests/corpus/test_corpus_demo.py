"""The shipped corpora: large enough, whole, and every example question has its gold."""

import pytest

from ragqa.corpus.demo import DEMOS
from ragqa.corpus.formats import load_corpus
from ragqa.settings.config import IndexingConfig

MAX_DOCUMENT_WORDS = 15_000  # a demonstration is read by people


@pytest.fixture(scope="module")
def corpora():
    limit = IndexingConfig().chunk_max_tokens
    return {name: load_corpus(demo.source, demo.format, limit) for name, demo in DEMOS.items()}


@pytest.fixture(params=DEMOS)
def demo(request):
    return DEMOS[request.param]


def test_names():
    assert list(DEMOS) == ["rulebook", "encyclopedia"]
    assert all(demo.name == name for name, demo in DEMOS.items())


def test_descriptions_are_one_line_and_the_regulator_is_said_to_be_invented():
    assert all(demo.title and demo.description and "\n" not in demo.description for demo in DEMOS.values())
    assert "Harrowmere Financial Services Commission" in DEMOS["rulebook"].description
    assert "invented" in DEMOS["rulebook"].description


def test_the_format_is_also_found_without_being_told(demo, corpora):
    assert load_corpus(demo.source) == corpora[demo.name]


def test_ids_are_unique_and_nothing_is_blank(demo, corpora):
    passages = corpora[demo.name].passages
    assert len({p.passage_id for p in passages}) == len(passages)
    assert all(p.text.strip() and p.title and p.number for p in passages)
    assert not any("#" in p.passage_id for p in passages)  # no number is used twice


def test_no_document_is_over_long(demo, corpora):
    words: dict[str, int] = {}
    for passage in corpora[demo.name].passages:
        words[passage.document_id] = words.get(passage.document_id, 0) + len(passage.text.split())
    assert max(words.values()) <= MAX_DOCUMENT_WORDS


def test_rulebook_size_titles_and_sections(corpora):
    passages = corpora["rulebook"].passages
    assert len({p.document_id for p in passages}) >= 8
    assert len(passages) >= 300
    assert not any(p.title.startswith("Document ") for p in passages)  # every document has its title
    assert sum(bool(p.section) for p in passages) > len(passages) / 2
    assert not any("Table Start" in p.text for p in passages)


def test_encyclopedia_size_and_chunks(corpora):
    passages = corpora["encyclopedia"].passages
    assert len({p.document_id for p in passages}) >= 60
    assert max(len(p.text.split()) for p in passages) <= IndexingConfig().chunk_max_tokens
    assert all(p.title != p.document_id for p in passages)  # a heading names every article


def test_questions(demo, corpora):
    ids = {p.passage_id for p in corpora[demo.name].passages}
    questions = demo.questions()
    assert len(questions) >= 20
    assert len({q.question.question_id for q in questions}) == len(questions)
    assert len({q.question.text for q in questions}) == len(questions)
    unresolved = {q.question.question_id: sorted(q.gold - ids) for q in questions if not q.gold or not q.gold <= ids}
    assert unresolved == {}


def test_every_evidence_sentence_stands_in_its_article(corpora):
    articles: dict[str, str] = {}
    for passage in corpora["encyclopedia"].passages:
        articles[passage.document_id] = articles.get(passage.document_id, "") + " " + " ".join(passage.text.split())
    missing = [
        (q.question.question_id, document_id, sentence)
        for q in DEMOS["encyclopedia"].questions()
        for document_id, sentence in q.evidence
        if " ".join(sentence.split()) not in articles.get(document_id, "")
    ]
    assert missing == []
    assert all(q.evidence and q.answers for q in DEMOS["encyclopedia"].questions())


def test_questions_are_read_once(demo):
    assert demo.questions() is demo.questions()
