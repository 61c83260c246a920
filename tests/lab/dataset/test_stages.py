"""The files of the stages: made once, taken as they are when edited, made again when what is before them changes."""

import pytest

from ragqa.errors import ConfigError, CorpusError, RecordError
from ragqa.infra.journal import held
from ragqa.lab.dataset import benchmark
from ragqa.lab.dataset.selecting import Plan
from ragqa.lab.dataset.stages import GROUPS, STAGES, Stages, as_lines, rows_in, topics_in
from ragqa.lab.dataset.writing import written
from ragqa.settings.config import GenerationConfig
from ragqa.settings.paths import Paths


def made(stages, made_from, text):
    return stages.made(GROUPS, {"of": made_from}, lambda: text)


def test_a_stage_is_made_once_and_again_when_what_it_is_of_changes(tmp_path):
    stages = Stages(tmp_path)
    assert made(stages, 1, "one\n") == "one\n"
    assert made(stages, 1, "other\n") == "one\n"
    assert made(stages, 2, "two\n") == "two\n"


def test_an_edited_stage_stands_and_is_never_overwritten(tmp_path):
    stages = Stages(tmp_path)
    made(stages, 1, "one\n")
    (tmp_path / GROUPS).write_text("mine\n")
    assert stages.is_edited(GROUPS)
    assert made(stages, 1, "one\n") == "mine\n"
    with pytest.raises(ConfigError, match="was edited, and what it was made from"):
        made(stages, 2, "two\n")
    assert (tmp_path / GROUPS).read_text() == "mine\n"
    (tmp_path / GROUPS).unlink()
    assert made(stages, 2, "two\n") == "two\n"


@pytest.mark.parametrize("step", [1, 2])
def test_a_process_that_dies_while_it_writes_leaves_nothing_that_looks_edited(tmp_path, step, monkeypatch):
    import ragqa.lab.dataset.stages as module

    stages = Stages(tmp_path)
    made(stages, 1, "one\n")
    whole, calls = module.write_whole, []

    def dies(path, pieces):
        calls.append(path)
        if len(calls) == step:
            raise KeyboardInterrupt
        whole(path, pieces)

    monkeypatch.setattr(module, "write_whole", dies)
    with pytest.raises(KeyboardInterrupt):
        made(stages, 2, "two\n")
    monkeypatch.undo()
    assert not Stages(tmp_path).is_edited(GROUPS)
    assert made(Stages(tmp_path), 2, "two\n") == "two\n"


def test_a_damaged_record_of_the_stages_counts_as_edited(tmp_path):
    stages = Stages(tmp_path)
    made(stages, 1, "one\n")
    (tmp_path / STAGES).write_text("{")
    assert stages.is_edited(GROUPS)


NESTED = "[" * 100_000


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"id": "a"}', '{"id": 3, "kind": "x"}', '{"id": "b", "kind": "x"}', NESTED]
)
def test_lines_that_are_none_are_named(line):
    text = as_lines([{"id": "b", "kind": "x"}]) + line + "\n"
    with pytest.raises(CorpusError, match="mine, line 2"):
        rows_in(text, "mine", ("id", "kind"))


@pytest.mark.parametrize("text", ["[]", "{", '{"a": "b"}', '{"a": []}', '{"a": [" "]}', NESTED])
def test_topics_are_lists_of_key_terms(text):
    with pytest.raises(CorpusError, match="Topic"):
        topics_in(text, "topics.json")
    assert topics_in('{"AML": ["money laundering"]}', "topics.json") == {"AML": ["money laundering"]}


def test_a_kind_or_person_that_is_none_in_an_edited_stage_is_named():
    row = {"id": "2:1", "document": "2", "section": "", "kinds": ["obligations"], "text": "A firm must keep records."}
    with pytest.raises(CorpusError, match="1-passages.jsonl.*obligation, .*found 'obligations' of 2:1; correct"):
        Plan([row], {}, 1, lambda row: True, [False])
    group = {"kind": "obligation", "persona": "lawyer", "form": "question"}
    with pytest.raises(CorpusError, match="3-groups.jsonl.*professional, newcomer, auditor.*'lawyer'.*correct"):
        written(group, [], GenerationConfig(base_url="http://127.0.0.1:1/v1", model="m"))


def test_a_restart_that_cannot_begin_leaves_every_stage(tmp_path, monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "RAGQA_LOCAL_MODEL"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / GROUPS).write_text("mine\n")
    settings = {"folder": str(tmp_path), "restart": True, "index": "rulebook", "writer": "llm"}
    with pytest.raises(ConfigError, match="expected a language model"):
        list(benchmark.load(settings, Paths.from_env()))
    assert (tmp_path / GROUPS).read_text() == "mine\n"
    with held(tmp_path, "writing"), pytest.raises(RecordError, match="another process is writing into"):
        list(benchmark.load(settings | {"writer": "rules"}, Paths.from_env()))
    assert (tmp_path / GROUPS).read_text() == "mine\n"
