"""Slovenian on the page: how an index of it reads words, what a question finds, which words are marked."""

import unicodedata

import pytest

from ragqa.corpus.formats import load_corpus
from ragqa.corpus.pandachat import load_pandachat_questions
from ragqa.english.words import ANALYSERS, analyser_named
from ragqa.filtering import select
from ragqa.fusion import fuse
from ragqa.index import build_index, open_index
from ragqa.pipeline import clean_question
from ragqa.retrieval.analysis import matched_words
from ragqa.settings.config import FilteringConfig, FusionConfig, IndexingConfig
from ragqa.types import Question
from ragqa.ui.html.passages import passage_cards_html
from tests.support.fakes import FakeEncoder
from tests.support.pandachat_set import CAT, GARDEN, write_set

CHARACTERS = ANALYSERS["characters"]


def words(text, question, analyser=CHARACTERS):
    return [span.text for span in matched_words(text, question, analyser)]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    home = tmp_path_factory.mktemp("slovenian")
    data = write_set(home / "set.json")
    build_index("mini", data, indexes=home / "indexes", config=IndexingConfig(), encoder=FakeEncoder())
    return open_index("mini", home / "indexes")


def test_an_index_of_the_data_set_reads_words_in_pieces_without_accents(index):
    assert index.manifest.analyser == analyser_named("", "pandachat") == CHARACTERS
    assert (CHARACTERS.language, CHARACTERS.stop_words, CHARACTERS.folds_accents) == ("", False, True)


def test_a_question_keeps_its_letters():
    assert clean_question(Question("  Čigava je\u0000 žemlja\rs šipkom? ")).text == "Čigava je žemlja s šipkom?"


@pytest.mark.parametrize(
    ("question", "document"),
    [
        ("Opravila na vrtovih", GARDEN),
        ("Mačja prehrana: je mleko za mačko dobro?", CAT),
        ("MACKA IN MLEKO", CAT),  # typed without accents, in capitals
        (unicodedata.normalize("NFD", "Mačka in mleko"), CAT),
    ],
)
def test_inflected_words_and_missing_accents_find_the_document(index, question, document):
    assert index.bm25s.retrieve(question, 3).hits[0].passage.document_id == document


@pytest.mark.parametrize(
    ("text", "question", "marked"),
    [
        ("Na vrtu, v vrt, z vrtom.", "Kaj raste na vrtu?", ["vrtu", "vrt", "vrtom"]),
        ("Časopis o času; čas, časa, časih.", "Koliko časa?", ["času", "čas", "časa", "časih"]),
        ("Žival, živali in ŽIVALMI.", "Katere živali?", ["Žival", "živali", "ŽIVALMI"]),
        ("Študij, študija, študijem.", "Kako poteka študij?", ["Študij", "študija", "študijem"]),
        ("Hiša in hiši, hišnik pa ne.", "Kje je hisa?", ["Hiša", "hiši"]),
        ("Prah je prav povsod.", "Kaj je rak?", []),
        ("Prah.", "Ali je prav?", []),
    ],
)
def test_short_words_match_in_every_case(text, question, marked):
    assert words(text, question) == marked


def test_words_of_two_letters_are_marked_only_in_capitals():
    assert words("Kaj je v EU in na dnu, Je to 12?", "Kaj je v EU in na 12?") == ["Kaj", "EU", "12"]
    assert words("Je to?", "Kaj je to?") == []


def test_an_accent_of_its_own_belongs_to_its_letter():
    text = unicodedata.normalize("NFD", "Šola se začne ob osmih.")
    (found,) = matched_words(text, "Kdaj je šola?", CHARACTERS)
    assert unicodedata.normalize("NFC", found.text) == "Šola"
    assert text[found.start : found.end] == found.text


def test_stemmed_languages_match_as_before():
    assert words("The tea is in it, a team.", "What is tea?", ANALYSERS["english"]) == ["tea"]
    assert words("An EU law.", "EU", ANALYSERS["english"]) == ["EU"]


def test_the_page_marks_the_words_of_a_slovenian_question(index):
    question = "Kaj storimo na vrtovih jeseni?"
    fused = fuse((index.bm25s.retrieve(question, 9),), FusionConfig.of(bm25=1))
    html = passage_cards_html(
        select(fused, FilteringConfig()), 9, lambda text: matched_words(text, question, index.manifest.analyser)
    )
    assert "<mark>Jeseni</mark>" in html
    assert "<mark>vrt</mark>" in html
    assert "<mark>na</mark>" not in html


@pytest.mark.data
def test_in_real_passages_every_question_has_a_word_marked(shared_data):
    texts: dict[str, list[str]] = {}
    for one in load_corpus(shared_data / "pandachat", "pandachat").passages:
        texts.setdefault(one.document_id, []).append(one.text)
    for asked in load_pandachat_questions(shared_data / "pandachat"):
        (document,) = asked.gold_documents
        assert any(matched_words(text, asked.question.text, CHARACTERS) for text in texts[document])
