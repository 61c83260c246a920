"""What an answer sentence may cite: kept, corrected, removed, added, missing; and nothing that was written is lost.

By raw probabilities, as in records from before there were verdicts, but where a test says that verdicts judge.
"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragqa.scoring.repass.attribution import check_citations, citation_flag, marks
from ragqa.types.scores import CitationStatus, NliProbabilities, PassageSupport, ScoringMode
from tests.scoring.repass.test_explanation import explained, scored
from tests.support.fakes import answer, passage
from tests.support.helpers import ANSWER, PASSAGES
from tests.support.verdict_cases import SOURCES, before_rules, scored_by_hand

SENTENCE = "A firm must act at once."  # entailed by passage 1 alone, with .9; .1 everywhere else


def checked(citations, passages=PASSAGES, sentence=SENTENCE, **changes):
    return explained(answer(sentence, [citations]), passages, **changes)[1].citations[0]


@pytest.mark.parametrize(
    ("written", "status", "verified"),
    [
        ((1,), CitationStatus.CONFIRMED, (1,)),
        ((2,), CitationStatus.CORRECTED, (1,)),
        ((2, 3), CitationStatus.CORRECTED, (1,)),
        ((1, 2), CitationStatus.CORRECTED, (1,)),  # the part that agrees stays
        ((), CitationStatus.ADDED, (1,)),
    ],
)
def test_a_sentence_that_one_passage_entails_ends_up_citing_it(written, status, verified):
    check = checked(written)
    assert (check.status, check.written, check.verified) == (status, written, verified)


@pytest.mark.parametrize(("written", "status"), [((2,), CitationStatus.REMOVED), ((), CitationStatus.MISSING)])
def test_a_sentence_that_no_passage_entails_ends_up_citing_nothing(written, status):
    check = checked(written, sentence="The moon is green.")
    assert (check.status, check.written, check.verified) == (status, written, ())


def both_entail():
    return {("It must not sleep.", SENTENCE): NliProbabilities(0.1, 0.6, 0.3)}


def test_every_passage_that_entails_it_is_cited_where_nothing_written_agrees():
    assert checked((), table=both_entail()).verified == (1, 2)
    assert checked((3,), table=both_entail()).verified == (1, 2)


def test_what_was_written_and_agrees_is_not_added_to():
    check = checked((2,), table=both_entail())
    assert (check.status, check.verified) == (CitationStatus.CONFIRMED, (2,))
    assert check.support == (PassageSupport(1, 0.9, quoted=True), PassageSupport(2, 0.6))  # but the other is named


def test_the_threshold_itself_is_enough():
    for entailment, status in ((0.4999, CitationStatus.REMOVED), (0.5, CitationStatus.CONFIRMED)):
        table = {(SENTENCE, "Firms act."): NliProbabilities(0.25, entailment, 0.75 - entailment)}
        assert checked((1,), sentence="Firms act.", table=table).status is status


def test_a_quotation_is_entailed_by_what_it_quotes_whatever_the_model_says():
    table = {(SENTENCE, "A firm  must act at once!"): NliProbabilities(0.25, 0.25, 0.5)}
    check = checked((1,), sentence="A firm  must act at once!", table=table)
    assert (check.status, check.support) == (CitationStatus.CONFIRMED, (PassageSupport(1, 0.25, quoted=True),))
    part = checked((1,), sentence="Act at once.")  # a part of a sentence may lack its condition
    assert part.status is CitationStatus.REMOVED


def test_an_item_of_a_very_long_list_is_a_quotation_with_its_lead_in():
    items = [f"({mark}) act {'at once ' * 60}in case {mark}" for mark in "abc"]
    long = (passage("9:1", f"A firm must: {'; '.join(items)}."),)
    item = items[1].removeprefix("(b) ")
    assert checked((1,), long, f"A firm must […] {item}").status is CitationStatus.CONFIRMED
    assert checked((1,), long, item).status is CitationStatus.REMOVED


def test_without_passages_or_sentences_there_is_nothing_to_cite():
    assert checked((2,), passages=()).status is CitationStatus.REMOVED
    assert checked((), passages=()).status is CitationStatus.MISSING
    assert explained(answer(""))[1].citations == ()


def test_in_script_mode_a_sentence_that_runs_on_belongs_to_every_passage_it_stands_in():
    heads = (passage("a", "Duties of firms"), passage("b", ""), passage("c", "must be met. The end."))
    heads = (heads[0], replace(heads[1], text=""), heads[2])
    running = scored(answer("Firms have duties.", [(3,)]), heads).script.premises[0]
    assert (running.passage_index, running.text) == (0, "Duties of firms  must be met.")
    table = {(running.text, "Firms have duties."): NliProbabilities(0.05, 0.9, 0.05)}
    for cited in ((1,), (3,)):
        check = checked(cited, heads, "Firms have duties.", mode=ScoringMode.SCRIPT, table=table)
        assert check.status is CitationStatus.CONFIRMED


def test_a_breakdown_carries_its_checks_and_the_answer_keeps_what_was_written():
    both = scored()
    for evaluation in (both.paper, both.script):
        assert evaluation.citations == check_citations(evaluation, PASSAGES)
        assert [check.status for check in evaluation.citations] == [CitationStatus.CONFIRMED, CitationStatus.REMOVED]
        assert [score.sentence.citations for score in evaluation.sentences] == [(1,), (2,)]
    assert ANSWER.sentences[1].citations == (2,)


def test_raw_entailment_says_which_passages_may_be_cited_whatever_the_verdict():
    evaluation = scored_by_hand().paper
    found = [(check.status, check.written, check.verified) for check in evaluation.citations]
    assert found == [
        (CitationStatus.CONFIRMED, (1,), (1,)),
        (CitationStatus.CORRECTED, (3,), (2,)),  # [3] says otherwise
        (CitationStatus.REMOVED, (1,), ()),
        (CitationStatus.CORRECTED, (2,), (4,)),  # a source sentence in [4] entails it with .7
        (CitationStatus.MISSING, (), ()),
    ]
    assert evaluation.citations[0].support == (PassageSupport(1, 0.9, quoted=True),)  # raw
    assert evaluation.citations[3].support == (PassageSupport(2, 0.1), PassageSupport(4, 0.7))
    assert check_citations(before_rules(evaluation), SOURCES) == evaluation.citations


def test_every_passage_of_a_supporting_source_sentence_may_be_cited():
    heads = (passage("a", "Duties of firms"), passage("b", "must be met. The end."))
    evaluation = scored(answer("Firms have duties.", [(2,)]), heads).script
    matrix = tuple((0.9 if n == 0 else 0.1,) for n in range(len(evaluation.premises)))
    evaluation = replace(evaluation, entailment_matrix=matrix)
    check = check_citations(evaluation, heads)[0]
    assert (check.status, check.verified) == (CitationStatus.CONFIRMED, (2,))
    uncited = replace(evaluation.sentences[0], sentence=replace(evaluation.sentences[0].sentence, citations=()))
    assert check_citations(replace(evaluation, sentences=(uncited,)), heads)[0].verified == (1, 2)


numbers = st.sets(st.integers(1, 3)).map(lambda found: tuple(sorted(found)))
probabilities = st.sampled_from([0.0, 0.3, 0.5, 0.9])


@given(numbers, st.lists(probabilities, min_size=5, max_size=5))
def test_what_is_verified_entails_the_sentence_and_what_agrees_is_never_dropped(written, entailments):
    evaluation = scored(answer("Nothing of the kind is said.", [written])).paper
    assert len(evaluation.premises) == 5
    evaluation = replace(before_rules(evaluation), entailment_matrix=tuple((value,) for value in entailments))
    check = check_citations(evaluation, PASSAGES)[0]
    best = {
        n: max(entailments[i] for i, p in enumerate(evaluation.premises) if p.passage_index == n - 1) for n in (1, 2, 3)
    }
    entailing = {n for n, value in best.items() if value >= 0.5}
    assert set(check.verified) <= entailing
    assert set(written) & entailing <= set(check.verified)
    assert bool(check.verified) == bool(entailing)
    assert check.written == written
    assert {support.number: support.entailment for support in check.support} == {
        n: best[n] for n in entailing | set(written)
    }
    assert bool(citation_flag(check)) == (check.status is not CitationStatus.CONFIRMED)


def test_marks_are_written_as_a_model_writes_them():
    assert (marks((1, 3)), marks(())) == ("[1][3]", "")
