"""Questions taken apart by rules, names followed to a second hop, and rankings merged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragqa.generation.fanout.decomposition import decompose
from ragqa.generation.fanout.merging import BRIDGE, OTHER, OWN, RankedSubQuestion, gather, kept_by, merge
from ragqa.generation.fanout.names import groups_of, names_in, plain_name
from ragqa.generation.fanout.searching import MAX_BRIDGES, best_documents, bridges, own_passages, parts_of, second_hop
from ragqa.settings.config import FilteringConfig
from ragqa.types import Drop, Ranking, ScoredPassage, ScorePart, SubQuestion
from tests.support.effort import grows_no_faster
from tests.support.fakes import passage


def texts(question, **settings):
    return [part.text for part in decompose(question, **settings)]


def ranking(*hits):
    """Of (passage, score)."""
    return Ranking("fused", tuple(ScoredPassage(found, score) for found, score in hits))


# Names --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Which river leaves Lake Bled?", ["Lake Bled"]),
        ("Is the Bank of England older?", ["Bank of England"]),
        ('Who wrote "a song of frost" and K2?', ["a song of frost", "K2"]),
        ("Did J. R. Vance know Ludwig van Beethoven's pupil?", ["J. R. Vance", "Ludwig van Beethoven"]),
        ("what is a lake?", []),
        ("The Which Who", []),
        ("", []),
    ],
)
def test_names(text, names):
    found = names_in(text)
    assert [span.text for span in found] == names
    assert all(text[span.start : span.end] == span.text for span in found)


def test_a_known_title_is_one_name_whatever_and_it_holds():
    text = "Who painted Salt and Silver and The Mill?"
    assert [span.text for span in names_in(text)] == ["Salt", "Silver", "Mill"]
    assert [span.text for span in names_in(text, ["Salt and Silver", "The Mill (painting)"])] == [
        "Salt and Silver", "The Mill",
    ]  # fmt: skip


def test_a_title_that_is_only_a_bracket_is_no_name():
    draft = passage("d:1", "A firm must keep records.", title="(draft)")
    asked = "Are Aarau, Bern and Chur in it?"
    assert [part.text for part in parts_of(asked, ranking((draft, 1.0)))] == texts(asked)


def test_groups_are_joined_by_and_or_or_and_commas_before_it():
    def groups(text):
        return [[span.text for span in group] for group in groups_of(text, names_in(text))]

    assert groups("Are Aarau, Bern and Chur in it?") == [["Aarau", "Bern", "Chur"]]
    assert groups("Is Aarau or the Rhine older?") == [["Aarau", "Rhine"]]
    assert groups("Was Aarau founded, Bern not?") == []
    assert groups("Which lies on the Aare and the Rhine: Bern or Chur?") == [["Aare", "Rhine"], ["Bern", "Chur"]]


def test_names_are_compared_without_article_case_and_qualifier():
    assert plain_name("The Nile (river)") == plain_name("nile") == "nile"
    assert plain_name("Nile Delta") != plain_name("Nile")


# Decomposition ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        (
            "Which mountain is higher, Denali or K2?",
            ["Denali: which mountain is higher?", "K2: which mountain is higher?"],
        ),
        ("Are Yixing and Qingyang both in China?", ["Is Yixing in China?", "Is Qingyang in China?"]),
        ("Who of Ann Lee and Bo Reed is older?", ["Ann Lee: is older?", "Bo Reed: is older?"]),
        ("What do Ann Lee and Bo Reed have in common?", [
            "What does Ann Lee have in common?", "What does Bo Reed have in common?",
        ]),
        ("What are the heights of Denali, K2 and Aconcagua?", [
            "What are the heights of Denali?", "What are the heights of K2?", "What are the heights of Aconcagua?",
        ]),
        ("Which of the metals iron, gold and lead melts first?", [
            "Iron: melts first?", "Gold: melts first?", "Lead: melts first?",
        ]),
        ("Who found it first, a miner or the mayor of the town?", [
            "Miner: who found it first?", "Mayor of the town: who found it first?",
        ]),
        ("What is the difference between a caution and a public censure?", [
            "A caution: what is the difference?", "A public censure: what is the difference?",
        ]),
        ("How do the Lamp Act and the Oil Act differ on fines?", [
            "What about fines of the Lamp Act?", "What about fines of the Oil Act?",
        ]),
        ("What is the difference between a note on fees and a note on costs?", [
            "A note on fees: what is the difference?", "A note on costs: what is the difference?",
        ]),
        ("How does simplified due diligence differ from enhanced due diligence?", [
            "How does simplified due diligence differ?", "How does enhanced due diligence differ?",
        ]),
        ("Gold or lead: which melts first?", ["Gold: which melts first?", "Lead: which melts first?"]),
        ("What are the requirements for outsourcing and for holding client money?", [
            "What are the requirements for outsourcing?", "What are the requirements for holding client money?",
        ]),
        ("What records must be kept, and for how long?", [
            "What records must be kept?", "For how long (records kept)?",
        ]),
        ("Who runs the Port of Calis, and when was it built?", [
            "Who runs the Port of Calis?", "When was it built (Port of Calis)?",
        ]),
        ("May a firm report? Who signs the report?", [
            "May a firm report?", "Who signs the report (firm report)?",
        ]),
        ("Must a breach be reported; who signs the report?", [
            "Must a breach be reported?", "Who signs the report (breach reported)?",
        ]),
    ],
)  # fmt: skip
def test_questions_taken_apart(question, parts):
    assert texts(question) == parts


@pytest.mark.parametrize(
    "question",
    [
        "Which river drains Lake Tanganyika?",
        "When must a firm keep records and accounts?",
        "What must a firm do?",
        "Who wrote Salt and Silver?",  # no comparison: one book as likely as two names
        "and or , ; ?",
        "",
        "   ",
    ],
)
def test_questions_left_whole(question):
    assert decompose(question) == ()


def test_a_title_of_the_corpus_is_not_torn_apart():
    question = "Who was born first, the author of Salt and Silver or Ann Lee?"
    assert [part.name for part in decompose(question, titles=["Salt and Silver"])] != ["Salt", "Silver"]
    both = "Are Salt and Silver and The Mill both novels?"
    assert [part.name for part in decompose(both, titles=["Salt and Silver", "The Mill"])] == [
        "Salt and Silver", "The Mill",
    ]  # fmt: skip


def test_each_part_once():
    names = ", ".join(f"Peak{n}" for n in "ABCDEFGH")
    assert len(decompose(f"What are the heights of {names} and Mount Z?")) == 9
    assert decompose("Which is older, Bern or Bern?") == ()


def test_hostile_questions_take_linear_time():
    for start, unit in (
        ("", "a "), ("", "a, "), ("", "A and "), ("", "for x and "), ("", "x or "), ("", "-"), ("", "a-b'c "),
        ("", '"'), ("", "("), ("Which of the ", "word "), ("", "Are A, "), ("", ", "),
    ):  # fmt: skip

        def read(n, start=start, unit=unit):
            text = (start + unit * n)[:n]
            decompose(text)
            names_in(text, ["A (b)" * 20])

        assert grows_no_faster(read, 1_000), unit  # 8,000 characters are the most a question may have


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=300))
def test_any_text_gives_parts_or_none(text):
    parts = decompose(text)
    assert len(parts) != 1
    assert all(part.text.strip() and part.reason for part in parts)


# Second hop ---------------------------------------------------------------------------------------------------------

ALBUM = passage("1", "Northern Light is an album by the singer Ida Holm. It came out in 2013.", title="Northern Light")
SINGER = passage("2", "Ida Holm studied law at Aarhus.", title="Ida Holm (singer)")
OTHER_PASSAGE = passage("3", "It is seen in winter.", title="Aurora")
QUESTION = "Northern Light is an album by the singer who studied where?"


def test_a_bridge_asks_of_the_name_what_the_passage_does_not_say():
    (part,) = bridges(QUESTION, ALBUM)
    assert (part.text, part.name) == ("Ida Holm: who studied?", "Ida Holm")
    assert part.reason == "Ida Holm is named in Northern Light"


def test_names_of_the_question_the_title_and_dates_are_no_bridges():
    text = "Northern Light by Ida Holm was made on 4 May 2012 in Oslo. In May 2013, Ida Holm left."
    (part,) = bridges("What did Ida Holm make?", passage("1", text, title="Northern Light"))
    assert part.name == "Oslo"


def test_a_names_own_passage_is_known_by_its_title_without_qualifier():
    assert own_passages("Ida Holm", ranking((SINGER, 2.0), (ALBUM, 1.0))) == {"2"}
    assert own_passages("Ida", ranking((SINGER, 2.0))) == frozenset()


def searching(table):
    calls = []

    def search(question):
        calls.append(question)
        return table.get(question.split(":")[0], ranking((OTHER_PASSAGE, 1.0)))

    return search, calls


def test_the_second_hop_asks_only_of_names_with_a_passage_of_their_own():
    text = "Northern Light is an album by Ida Holm and Sven Berg, recorded in Oslo."
    album = passage("1", text, title="Northern Light")
    search, calls = searching({"Ida Holm": ranking((SINGER, 3.0), (album, 1.0))})
    (found,) = second_hop(QUESTION, ranking((album, 9.0), (OTHER_PASSAGE, 1.0)), search, 8)
    assert [call.split(":")[0] for call in calls] == ["Ida Holm", "Sven Berg", "Oslo"]
    assert (found.question.number, found.question.name, found.question.is_bridge, found.hop) == (1, "Ida Holm", True, 0)


def test_the_second_hop_is_limited_and_those_relevant_to_the_question_come_first():
    names = ["Ada Ahl", "Bea Bek", "Cid Cox", "Dag Dal"]
    owns = {name: passage(name, f"{name} lived.", title=name) for name in names}
    album = passage("1", "By " + ", ".join(names) + ".", title="Northern Light")
    search, _ = searching({name: ranking((owns[name], 1.0)) for name in names})
    whole = ranking((album, 9.0), (owns["Dag Dal"], 5.0), (owns["Cid Cox"], 2.0))
    found = second_hop(QUESTION, ranking(*((hit.passage, hit.score) for hit in whole.hits)), search, 8)
    assert [one.question.name for one in found] == ["Dag Dal", "Cid Cox", "Ada Ahl"]
    assert len(found) == MAX_BRIDGES
    assert len(second_hop(QUESTION, whole, search, 1)) == 1


def test_documents_not_passages_are_followed():
    chapters = [passage(f"{n}", document_id="d") for n in range(3)] + [passage("9", document_id="e")]
    best = best_documents(ranking(*((one, 1.0) for one in chapters)), 2)
    assert [one.passage_id for one in best] == ["0", "9"]


def test_titles_of_the_ten_best_passages_keep_names_whole():
    novel = passage("1", title="Salt and Silver")
    parts = parts_of("Are Salt and Silver and Ebb both novels?", ranking((novel, 1.0)))
    assert [part.name for part in parts] == ["Salt and Silver", "Ebb"]


# Merging ------------------------------------------------------------------------------------------------------------

A, B, C, D = (passage(name, title=f"Title {name}") for name in "abcd")
WHOLE = ranking((A, 1.0), (B, 0.5), (C, 0.0))


def sub(number=1, name="", bridge=False):
    return SubQuestion(number, f"Sub {number}?", 0, "", name, bridge)


def scores(merged):
    return {hit.passage.passage_id: hit.score for hit in merged.hits}


def test_without_sub_questions_the_order_and_the_selection_are_those_of_single_shot():
    from ragqa.filtering import select

    assert [hit.passage for hit in merge(WHOLE, ()).hits] == [A, B, C]
    assert gather(WHOLE, (), FilteringConfig()) == select(WHOLE, FilteringConfig())


def test_a_score_is_the_questions_relevance_and_the_most_that_one_sub_question_adds():
    first = RankedSubQuestion(sub(1), ranking((C, 4.0), (B, 3.0), (D, 2.0)))
    second = RankedSubQuestion(sub(2), ranking((B, 8.0), (A, 7.0)))
    merged = merge(WHOLE, [first, second])
    assert scores(merged) == pytest.approx({
        "a": 1.0,  # 0 of both
        "b": 0.5 + OTHER * 1.0,  # of the second, where it is first; the first would add OTHER * .5^3
        "c": 0.0 + OTHER * 1.0,
        "d": 0.0,
    })  # fmt: skip
    assert [hit.passage.passage_id for hit in merged.hits] == ["a", "b", "c", "d"]  # a before b at equal scores
    assert all(sum(part.contribution for part in hit.reranking) == pytest.approx(hit.score) for hit in merged.hits)


def test_a_passage_of_the_names_own_counts_most_and_a_bridge_adds_to_no_other():
    named = RankedSubQuestion(sub(name="Title d"), ranking((C, 4.0), (D, 3.0), (B, 2.0)))
    assert scores(merge(WHOLE, [named]))["d"] == pytest.approx(OWN * (1 + 0.5) / 2)
    bridge = RankedSubQuestion(sub(name="Title d", bridge=True), named.ranking, hop=1)
    assert scores(merge(WHOLE, [bridge])) == pytest.approx({"a": 1.0, "b": 0.5, "c": 0.0, "d": BRIDGE * 0.85})


def test_every_hit_has_the_same_columns_and_nothing_given_is_changed():
    part = ScorePart("bm25", 3.0, 1, 1.0, 1.0, 1.0)
    whole = Ranking("fused", (ScoredPassage(A, 1.0, (part,)),))
    merged = merge(whole, [RankedSubQuestion(sub(), ranking((D, 1.0)))])
    assert [[one.retriever for one in hit.parts] for hit in merged.hits] == [["bm25"], ["bm25"]]
    assert merged.hits[1].parts[0].raw is None
    assert [[one.retriever for one in hit.reranking] for hit in merged.hits] == [["fused", "sub-question"]] * 2
    assert whole.hits[0] == ScoredPassage(A, 1.0, (part,))


def test_the_selection_is_the_union_and_says_who_found_what():
    found = [RankedSubQuestion(sub(1), ranking((D, 1.0), (A, 0.95))), RankedSubQuestion(sub(2), ranking((D, 1.0)))]
    selection = gather(WHOLE, found, FilteringConfig())
    assert {c.passage.passage_id: c.explanation for c in selection.kept} == {
        "a": "kept: found by the question (rank 1)",
        "d": "kept: found by sub-question 1 (rank 1 there), found by sub-question 2 (rank 1 there)",
    }
    assert {c.drop for c in selection.dropped} == {Drop.NOT_EVIDENCE}
    ranks = sorted(c.rank for c in (*selection.kept, *selection.dropped))
    assert ranks == [1, 2, 3, 4]


def test_evidence_is_what_the_filter_keeps_at_most_two_and_the_names_own_first():
    close = ranking((A, 1.0), (B, 0.99), (C, 0.98), (D, 0.0))
    assert [hit.passage for _, hit in kept_by(RankedSubQuestion(sub(), close), FilteringConfig())] == [A, B]
    own = kept_by(RankedSubQuestion(sub(name="Title d"), close), FilteringConfig())
    assert [(rank, hit.passage.passage_id) for rank, hit in own] == [(4, "d"), (1, "a")]
    assert len(kept_by(RankedSubQuestion(sub(), close), FilteringConfig(top_k=1))) == 1
    assert kept_by(RankedSubQuestion(sub(), ranking()), FilteringConfig()) == ()


def test_empty_rankings_merge_to_what_there_is():
    assert merge(ranking(), ()).hits == ()
    assert gather(ranking(), [RankedSubQuestion(sub(), ranking((D, 1.0)))], FilteringConfig()).passages == (D,)
