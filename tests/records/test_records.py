import json
import threading
from dataclasses import replace

import pytest
from pydantic import TypeAdapter

from ragqa.errors import RecordError
from ragqa.filtering import select
from ragqa.fusion import fuse
from ragqa.records.database import engine_of
from ragqa.records.record import AnswerRecord, new_record_id
from ragqa.records.recorder import words_per_second
from ragqa.records.store import RecordStore
from ragqa.settings.config import Config, FilteringConfig, FusionConfig
from ragqa.types import Question
from ragqa.types.events.pipeline import Answered, Fused, Retrieved, Selected
from ragqa.types.events.scoring import Scored
from ragqa.types.scores import CitationCheck, CitationStatus
from tests.support.helpers import make_pipeline


@pytest.fixture
def store(place):
    return RecordStore(place)


def finished(store, **changes):
    pipeline = make_pipeline(records=store, **changes)
    events = list(pipeline.run(Question("Who must act?")))
    return events, store.load(events[-1].record_id)


def test_a_record_reads_back_equal_from_disk_and_from_json(store):
    _, record = finished(store)
    assert AnswerRecord.from_json(record.to_json()) == record
    assert record.status == "scored"
    assert set(record.seconds) == {"retrieval", "fusion", "filtering", "generation", "scoring"}


def test_a_record_repeats_its_selection_from_its_own_rankings(store):
    events, record = finished(store)
    again = select(fuse(record.ranked, record.fusion), record.filtering)
    assert again == next(event.selection for event in events if isinstance(event, Selected))
    assert tuple(passage.passage_id for passage in record.kept) == tuple(p.passage_id for p in again.passages)


def test_the_answer_is_on_disk_before_it_is_shown_and_scored(store):
    for event in make_pipeline(records=store).run(Question("Who must act?")):
        if isinstance(event, (Retrieved, Fused, Selected)):
            assert store.list() == ()
        if isinstance(event, Answered):
            assert [summary.status for summary in store.list()] == ["answered"]
        if isinstance(event, Scored):
            assert [summary.status for summary in store.list()] == ["scored"]


def test_the_list_is_newest_first_and_limited(store):
    _, record = finished(store)
    for day in ("01", "03", "02"):
        store.save(replace(record, record_id=f"r{day}", created_at=f"2026-01-{day}T00:00:00+00:00"))
    assert [summary.record_id for summary in store.list(limit=3)] == [record.record_id, "r03", "r02"]
    assert store.list()[0].composite == record.scored.paper.repass.composite


def test_an_altered_record_is_refused(store):
    _, record = finished(store)
    with engine_of(store.place).transaction() as execute:
        execute("UPDATE records SET body = replace(body, 'must', 'may')")
    with pytest.raises(RecordError, match="was altered.*ask the question again"):
        store.load(record.record_id)


def test_an_unknown_record_names_the_command_that_lists(store):
    with pytest.raises(RecordError, match="no record 'nope'.*ragqa records list"):
        store.load("nope")


@pytest.mark.parametrize("text", ["", "[]", "{", '{"record_id": 3}', "null"])
def test_json_that_is_no_record_is_refused(text):
    with pytest.raises(RecordError, match="not a ragqa record"):
        AnswerRecord.from_json(text)


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RecordError, match="set RAGQA_HOME"):
        RecordStore(tmp_path / "file" / "records.sqlite3").list()


def test_many_threads_save_at_once(store):
    _, record = finished(store)
    threads = [
        threading.Thread(target=store.save, args=(replace(record, record_id=f"r{number}"),)) for number in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.list()) == 17


def test_the_servers_address_is_kept_without_its_credentials(store):
    config = Config(filtering=FilteringConfig())
    config = replace(config, generation=replace(config.generation, base_url="https://me:pass@host:1/v1?key=secret"))
    _, record = finished(store, config=config)
    assert record.generation.base_url == "https://host:1/v1"
    assert "secret" not in record.to_json()
    assert json.loads(record.to_json())["record_id"] == record.record_id


def test_record_ids_differ_and_sort_by_time():
    ids = {new_record_id() for _ in range(200)}
    assert len(ids) == 200
    assert all(len(record_id.split("-")) == 3 for record_id in ids)


def of_version_2(store):
    """A record of today's settings as version 2 wrote it, and how it must read."""
    _, today = finished(store, config=Config(fusion=FusionConfig.of(bm25=3, dense=1)))
    old = json.loads(today.to_json())
    old["schema_version"] = 2
    old["fusion"] = {"method": "wsum", "bm25_weight": 0.75}
    return old, today


def test_a_record_of_the_second_version_reads_as_one_of_today(store):
    old, today = of_version_2(store)
    assert AnswerRecord.from_json(json.dumps(old)) == today


def test_a_record_of_the_first_version_reads_as_one_of_today(store):
    old, today = of_version_2(store)
    old["schema_version"] = 1
    old["models"]["nli"] = old["models"].pop("entailment")
    del old["models"]["coverage"]
    old["scoring"]["nli_model"] = old["scoring"].pop("entailment_model")
    for name in ("coverage_model", "coverage_input", "sentence_splitter", "precision"):
        del old["scoring"][name]
    for evaluation in old["scored"].values():
        evaluation["nli_model"] = evaluation.pop("entailment_model")
        del evaluation["coverage_model"]
    assert AnswerRecord.from_json(json.dumps(old)) == today


@pytest.mark.parametrize("text", ["{", "[]", '{"schema_version": 1}', '{"schema_version": 1, "scoring": 3}'])
def test_what_is_no_record_is_said_to_be_none(text):
    with pytest.raises(RecordError, match="not a ragqa record"):
        AnswerRecord.from_json(text)


def test_a_citation_check_of_version_0_1_0_opens_as_confirmed():
    adapter = TypeAdapter(CitationCheck)
    fields = {
        **json.loads(adapter.dump_json(CitationCheck(0, CitationStatus.CONFIRMED, (1,), (1,), ()))),
        "status": "kept",
    }
    assert adapter.validate_json(json.dumps(fields), strict=True).status is CitationStatus.CONFIRMED


def test_words_a_second_count_from_the_first_words():
    seconds = {"filtering": 9.0, "first words": 1.0, "generation": 3.0}
    assert words_per_second("one two three four", seconds) == 2.0
    assert words_per_second("one two", {"generation": 3.0}) is None  # no language model wrote it, or in no stream
