from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragqa.corpus.numbered import asked_by_number
from ragqa.errors import GenerationError, QuestionError, ScoringError
from ragqa.fusion import by_number
from ragqa.pipeline import clean_question
from ragqa.plugins import registry
from ragqa.records import recorder
from ragqa.records.store import RecordStore
from ragqa.records.view import View, advance, from_record, reselect, shown
from ragqa.records.words import headline
from ragqa.scoring.repass.verifier import RepassVerifier
from ragqa.settings.config import Config, FilteringConfig, GenerationConfig, RetrievalConfig
from ragqa.types import Drop, FollowUp, Question, Ranking, ScoredPassage, Selection
from ragqa.types.events.generation import Token
from ragqa.types.events.pipeline import Answered, Fused, Recorded, Retrieved, Selected
from ragqa.types.events.scoring import ObligationScored, RelevanceMeasured, Scored, SentenceScored
from ragqa.types.scores import Verdict
from ragqa.ui.state.stale import stale
from tests.support.fakes import FakeGenerator, FakeRetriever, answer, passage
from tests.support.helpers import ANSWER, make_pipeline


def run(**changes):
    return list(make_pipeline(**changes).run(Question("  Who must act?\n")))


def test_events_come_in_the_order_of_the_work():
    kinds = [type(event) for event in run()]
    assert kinds[:3] == [Retrieved, Fused, Selected]
    assert kinds[-2:] == [Scored, Recorded]
    middle = [kind for kind in kinds[3:-2] if kind is not Token]
    assert middle == [Answered, RelevanceMeasured, SentenceScored, SentenceScored, ObligationScored, ObligationScored]


def test_every_stage_gets_what_the_one_before_gave():
    generator = FakeGenerator(ANSWER)
    retriever = FakeRetriever(make_pipeline().retrievers[0].result)
    events = run(generator=generator, retrievers=(retriever,))
    assert retriever.calls == [("Who must act?", 100)]
    question, passages = generator.calls[0]
    selection = next(event.selection for event in events if isinstance(event, Selected))
    assert question.text == "Who must act?"
    assert passages == selection.passages
    assert "".join(event.text for event in events if isinstance(event, Token)).split() == ANSWER.raw.split()


def test_the_scores_are_those_of_the_answer():
    scored = next(event for event in run() if isinstance(event, Scored))
    first, second = scored.paper.sentences
    assert (first.verdict, second.verdict) == (Verdict.SUPPORTED, Verdict.UNSUPPORTED)
    assert first.entailment_premise.text == "A firm must act at once."
    # two sentences: .9 (identical to a premise) and .1; two obligations, one covered by its identical sentence
    assert scored.paper.repass.entailment == pytest.approx((0.9 + 0.1) / 2)
    assert scored.paper.repass.obligation_coverage == pytest.approx(1 / 2)


def test_a_number_that_two_documents_have_is_a_choice():
    rules = tuple(passage(f"{name}:1.1", title=f"{name} Rules", number="1.1") for name in ("Lamp", "Oil"))
    found = Ranking.of("bm25", [ScoredPassage(rule, 2.0 - n) for n, rule in enumerate(rules)])
    index = SimpleNamespace(
        **vars(make_pipeline().index) | {"passages": rules, "asked_by_number": lambda *_: rules[:1]}
    )
    view = View(asked := Question("What does rule 1.1 say?"), Config())
    for event in make_pipeline(index=index, retrievers=(FakeRetriever(found),)).run(asked):
        view = advance(view, event)
    assert view.answer.choices == ("Lamp Rules 1.1", "Oil Rules 1.1")
    assert headline(view, shown(view, "paper")) == ("2 documents have this number: choose one", "partly")
    words = "1.1 has no (c). 2 documents have that rule: choose one"
    view = replace(view, asked=Question("What does rule 1.1(c) say?"))
    assert headline(view, shown(view, "paper")) == (words, "partly")


def test_of_documents_with_the_number_the_one_with_the_item_asked_for_is_shown():
    texts = {"Lamp": "Keep the lamp.", "Oil": "Keep:\n(a)\ta jug;\n(b)\toil."}
    rules = tuple(passage(f"{name}:1.1", text, document_id=name, number="1.1") for name, text in texts.items())
    found = Ranking.of("bm25", [ScoredPassage(rule, 2.0 - n) for n, rule in enumerate(rules)])
    by_number_in = {"asked_by_number": lambda asked, ranked: asked_by_number(asked, rules, ranked)}
    index = SimpleNamespace(**vars(make_pipeline().index) | {"passages": rules} | by_number_in)
    pipeline = make_pipeline(index=index, retrievers=(FakeRetriever(found),))
    for question, shown_first in (("Rule 1.1(b)", "Oil"), ("Rule 1.1(c)", "Lamp"), ("Rule 1.1", "Lamp")):
        (selected,) = (event for event in pipeline.run(Question(question)) if isinstance(event, Selected))
        assert by_number(selected.selection)[0].document_id == shown_first


def test_a_generator_that_fails_leaves_the_passages_and_no_record(tmp_path):
    store = RecordStore(tmp_path / "records.sqlite3")
    seen = []
    with pytest.raises(GenerationError, match="server is down"):
        for event in make_pipeline(
            records=store, generator=FakeGenerator(ANSWER, GenerationError("the server is down"), error_after=2)
        ).run(Question("Who?")):
            seen.append(event)
    assert [type(event) for event in seen] == [Retrieved, Fused, Selected, Token, Token]
    assert store.list() == ()


def test_a_scorer_that_fails_leaves_the_answer_and_says_so_in_its_record(tmp_path):
    store = RecordStore(tmp_path / "records.sqlite3")

    class BrokenScorer:
        def stream(self, answer, passages):
            raise ScoringError("the model broke")
            yield

    seen = []
    with pytest.raises(ScoringError):
        for event in make_pipeline(records=store, scorer=BrokenScorer()).run(Question("Who?")):
            seen.append(event)
    assert isinstance(seen[-1], RelevanceMeasured)
    (summary,) = store.list()
    record = store.load(summary.record_id)
    assert (record.status, record.error, record.answer) == ("scoring failed", "the model broke", ANSWER)


def test_nothing_retrieved_is_an_empty_selection_and_an_empty_answer():
    empty = (FakeRetriever(Ranking("bm25", ())), FakeRetriever(Ranking("dense", ())))
    events = run(retrievers=empty, generator=FakeGenerator(answer("", finish_reason="empty")))
    assert next(event.selection for event in events if isinstance(event, Selected)) == Selection((), ())
    repass = next(event for event in events if isinstance(event, Scored)).paper.repass
    assert (repass.entailment, repass.contradiction, repass.obligation_coverage) == (0.0, 0.0, 0.0)


def test_without_a_generator_a_question_ends_with_its_selection(tmp_path):
    store = RecordStore(tmp_path / "records.sqlite3")
    events = list(make_pipeline(generator=None, records=store).run(Question("What must a firm do?")))
    assert [type(event) for event in events] == [Retrieved, Fused, Selected]
    assert store.list() == ()


@pytest.mark.long
def test_the_consumers_time_is_not_counted(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(recorder, "time", SimpleNamespace(perf_counter=lambda: now[0], monotonic=lambda: now[0]))
    seconds = {}
    for event in make_pipeline().run(Question("Who?")):
        now[0] += 1000.0
        if isinstance(event, Recorded):
            seconds = event.seconds
    assert seconds
    assert sum(seconds.values()) < 1000.0


def test_filtering_settings_reach_the_selection():
    events = run(config=Config(filtering=FilteringConfig(threshold=0.0, max_drop=1.0, top_k=2)))
    assert len(next(event.selection for event in events if isinstance(event, Selected)).kept) == 2


def test_a_text_is_checked_without_a_writer_and_kept_as_a_record(tmp_path):
    store, generator = RecordStore(tmp_path / "records.sqlite3"), FakeGenerator(ANSWER)
    pipeline = make_pipeline(records=store, generator=generator)
    events = list(pipeline.check("A firm must act at once [3]. The moon is green.", "Who must act?"))
    whole, *sentences = [call[0] for call in pipeline.retrievers[0].calls]
    assert whole == "Who must act?\nA firm must act at once [3]. The moon is green."
    assert sentences == ["A firm must act at once.", "The moon is green."]
    assert generator.calls == []
    answered = next(event.answer for event in events if isinstance(event, Answered))
    assert answered.text == "A firm must act at once. The moon is green."
    assert "[3] count other passages" in answered.note
    scored = next(event for event in events if isinstance(event, Scored))
    assert [one.verdict for one in scored.paper.verdicts] == [Verdict.SUPPORTED, Verdict.UNSUPPORTED]
    kept = next(event.selection for event in events if isinstance(event, Selected)).kept
    assert "found by the text as a whole (rank 1), found by sentence 1 (rank 1 there)" in kept[0].explanation
    record = store.load(events[-1].record_id)
    assert record.question == Question("Who must act?", given="A firm must act at once [3]. The moon is green.")
    assert record.kept == tuple(one.passage for one in kept)
    assert from_record(record).selection.kept == kept
    list(make_pipeline(records=store, generator=None).check("Nothing is\nasked here."))
    assert store.list()[0].question == "Nothing is asked here."


@pytest.mark.parametrize(("text", "message"), [("", "text to check is empty"), ("x" * 30_001, "at most 30,000 can")])
def test_a_text_that_cannot_be_checked_is_refused(text, message):
    with pytest.raises(QuestionError, match=message):
        next(make_pipeline().check(text, "Who?"))


@pytest.mark.parametrize("text", ["", "  \n\t", "\x00\x07", "\ud800"])
def test_a_question_with_nothing_in_it_is_refused_before_any_work(text):
    with pytest.raises(QuestionError, match="question is empty"):
        next(make_pipeline().run(Question(text)))


def test_a_pasted_document_is_refused_with_both_numbers():
    with pytest.raises(QuestionError, match=r"102,400 characters; at most 8,000"):
        clean_question(Question("x" * 102_400))


@given(st.text(max_size=300))
@pytest.mark.long
def test_any_text_becomes_a_clean_question_or_a_clear_error(text):
    try:
        cleaned = clean_question(Question(text, "id")).text
    except QuestionError:
        return
    assert cleaned.strip() == cleaned != ""
    cleaned.encode()


class Careless:
    name, model = "careless", ""

    def __init__(self, result):
        self.result = result

    def stream(self, question, passages):
        yield Token("It must.")
        return self.result


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, "gave NoneType: its stream must return an Answer"),
        (answer("It must.", [(9,)]), r"gave a citation of passage 9 of \d"),
    ],
)
def test_a_generator_of_a_package_that_gives_no_good_answer_is_named(result, message, monkeypatch):
    monkeypatch.setattr(registry, "entry_points_of", lambda group: {"direct": None})
    pipeline = make_pipeline(generator=Careless(result))
    with pytest.raises(GenerationError, match=f"the generator 'direct' {message}"):
        list(pipeline.run(Question("What must a firm do?")))


def two_versions():
    """Rankings of a rule in two dated versions and of a rule without dates."""
    fields = {"title": "Loss Rules", "number": "1.1"}
    hits = [
        ScoredPassage(
            passage("new:1.1", "A firm must report within three days.", effective="2025-01-01", **fields), 3.0
        ),
        ScoredPassage(
            passage("old:1.1", "A firm must report within five days.", effective="2022-01-01", **fields), 2.9
        ),
        ScoredPassage(passage("any:2.1", "A firm must keep a copy.", title="Copy Rules", number="2.1"), 2.8),
    ]
    return Ranking.of("bm25", hits)


@pytest.mark.parametrize(
    ("question", "setting", "kept", "note"),
    [
        ("Who must report?", "", ["new:1.1", "old:1.1", "any:2.1"], ""),
        ("Who must report?", "2023-12-31", ["old:1.1", "any:2.1"], "Loss 1.1 (in force since 2025-01-01)."),
        ("Who must report on 31.12.2023?", "2026-01-01", ["old:1.1", "any:2.1"], "As of 2023-12-31. Left out,"),
        (
            "As of 1 March 2026, who must report?",
            "",
            ["new:1.1", "any:2.1"],
            "Loss 1.1 (in force since 2022-01-01, until 2025-01-01).",
        ),
    ],
)
def test_a_question_is_answered_as_of_its_day(tmp_path, question, setting, kept, note):
    store, generator = RecordStore(tmp_path / "records.sqlite3"), FakeGenerator(answer("A firm must.", note="By hand."))
    retriever = FakeRetriever(two_versions())
    pipeline = make_pipeline(
        records=store,
        generator=generator,
        retrievers=(retriever,),
        config=Config(filtering=FilteringConfig(in_force=setting, max_drop=1.0, threshold=0.0)),
    )
    live = View(Question(question), pipeline.config)
    for event in pipeline.run(Question(question)):
        live = advance(live, event)
    asked, passages = generator.calls[0]
    assert [one.passage_id for one in passages] == kept
    assert asked.text == retriever.calls[-1][0] == "Who must report?"
    record = store.load(store.list()[0].record_id)
    assert note in record.answer.note
    assert record.answer.note.endswith("By hand.")
    assert record.question.text == question
    stored = from_record(record)
    lower = replace(pipeline.config.filtering, top_k=9)
    for view in (live, stored):  # under other settings on the page, too
        assert reselect(view, pipeline.config.fusion, lower).passages == view.selection.passages
        assert stale(view, pipeline.config) == ()


@pytest.mark.parametrize(
    ("name", "day"), [("fan-out", "31.12.2023"), ("direct", "31.12.2023"), ("direct", "1 May 2026")]
)
def test_a_generator_that_selects_for_itself_does_so_as_of_the_day(name, day):
    filtering = FilteringConfig(threshold=0.0, max_drop=1.0)
    config = Config(generation=GenerationConfig(name, quote_anyway=True), filtering=filtering)
    pipeline = make_pipeline(config=config, retrievers=(FakeRetriever(two_versions()),))
    given = {
        "config": config.generation,
        "filtering": filtering,
        "encoder": pipeline.models.encoder,
        "obligations": pipeline.models.obligations,
        "verifier": RepassVerifier(pipeline.scorer),
    }
    generator = registry.make(registry.GENERATORS, name, **given)
    events = list(replace(pipeline, generator=generator).run(Question(f"Who must report as of {day}?")))
    (selection,) = (event.selection for event in events if isinstance(event, Selected))
    now, gone = ("old", "new") if "2023" in day else ("new", "old")
    assert {one.passage_id for one in selection.passages} == {f"{now}:1.1", "any:2.1"}
    assert [one.passage.passage_id for one in selection.dropped if one.drop is Drop.NOT_IN_FORCE] == [f"{gone}:1.1"]
    (answer,) = (event.answer for event in events if isinstance(event, Answered))
    assert ("five days" in answer.text, "three days" in answer.text) == (now == "old", now == "new")
    assert "Left out, not in force then: Loss 1.1" in answer.note


def test_a_follow_up_keeps_its_thread_without_the_day_that_its_rewriting_names():
    retriever = FakeRetriever(two_versions())
    found = FollowUp("r", "And on 31.12.2023?", "Who must report on 31.12.2023?", thread="Who must pay?")
    list(make_pipeline(retrievers=(retriever,)).run(Question(found.rewritten, follow_up=found)))
    assert retriever.calls[-1][0] == "Who must report?\nWho must report?\nWho must pay?"


def test_a_day_that_does_not_exist_is_refused_where_passages_have_dates():
    dated = make_pipeline(retrievers=(FakeRetriever(two_versions()),))
    with pytest.raises(QuestionError, match="expected a day such as 1 March 2024 .* found '31 February 2024'; correct"):
        next(iter(dated.run(Question("Who must report as of 31 February 2024?"))))
    retriever = FakeRetriever(make_pipeline().retrievers[0].result)
    list(make_pipeline(retrievers=(retriever,)).run(Question("Who must act as of 31 February 2024?")))
    assert retriever.calls[-1][0] == "Who must act as of 31 February 2024?"


def test_a_question_that_names_documents_is_searched_in_these_alone():
    generator, retriever = FakeGenerator(answer("A firm must.")), FakeRetriever(two_versions())
    pipeline = make_pipeline(
        generator=generator,
        retrievers=(retriever,),
        config=Config(filtering=FilteringConfig(max_drop=1.0, threshold=0.0)),
    )
    pipeline.index.documents_named = lambda question: {"COPY": frozenset({"any"})} if "COPY" in question else {}
    events = list(pipeline.run(Question("Who must act under COPY?")))
    assert [one.passage_id for one in generator.calls[0][1]] == ["any:2.1"]
    answered = next(event.answer for event in events if isinstance(event, Answered))
    assert answered.note == "Searched only in what the question names: Copy."
    assert [hit.passage.passage_id for hit in pipeline.search("Who must act under COPY?").hits] == ["any:2.1"]
    assert retriever.calls[-1][0] == "Who must act under ?"
    assert len(pipeline.search("Who must act?").hits) == 3


def test_a_named_document_is_found_far_down_in_the_rankings():
    hits = [ScoredPassage(passage(f"{n}:1", f"Rule {n}."), 1.0 / n) for n in range(1, 1_202)]
    config = Config(retrieval=RetrievalConfig(top_k=100))
    pipeline = make_pipeline(retrievers=(FakeRetriever(Ranking("bm25", tuple(hits))),), config=config)
    pipeline.index.documents_named = lambda _: {"LAST": frozenset({"1201"})}
    assert [hit.passage.passage_id for hit in pipeline.search("What does LAST say?").hits] == ["1201:1"]
