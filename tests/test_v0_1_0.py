"""Files that ragqa 0.1.0 wrote (its commit 64e22db, on the fakes of the tests) still open and say the same."""

import json
import shutil
from pathlib import Path

import pytest

from ragqa.filtering import select
from ragqa.fusion import fuse, rerank
from ragqa.records.record import AnswerRecord
from ragqa.records.store import RecordStore
from ragqa.records.view import from_record
from ragqa.settings.preset_files import find_preset, presets_in, read_preset
from ragqa.types.events.generation import BestSoFar, SubQuestionsAsked

LATER = {
    "verdicts",
    "obligation_verdicts",
    "verdict_rules",
    "verdict_model",
    "answer_model",
    "local_model",
    "quote_anyway",
    "follow_up",
    "place",
    "effective",
    "until",
    "given",
    "is_sentence",
    "answer_relevance",
    "notes",
    "feedback",
    "items",
    "in_force",
    "not_found",
    "choices",
    "second",
}  # fields that 0.1.0 did not know
OLD = Path(__file__).parent / "fixtures" / "v0.1.0"


def without_later(found):
    """What 0.1.0 wrote: it knew one way to filter and one to judge, and named neither."""
    only = {("method", "limits"), ("verifier", "model")}
    first = {
        name: value for name, value in found.items() if isinstance(value, (dict, list)) or (name, value) not in only
    }
    return {name: value for name, value in first.items() if name not in LATER or value}


@pytest.mark.parametrize("name", ["record-1.json", "record-2.json"])
def test_a_record_reads_back_to_what_it_says(name):
    text = (OLD / name).read_text(encoding="utf-8")
    record = AnswerRecord.from_json(text)
    assert record.ragqa_version == "0.1.0"
    now = text.replace('"status": "kept"', '"status": "confirmed"').replace('"status":"kept"', '"status":"confirmed"')
    # a citation that holds has another word now; fields of later versions are empty
    assert json.loads(record.to_json(), object_hook=without_later) == json.loads(now)
    assert record.scored is not None
    assert from_record(record).question == record.question.text


def test_its_selection_can_be_repeated():
    record = AnswerRecord.from_json((OLD / "record-1.json").read_text(encoding="utf-8"))
    again = rerank(fuse(record.ranked, record.fusion), dict(record.reranker_scores), record.reranking)
    kept = select(again, record.filtering).kept
    assert [one.passage.passage_id for one in kept] == [one.passage_id for one in record.kept] == ["2:3.4"]
    fanned = AnswerRecord.from_json((OLD / "record-2.json").read_text(encoding="utf-8"))
    assert {type(event) for event in fanned.trace} >= {SubQuestionsAsked, BestSoFar}
    view = from_record(fanned)
    assert view.selection is not None
    assert view.selection.passages == fanned.kept


def test_a_store_of_records_opens(tmp_path):
    file = shutil.copy(OLD / "records.sqlite3", tmp_path)
    store = RecordStore(Path(file))
    summaries = store.list()
    assert [(one.status, one.generator) for one in summaries] == [("scored", "fan-out, LLM"), ("scored", "fake")]
    assert all(store.load(one.record_id).question.text == one.question for one in summaries)


def test_presets_open(tmp_path):
    preset = read_preset(OLD / "preset.json")
    assert (preset.name, preset.index, preset.retrieval.top_k) == ("my tuned one", "rulebook", 50)
    assert preset.fusion.weights == {"bm25": 0.4, "dense": 0.2, "document": 0.2, "dense:other/encoder": 0.2}
    assert (preset.reranking.model, preset.reranking.depth, preset.filtering.top_k) == ("ranker-adgm", 40, 8)
    for name in ("preset.json", "preset-plain.json"):
        shutil.copy(OLD / name, tmp_path)
    found, problems = presets_in(tmp_path)
    assert (len(found), problems) == (2, ())
    assert find_preset("my plain one", tmp_path).reranking.model == ""
    assert find_preset("learned order", tmp_path).name == "learning to rank"
