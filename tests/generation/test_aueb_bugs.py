"""Four faults of AUEB's released code (nlpaueb/verify-refine-repass), each with a test that ours does not have it."""

import pytest

from ragqa.filtering import select
from ragqa.fusion import fuse
from ragqa.generation.vrr import VrrGenerator
from ragqa.settings.config import FilteringConfig, FusionConfig
from ragqa.types import Question, Ranking, ScoredPassage
from ragqa.types.events.generation import BestSoFar, CandidateScored, SentencesRemoved
from tests.support.fakes import passage
from tests.support.openai_server import answer
from tests.support.scripted import PASSAGES, RECORDS, REPORTS, Session, Told, vrr
from tests.support.streams import drain


def test_a_pool_larger_than_what_is_kept_can_be_indexed_to_its_end():
    """Theirs fuses the top 10 only and then reads 50 of them for reranking: IndexError at the eleventh."""
    pool, kept = 50, 10
    ranked = [
        Ranking.of(name, [ScoredPassage(passage(f"1:{n}"), float(step * n)) for n in range(60)])
        for name, step in (("bm25", 1), ("dense", 2), ("context", 3))
    ]
    fused = fuse(ranked, FusionConfig())
    assert [fused.hits[index].passage.passage_id for index in range(pool)] == [f"1:{59 - n}" for n in range(pool)]
    selection = select(fused, FilteringConfig(threshold=0.0, max_drop=1.0, top_k=kept))
    assert (len(selection.kept), len(selection.dropped)) == (kept, 60 - kept)


@pytest.mark.long
def test_the_best_of_the_candidates_is_itself_though_others_of_the_pool_are_missing():
    """The same fault in verification: positions among the scored ones are not positions among those asked for."""
    told = {"Weak.": Told(0.2), "Strong.": Told(0.9), "Middling.": Told(0.5)}
    done = vrr(answer(""), answer("Weak [1]."), answer(""), answer("Strong [1]."), answer("Middling [1]."), told=told,
               candidates=5, rounds=0)  # fmt: skip
    assert [event.number for event in done.of(CandidateScored)] == [2, 4, 5]
    assert done.of(BestSoFar)[-1].step == "candidate 4"
    assert done.answer.text == "Strong."


def test_each_text_is_found_under_the_key_it_was_stored_with():
    """Theirs stores chunks as ``passage_chunks`` and reads ``psg_chunks``. Here: same number, other document."""
    twins = [
        passage("1:4.2", RECORDS, title="First", number="4.2"),
        passage("2:4.2", REPORTS, title="Second", number="4.2"),
        passage("3:4.2", "The sky is blue.", title="Third", number="4.2"),
    ]
    done = vrr(answer("Yes [1]."), passages=twins, candidates=1, rounds=0)
    prompt = done.requests[0].prompt
    for number, (title, text) in enumerate(
        [("First", RECORDS), ("Second", REPORTS), ("Third", "The sky is blue.")], start=1
    ):
        assert f'number="{number}">\nSource: {title} | 4.2\n{text}\n</passage-' in prompt


def test_the_final_removal_is_made_for_every_question_and_for_every_sentence():
    """Theirs runs the last contradiction removal after the loop, on the loop variable: the last item only."""
    told = {
        "Keeps.": Told(0.8, 0.0, ((RECORDS, 0.9),)),
        "Files.": Told(0.9, 0.1, ((REPORTS, 0.9),)),
        "Wrong once.": Told(0.0, 0.9),
        "Wrong twice.": Told(0.0, 0.8),
    }
    script = [answer("Keeps [1]."), answer("Wrong once [1]. Keeps [1]. Files [2]. Wrong twice [2].")] * 2
    with Session(VrrGenerator, script, told, candidates=1, rounds=1) as session:
        for text in ("First?", "Second?"):
            events, found = drain(session.generator.stream(Question(text), PASSAGES))
            last = [event for event in events if isinstance(event, SentencesRemoved)][-1]
            assert last.round == 2
            assert [sentence.text for sentence in last.removed] == ["Wrong once.", "Wrong twice."]
            assert found.text == "Keeps. Files."


def test_the_mean_contradiction_is_never_older_than_the_answer_it_judges():
    """Theirs averages once before a round's corrections and judges the corrected answers by that average."""
    told = {
        "One.": Told(0.5, 0.2, ((RECORDS, 0.9),)),
        "Other.": Told(0.1, 0.6),
        "Two.": Told(0.5, 0.46, ((REPORTS, 0.9),)),
    }
    done = vrr(answer("One [1]."), answer("Other [2]."), answer("One [1]. Two [2]."), told=told, candidates=2, rounds=1)
    first, last = done.of(SentencesRemoved)
    assert first.mean == pytest.approx((0.2 + 0.6) / 2)  # by this one "Two." (.46) would go
    assert last.mean == pytest.approx(((0.2 + 0.46) / 2 + 0.6) / 2)
    assert last.removed == ()
    assert done.answer.text == "One. Two."
