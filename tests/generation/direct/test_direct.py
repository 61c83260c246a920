"""The direct answer: which sentence comes first, what is named as not found, what is refused."""

from functools import partial
from zlib import crc32

import numpy as np
import pytest

from ragqa.corpus.numbered import documents_named
from ragqa.english.words import STOP_WORDS, words_of
from ragqa.filtering import select
from ragqa.fusion import led_by, rerank
from ragqa.generation.answers import NOTHING_KEPT
from ragqa.generation.direct.generator import (
    ANYWAY,
    EVIDENCE,
    EVIDENCE_WORDS,
    READ,
    READ_OF_RERANKED,
    REFUSAL,
    DirectGenerator,
)
from ragqa.generation.fanout.merging import reselected
from ragqa.generation.llm.reply import reads_as_refusal
from ragqa.settings.config import FilteringConfig, GenerationConfig, RerankingConfig
from ragqa.types import AnswerSentence, Drop, ModelInfo, Question, Ranking, ScoredPassage
from ragqa.types.events.generation import PassagesAdded
from ragqa.types.events.pipeline import Selected
from tests.support.fakes import FakeSelector, passage
from tests.support.streams import drain

DENSITY = "The density of gold is 19.3 grams per cubic centimetre, which is nearly twice the density of copper."
MELTS = "Gold melts at 1,064 degrees Celsius."
MELTING = "At what temperature does gold melt?"
TITANIC = (
    "The Titanic was built in Belfast.",
    "The Titanic sank on 15 April 1912.",
    "Its wreck lies at a depth of 3,800 metres.",
)


class Encoder:
    """A text is the sum of its words, so that a cosine is high where words are shared."""

    info = ModelInfo("words", "0" * 64)

    def encode(self, texts):
        found = np.zeros((len(texts), 512), dtype=np.float32)
        for row, text in zip(found, texts, strict=True):
            for word in words_of(text):
                row[crc32(word.stem.encode()) % 512] += word.lower not in STOP_WORDS
        return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)

    def encode_query(self, text):
        return self.encode([text])


KEEPS = "A firm must keep records of gold for six years."


def ranked(*texts, scores=None):
    scores = scores or [1 - number / 100 for number in range(len(texts))]
    found = [passage(f"{n}:1", text, title=f"Title {n}") for n, text in enumerate(texts, start=1)]
    return Ranking.of("fused", [ScoredPassage(one, score) for one, score in zip(found, scores, strict=True)])


def asked(question, ranking, filtering=None, selector=None, **config):
    filtering, passages = filtering or FilteringConfig(0.0, 1.0), tuple(hit.passage for hit in ranking.hits)
    names_of = partial(documents_named, passages=passages)
    generator = DirectGenerator(Encoder(), GenerationConfig(**config), filtering, selector, names_of)
    events, (answer, selection) = drain(generator.stream_searching(Question(question), ranking, None))
    assert [event for event in events if isinstance(event, Selected)] == [Selected(selection)]
    return events, answer, selection


def test_what_the_answer_points_back_to_is_quoted_after_it():
    audit = "The internal audit function is of the third line. It may be outsourced to a service provider. Ducks swim."
    _, answer, _ = asked("To whom may it be outsourced?", ranked(audit), max_sentences=2)
    assert [sentence.text for sentence in answer.sentences] == [
        "It may be outsourced to a service provider.",
        "The internal audit function is of the third line.",
    ]
    _, answer, _ = asked(
        "To whom may audit be outsourced?", ranked(audit.replace("It may", "Audit may")), max_sentences=2
    )
    assert "third line" not in answer.sentences[-1].text


def test_the_selector_says_which_of_the_near_sentences_answers():
    rules = (
        "A firm keeps records of gold for the regulator.",
        "Records of gold are kept by a firm as its auditor says.",
    )
    question = "How long does a firm keep records of gold?"
    first = {
        text: asked(question, ranked(*rules), selector=FakeSelector(**{text: 8.0}))[1].sentences[0].text
        for text in rules
    }
    assert first == {text: text for text in rules}


def test_what_the_selector_does_not_believe_is_refused():
    ranking, question = ranked(KEEPS), "How long must a firm keep records of gold?"
    assert not asked(question, ranking, selector=FakeSelector(firm=6.0))[1].is_refusal
    _, answer, _ = asked(question, ranking, selector=FakeSelector())
    assert answer.is_refusal
    assert "does not read as an answer" in answer.note


@pytest.mark.parametrize(
    ("question", "read"),
    [
        (MELTING, [MELTING]),
        ("melting point of gold", ["melting point of gold", "What does it say about melting point of gold?"]),
        ("gold melts, at which temperature", ["gold melts, at which temperature"]),
    ],
)
def test_a_fragment_is_read_as_a_question_too(question, read):
    selector = FakeSelector(Gold=6.0)
    _, answer, _ = asked(question, ranked(MELTS, DENSITY), selector=selector)
    assert answer.sentences[0].text == MELTS
    assert list(dict.fromkeys(one for one, _ in selector.read)) == read


def test_an_item_of_a_list_that_is_too_long_to_be_read_answers_after_its_lead_in():
    long = " ".join(["in the ordinary course of its business"] * 12)
    items = (f"(a) keep its gold {long};", f"(b) weigh its silver {long};", f"(c) report its lead {long}; and")
    text = "\n".join(["A firm must:", *items, "(d) sell the following: (i) copper at noon; (ii) tin at night."])
    selector = FakeSelector(tin=8.0)
    _, answer, selection = asked("When is tin sold?", ranked(text, DENSITY), selector=selector)
    said = "A firm must […] sell the following […] tin at night"
    assert answer.sentences[0].text == said
    assert all(piece in selection.passages[0].text for piece in said.split(" […] "))
    assert any(one.endswith(": A firm must sell the following tin at night") for _, one in selector.read)
    _, twice, _ = asked("When is tin sold?", ranked(text, text), selector=selector)
    assert [sentence.citations for sentence in twice.sentences if sentence.text == said] == [(1, 2)]


def test_a_table_that_is_too_long_to_be_read_is_read_by_its_rows():
    rows = "\n".join(f"Metal {n} | {n} pounds a ton | weighed at the gate by the keeper" for n in range(30))
    _, answer, _ = asked("What does metal 7 cost?", ranked(rows, DENSITY), selector=FakeSelector(**{"Metal 7 ": 8.0}))
    assert answer.sentences[0].text == "Metal 7 | 7 pounds a ton | weighed at the gate by the keeper"


def test_the_selector_reads_a_bounded_number_of_sentences_with_what_stands_above_them():
    selector = FakeSelector(gold=4.0)
    asked(
        "What is gold, and when does gold melt?",
        ranked(*(f"Gold {n} is gold of kind {n}." for n in range(40))),
        selector=selector,
    )
    assert len(selector.read) <= 3 * READ // 2
    assert selector.read[0][1].startswith("Title 1: Gold")


def test_more_sentences_are_read_where_a_reranker_has_read_the_passages():
    fused = ranked(*(f"Gold {n} is gold of kind {n}. Gold {n} shines." for n in range(40)))
    reranked = rerank(fused, {hit.passage.passage_id: 1.0 for hit in fused.hits}, RerankingConfig("m", depth=40))
    selectors = FakeSelector(gold=4.0), FakeSelector(gold=4.0)
    for ranking, selector in zip((fused, reranked), selectors, strict=True):
        asked("What is gold?", ranking, selector=selector)
    read = [len({text for _, text in selector.read}) for selector in selectors]
    assert read == [READ, READ_OF_RERANKED]


def test_the_sentence_with_what_is_asked_for_comes_first_however_short():
    _, answer, selection = asked(MELTING, ranked(f"{DENSITY} {MELTS}", "Iron is a metal that rusts in water and air."))
    assert answer.sentences[0] == AnswerSentence(MELTS, 0, len(MELTS), (1,))
    assert all(one.text in selection.passages[one.citations[0] - 1].text for one in answer.sentences)
    assert answer.generator == "direct, no language model"
    assert not answer.is_refusal
    assert answer.note == ""


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("When did the Titanic sink?", TITANIC[1]),
        ("Where was the Titanic built?", TITANIC[0]),
        ("How deep lies the wreck of the Titanic?", TITANIC[2]),
    ],
)
def test_the_kind_of_answer_decides_among_sentences_about_the_same(question, first):
    assert asked(question, ranked(" ".join(TITANIC)), quote_anyway=True)[1].sentences[0].text == first


def test_a_question_that_no_passage_was_retrieved_for_is_not_found():
    _, answer, _ = asked("What is 2+2?", ranked())
    assert (answer.state, answer.sentences) == ("not found", ())


def test_the_function_that_is_asked_for_is_quoted_and_not_another_one_that_a_pronoun_stands_for():
    compliance = "A Firm may outsource its compliance function to a third party that the Regulator has approved."
    text = f"A Firm must have an internal audit function. It may be outsourced.\n\n{compliance}"
    assert asked("Can a firm outsource its compliance function?", ranked(text))[1].sentences[0].text == compliance


def test_every_part_of_a_question_is_answered_in_its_order():
    _, answer, _ = asked(
        "When was it that the Titanic sank, and where was the Titanic built?", ranked(" ".join(TITANIC))
    )
    assert [one.text for one in answer.sentences[:2]] == [TITANIC[1], TITANIC[0]]


def test_each_side_of_a_comparison_is_answered_by_a_sentence_of_its_own_or_both_by_one():
    rivers = ranked("The Volga is 3,530 kilometres long.", "Ducks swim.", "The Danube is 2,850 kilometres long.")
    question = "Which river is longer, the Volga or the Danube?"
    _, answer, _ = asked(question, rivers, selector=FakeSelector(kilometres=6.0))
    assert [one.text.split()[1] for one in answer.sentences] == ["Volga", "Danube"]
    both = "The Volga is longer than the river Danube."
    _, answer, _ = asked(question, ranked(both, "Ducks swim."), selector=FakeSelector(longer=6.0))
    assert [one.text for one in answer.sentences] == [both]


def test_a_part_that_the_limit_of_sentences_leaves_out_is_named():
    question = "When was it that the Titanic sank, and where was the Titanic built?"
    _, answer, _ = asked(question, ranked(" ".join(TITANIC)), max_sentences=1)
    assert [one.text for one in answer.sentences] == [TITANIC[1]]
    assert answer.note == "Found but not quoted, as most sentences is 1: where was the Titanic built."


def test_a_part_without_evidence_is_named():
    question = "When was it that the Titanic sank, and how much does a ticket for the Eiffel Tower cost?"
    _, answer, _ = asked(question, ranked(" ".join(TITANIC)))
    assert answer.sentences[0].text == TITANIC[1]
    assert answer.note == "Not found: how much does a ticket for the Eiffel Tower cost."
    assert (answer.state, answer.not_found) == ("partly", ("how much does a ticket for the Eiffel Tower cost",))


def test_a_passage_that_the_filter_drops_is_kept_where_its_sentence_answers():
    ranking = ranked(DENSITY, "Lead is a soft metal.", MELTS, scores=[1.0, 0.5, 0.4])
    events, answer, selection = asked(MELTING, ranking, FilteringConfig())
    assert [one.passage_id for one in select(ranking, FilteringConfig()).passages] == ["1:1"]
    added = next(event for event in events if isinstance(event, PassagesAdded))
    assert "3:1" in added.passage_ids
    assert answer.sentences[0].text == MELTS
    cited = selection.kept[answer.sentences[0].citations[0] - 1]
    assert cited.passage.passage_id == "3:1"
    assert cited.explanation.startswith("kept: it holds a sentence of the answer; by the filter dropped")
    assert reselected(ranking, events, FilteringConfig()) == selection  # what a record opens as
    assert {one.drop for one in selection.dropped} <= {Drop.BELOW_THRESHOLD, Drop.AFTER_MAX_DROP}


def test_a_sentence_is_cited_from_every_kept_passage_that_has_it():
    assert asked(MELTING, ranked(MELTS, f"{DENSITY} {MELTS}"))[1].sentences[0].citations == (1, 2)


def test_a_sentence_with_a_control_character_is_still_cited_from_its_passage():
    _, answer, _ = asked("How long must a firm keep records of gold?", ranked(KEEPS.replace("firm", "fi\x00rm")))
    assert [(one.text, one.citations) for one in answer.sentences] == [(KEEPS, (1,))]


def test_evidence_is_short_and_near():
    near = [f"Gold melts at {number} degrees Celsius in furnace {number}." for number in range(20, 40)]
    _, answer, _ = asked(MELTING, ranked(" ".join(near), "A Rule about Clients that nobody asked for."))
    assert len(answer.sentences) == 1 + EVIDENCE
    assert all("melts" in one.text for one in answer.sentences)
    long = "Gold melts at 30 degrees Celsius " + "and so on " * 40 + "here."
    _, answer, _ = asked(MELTING, ranked(f"{MELTS} {long} {long[:-1]} too."))
    assert sum(len(one.text.split()) for one in answer.sentences[1:]) <= EVIDENCE_WORDS
    assert len(asked(MELTING, ranked(" ".join(near)), max_sentences=1)[1].sentences) == 1


def test_the_next_sentence_is_evidence_on_easier_terms_where_it_limits_or_completes_the_answer():
    limit, other = "Records of gold need nevertheless not be kept.", "Records of gold need always be kept."
    completes = "These records of gold are kept in the office."
    for following, n_sentences in ((limit, 2), (completes, 2), (completes.replace("These", "The"), 1), (other, 1)):
        _, found, _ = asked("How long must a firm keep records of gold?", ranked(f"{KEEPS} {following}"))
        assert [one.text for one in found.sentences] == [KEEPS, following][:n_sentences]


@pytest.mark.parametrize(("first", "n_sentences"), [(6.0, 1), (-3.0, 2)])
def test_where_the_first_sentence_may_not_answer_a_further_one_is_shown(first, n_sentences):
    other = "A firm keeps records of gold and of silver for the auditor as long as he asks."
    selector = FakeSelector(**{KEEPS: first, other: first - 2.5})
    _, found, _ = asked("How long must a firm keep records of gold?", ranked(KEEPS, other), selector=selector)
    assert [one.text for one in found.sentences] == [KEEPS, other][:n_sentences]


def test_what_the_corpus_does_not_answer_is_refused_with_reasons_and_the_nearest_passages():
    events, answer, selection = asked("How do I descale an espresso machine?", ranked(*TITANIC))
    assert answer.is_refusal
    assert answer.sentences == ()  # nothing to be scored, so nothing is green
    assert answer.text.startswith(REFUSAL)
    assert "Title 1" in answer.text
    assert 'no passage found has "descale", "espresso", "machine"' in answer.note
    assert answer.note.startswith("Probability of an answer 0.")
    assert selection == select(ranked(*TITANIC), FilteringConfig(0.0, 1.0))
    assert not any(isinstance(event, PassagesAdded) for event in events)


def test_a_word_that_no_passage_has_is_named_as_it_was_asked():
    _, answer, _ = asked("Which ships sail to France?", ranked(*TITANIC))
    assert "“France”" in answer.text


def test_a_refusal_names_the_nearest_passages_as_they_are_cited():
    title = "REGULATION (EU) 2026/7 OF THE COUNCIL of 3 May 2026 on ships that leave in the night"
    ship = passage("1:1", TITANIC[0], title=title, number="CHAPTER I.Article 7.1.")
    _, answer, _ = asked("How do I descale an espresso machine?", Ranking.of("fused", [ScoredPassage(ship, 1.0)]))
    assert answer.text == (
        f"{REFUSAL} No passage found has “descale”, “espresso”, “machine”. "
        "Nearest to it: Regulation (EU) 2026/7 Article 7(1)."
    )
    assert answer.choices == ()


def test_misspelt_words_are_offered_as_the_passages_spell_them():
    _, answer, _ = asked("Must a broker shw an iceburg lisence?", ranked("An iceberg sank it.", "A licence is due."))
    assert answer.is_refusal
    assert answer.choices == ("Must a broker shw an iceberg licence?",)


def test_a_vague_question_is_answered_and_asked_back_with_the_headings_that_it_is_found_under():
    fees = ranked("Fees are due in May.", "A fee of 300 is due for each application.", "Gold melts at 1,064 degrees.")
    asked_back = ("What about fees, under “Title 1”?", "What about fees, under “Title 2”?")
    for question, choices in (
        ("What about fees?", asked_back),
        ("What are fees?", ()),  # wants a definition
        ("When are fees due?", ()),
        ("What about melting?", ()),  # under one heading only
    ):
        _, answer, _ = asked(question, fees, quote_anyway=True)
        assert answer.choices == choices
        assert answer.sentences


def test_a_choice_names_the_innermost_heading_and_its_document():
    texts = {"7 Fees › 7.2 Annual fees": "Fees are due in May.", "7 Fees › 7.3 Other fees": "Fees are not refunded."}
    found = [passage(section, text, title="General Rules", section=section) for section, text in texts.items()]
    _, answer, _ = asked("What about fees?", Ranking.of("fused", [ScoredPassage(one, 1.0) for one in found]))
    assert answer.choices[0] == "What about fees, under “7.2 Annual fees” of General Rules?"
    assert len(answer.choices) == 2


def test_a_refusal_begins_with_words_that_are_recognised_as_one():
    assert reads_as_refusal([AnswerSentence(REFUSAL, 0, len(REFUSAL))])


def test_a_near_miss_is_refused_because_what_is_asked_for_is_missing():
    _, answer, _ = asked("How much did the ticket for the Titanic cost?", ranked(" ".join(TITANIC)))
    assert answer.is_refusal
    assert "does not have what is asked for (a number)" in answer.note


def test_quoting_anyway_quotes_and_says_so():
    _, answer, _ = asked("How do I descale an espresso machine?", ranked(*TITANIC), quote_anyway=True)
    assert not answer.is_refusal
    assert answer.sentences
    assert answer.note.startswith(ANYWAY)


def test_nothing_retrieved_and_nothing_readable_say_so():
    _, answer, _ = asked(MELTING, Ranking("fused", ()))
    assert (answer.text, answer.note, answer.finish_reason) == ("", NOTHING_KEPT, "empty")
    _, answer, _ = asked(MELTING, ranked("\t"))
    assert answer.finish_reason == "empty"


def test_headings_are_no_answers_where_there_is_anything_else():
    _, answer, _ = asked(MELTING, ranked("GOLD AND THE TEMPERATURE AT WHICH IT MELTS", MELTS))
    assert answer.sentences[0].text == MELTS


def test_an_editors_note_in_brackets_is_no_answer():
    note = "[Note: at what temperature gold melts corresponds to Rule 12 as it applied before.]"
    _, answer, _ = asked(MELTING, ranked(note, MELTS))
    assert [one.text for one in answer.sentences] == [MELTS]


def test_of_two_sentences_that_answer_alike_the_shorter_one_is_quoted():
    listing = f"{KEEPS[:-1]}, of silver for seven, of tin for eight, of zinc for nine and of lead for ten years."
    selector = FakeSelector(gold=6.0)
    _, answer, _ = asked("How long must a firm keep records of gold?", ranked(f"{listing} {KEEPS}"), selector=selector)
    assert answer.sentences[0].text == KEEPS


def test_a_rule_asked_for_by_number_is_answered_by_that_rule_alone():
    texts = "The bank keeps a list of clients. Clients are told of it each year in May."
    ranking = led_by(ranked(MELTS), [passage("2:3.1.1", texts, number="3.1.1")])
    _, answer, _ = asked("What does rule 3.1.1 say?", ranking)
    assert not answer.is_refusal
    assert answer.text == texts  # in its own order


def test_a_long_rule_asked_for_by_number_is_quoted_from_its_beginning():
    texts = " ".join(f"The bank of the river {n} keeps a list of all of its clients." for n in range(40))
    ranking = led_by(ranked(MELTS), [passage("2:3.1.1", texts, number="3.1.1")])
    _, answer, _ = asked("Rule 3.1.1", ranking)
    assert texts.startswith(answer.text)
    assert 280 < len(answer.text.split()) <= 300
    assert answer.note == "The rule goes on after these sentences."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A firm keeps three things.\n(a)\tIt keeps lamps.\n(b)\tIt keeps oil.\n(c)\tIt keeps wicks.",
         ["A firm keeps three things.", "(b) It keeps oil."]),
        ("Keep:\n(a)\tlamps;\n(b)\toil; and\n(c)\twicks.", ["Keep: (a) lamps; (b) oil; and (c) wicks."]),
    ],
)  # fmt: skip
def test_an_item_asked_for_by_number_is_quoted_in_whole_sentences(text, said):
    lines = [(line[1], text.index(line[4:])) for line in text.split("\n")[1:]]
    items = "\n".join(f"{at} {(text + chr(10)).index(chr(10), at)} 3.1.({name})" for name, at in lines)
    ranking = led_by(ranked(MELTS), [passage("1:3.1", text, number="3.1", items=items)])
    _, answer, _ = asked("What does rule 3.1(b) say?", ranking)
    assert [" ".join(one.text.split()) for one in answer.sentences] == said


ACTS = {
    "eu-lota-act": ("On lamps", "‘Wick oil’ means oil for wicks.", "It shall apply from 2 May 2031."),
    "candle-act": ("On candles", "Wick oil is sold by the Office of Candles.", "It shall apply from 9 June 2032."),
}


def acts(*order):
    """The passages of two acts, the first act's first; no text has an act's name."""
    found = [
        passage(f"{act}:{n}", text, title=ACTS[act][0], number=f"Article {n}", document_id=act)
        for act in order
        for n, text in enumerate(ACTS[act][1:], start=1)
    ]
    return Ranking.of("fused", [ScoredPassage(one, 1 - n / 100) for n, one in enumerate(found)])


@pytest.mark.parametrize("question", ["From when does LOTA apply?", "from when does the lota apply?"])
def test_a_question_about_a_named_act_is_answered_by_that_act(question):
    selector = FakeSelector(**{"apply from": 4.0})
    _, answer, _ = asked(question, acts("candle-act", "eu-lota-act"), selector=selector)
    assert [sentence.text for sentence in answer.sentences] == ["It shall apply from 2 May 2031."]
    assert {text for text, _ in selector.read} == {"From when does this act apply?".replace("F", question[0])}
    _, answer, _ = asked("From when does it apply?", acts("candle-act", "eu-lota-act"), selector=selector)
    assert answer.sentences[0].text == "It shall apply from 9 June 2032."


def test_each_side_of_a_comparison_is_answered_by_the_act_that_it_names():
    selector = FakeSelector(**{"apply from": 4.0})
    question = "How do LOTA and the Candle Act differ on their first days?"
    _, answer, _ = asked(question, acts("candle-act", "eu-lota-act"), selector=selector, max_sentences=2)
    assert [sentence.text for sentence in answer.sentences] == [ACTS["eu-lota-act"][2], ACTS["candle-act"][2]]


def test_a_named_act_without_an_answer_is_not_answered_by_another():
    selector = FakeSelector(Office=4.0)
    _, answer, _ = asked("Who sells wick oil under LOTA?", acts("candle-act", "eu-lota-act"), selector=selector)
    assert answer.is_refusal
    assert not any("candle" in text.lower() for _, text in selector.read)


def test_what_the_index_does_not_know_as_a_name_limits_nothing():
    """A word may be in the title of one passage found and in no text found, and yet be a common word of the corpus."""
    generator = DirectGenerator(Encoder(), GenerationConfig(), FilteringConfig(0.0, 1.0), FakeSelector(Office=4.0))
    question = Question("Who sells wick oil under LOTA?")
    _, (answer, _) = drain(generator.stream_searching(question, acts("candle-act", "eu-lota-act"), None))
    assert answer.sentences[0].text == ACTS["candle-act"][1]
