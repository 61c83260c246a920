"""The one engine that runs every benchmark: what is kept, restored, tried again, stopped, and refused."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import ragqa
from ragqa.cli.benchmarks import further_command
from ragqa.errors import ConfigError, CorpusError, GenerationError, RecordError
from ragqa.evaluation.benchmark import Command, Item, Option, Status
from ragqa.evaluation.catalogue import benchmark_of, benchmarks, demo_files
from ragqa.evaluation.report import Report
from ragqa.evaluation.run import MAX_FAILURES_IN_A_ROW, folder_of, run
from ragqa.generation.llm.reply_cache import reply_cache
from ragqa.settings.paths import Paths
from ragqa.types import Question
from tests.support.toy_benchmark import World, toy


def steps_of(world, folder, *, given=None, restart=False, stop=None, **changes):
    benchmark = toy(world, **changes)
    settings = benchmark.settings(**(given or {}))
    return list(run(benchmark, settings, folder, Paths(folder.parent), restart=restart, stop=stop))


def test_phases_items_and_files_come_in_order(tmp_path):
    world = World()
    steps = steps_of(world, tmp_path / "run")
    assert steps[0].phase == "Counting"
    ended = [step.outcome.item.number for step in steps if step.outcome]
    assert ended == [1, 2, 3, 4]
    last = steps[-1]
    assert (last.phase, last.done, last.total) == ("Done", 4, 4)
    assert last.report.data == {"sum": 1 + 4 + 9 + 16}
    assert [file.name for file in last.report.files] == ["sum.txt", "report.json"]
    assert (tmp_path / "run" / "sum.txt").read_text() == "30\n"
    assert [row.values["score"] for row in last.rows] == [1, 4, 9, 16]
    assert last.report.figures[0].text == "30"


def test_a_second_run_restores_and_does_nothing_again(tmp_path):
    steps_of(World(), tmp_path / "run")
    world = World()
    steps = steps_of(world, tmp_path / "run")
    assert (world.solved, world.scored) == ([], [])
    assert all(row.restored for row in steps[-1].rows)
    assert "4 are done already, 0 are left" in next(step.resumed for step in steps if step.resumed)


def test_the_limit_asks_fewer_and_a_longer_run_continues(tmp_path):
    steps_of(World(), tmp_path / "run", given={"limit": 2})
    world = World()
    last = steps_of(world, tmp_path / "run")[-1]
    assert world.solved == [3, 4]
    assert [row.restored for row in last.rows] == [True, True, False, False]


def test_what_decides_only_a_score_is_scored_again_and_not_solved_again(tmp_path):
    steps_of(World(), tmp_path / "run")
    world = World(scale=10)
    last = steps_of(world, tmp_path / "run")[-1]
    assert (world.solved, world.scored) == ([], [1, 2, 3, 4])
    assert last.report.data["sum"] == 300
    back = World()
    assert steps_of(back, tmp_path / "run")[-1].report.data["sum"] == 30


def test_a_score_that_lacks_a_part_counts_and_is_made_again_by_the_next_run(tmp_path):
    benchmark, world = toy(World()), World()

    def lacking(task, item, solution):
        return {**benchmark.score(task, item, solution), "again": item.number == 2}

    last = steps_of(world, tmp_path / "run", score=lacking)[-1]
    assert last.report.data["sum"] == 30
    assert all(outcome.status is Status.SCORED for outcome in last.outcomes)
    world = World()
    last = steps_of(world, tmp_path / "run")[-1]
    assert (world.solved, world.scored) == ([], [2])
    assert last.report.data["sum"] == 30


@pytest.mark.parametrize(
    "name", ["answering", "answers", "fanoutqa", "follow-ups", "hotpotqa", "retrieval", "score", "verdicts"]
)
def test_a_report_is_an_output_so_that_no_other_is_overwritten_or_left_behind(name):
    assert "report.json" in benchmarks()[name].outputs


def test_another_programs_report_is_not_overwritten(tmp_path):
    (tmp_path / "report.json").write_text("mine")
    with pytest.raises(ConfigError, match=r"holds report\.json of something else"):
        list(run(benchmark_of("follow-ups"), benchmark_of("follow-ups").settings(limit=1), tmp_path, Paths(tmp_path)))
    assert (tmp_path / "report.json").read_text() == "mine"


def test_a_task_may_have_something_open_in_the_folder_while_its_items_are_done(tmp_path):
    seen = []

    @contextmanager
    def during(folder):
        seen.append((folder, "open"))
        yield
        seen.append((folder, "closed"))

    def load(settings, paths):
        task = yield from toy(World()).load(settings, paths)
        return replace(task, during=during)

    def score(task, item, solution):
        seen.append(item.number)
        return {"score": 1}

    steps_of(World(), tmp_path / "run", given={"size": 2}, load=load, score=score)
    assert seen == [(tmp_path / "run", "open"), 1, 2, (tmp_path / "run", "closed")]


def test_a_benchmark_may_offer_commands_beside_its_runs_and_files_that_need_not_be_given(tmp_path):
    def call(settings):
        name = settings["file"].name if settings["file"] else "nothing"
        return Report(notes=(f"looked at {name}",)), settings["file"] is None

    options = (Option("file", "Any file.", "file", optional=True),)
    app = typer.Typer(rich_markup_mode=None)
    app.command("look")(further_command(Command("look", "Looks.", options, call)))
    result = CliRunner().invoke(app, [])
    assert (result.exit_code, "looked at nothing" in result.output) == (0, True)
    result = CliRunner().invoke(app, ["--file", str(tmp_path / "a.txt")])
    assert (result.exit_code, "looked at a.txt" in result.output) == (3, True)


def test_another_run_is_refused_unless_told_to_begin_anew(tmp_path):
    steps_of(World(), tmp_path / "run")
    with pytest.raises(ConfigError, match="power was 2, is 3"):
        steps_of(World(), tmp_path / "run", given={"power": 3})
    last = steps_of(World(), tmp_path / "run", given={"power": 3}, restart=True)[-1]
    assert last.report.data["sum"] == 1 + 8 + 27 + 64


def test_a_folder_of_something_else_and_a_damaged_one_are_refused(tmp_path):
    (tmp_path / "sum.txt").write_text("mine")
    with pytest.raises(ConfigError, match="holds sum.txt of something else"):
        steps_of(World(), tmp_path)
    steps_of(World(), tmp_path / "run")
    (tmp_path / "run" / "run.json").write_text("{}")
    with pytest.raises(RecordError, match="is damaged"):
        steps_of(World(), tmp_path / "run")


def test_one_item_fails_alone_and_is_tried_again(tmp_path):
    last = steps_of(World(failing=frozenset({2})), tmp_path / "run")[-1]
    failed = last.outcomes[1]
    assert (failed.status, failed.note, failed.n_begun) == (Status.FAILED, "no answer to 2", 1)
    assert last.report.data["sum"] == 1 + 9 + 16
    world = World()
    steps = steps_of(world, tmp_path / "run")
    assert world.solved == [2]
    assert "1 that failed are retried" in next(step.resumed for step in steps if step.resumed)
    assert steps[-1].outcomes[1].n_begun == 2


def test_many_failures_in_a_row_end_the_run_and_say_why(tmp_path):
    everything = frozenset(range(1, 100))
    world = World(failing=everything)
    with pytest.raises(GenerationError, match=r"5 questions in a row got no answer, the last because: no answer to 5"):
        steps_of(world, tmp_path / "run", given={"size": 50})
    assert len(world.solved) == MAX_FAILURES_IN_A_ROW


def test_an_item_that_ends_after_too_many_failures_does_not_hide_them(tmp_path):
    stop = threading.Event()

    def wait(item):
        while item.number == 1 and not stop.is_set():
            time.sleep(0.01)

    def load(settings, paths):
        task = yield from toy(World()).load(settings, paths)
        return replace(task, parallel=2)

    world = World(failing=frozenset(range(2, 100)), on_solve=wait)
    with pytest.raises(GenerationError, match="5 questions in a row got no answer"):
        steps_of(world, tmp_path / "run", given={"size": 50}, stop=stop, load=load)


def test_scores_that_are_no_numbers_fail_the_item_and_write_nothing_broken(tmp_path):
    last = steps_of(World(scores={3: float("nan")}), tmp_path / "run")[-1]
    assert last.outcomes[2].status is Status.FAILED
    assert "not a finite number" in last.outcomes[2].note
    for line in (tmp_path / "run" / "journal.jsonl").read_text().splitlines():
        json.loads(line)


def test_stop_keeps_the_item_under_way_unscored_and_writes_the_files(tmp_path):
    stop = threading.Event()
    world = World(on_solve=lambda item: stop.set() if item.number == 2 else None)
    last = steps_of(world, tmp_path / "run", stop=stop)[-1]
    assert [outcome.status for outcome in last.outcomes] == [Status.SCORED, Status.LEFT, Status.LEFT, Status.LEFT]
    assert (tmp_path / "run" / "sum.txt").read_text() == "1\n"
    world = World()
    steps = steps_of(world, tmp_path / "run")
    assert (world.solved, world.scored) == ([3, 4], [2, 3, 4])
    assert "1 of them only to be scored" in next(step.resumed for step in steps if step.resumed)


def test_closing_waits_for_the_item_under_way(tmp_path):
    world = World(seconds=0.05)
    benchmark = toy(world)
    steps = run(benchmark, benchmark.settings(), tmp_path / "run", Paths(tmp_path))
    while next(steps).outcome is None:
        pass
    steps.close()
    again = World()
    steps_of(again, tmp_path / "run")
    assert sorted([*world.solved, *again.solved]) == [1, 2, 3, 4]


def test_several_at_once_each_with_its_own_replies(tmp_path):
    met, lock = [], threading.Barrier(4, timeout=20)

    def ask(item):
        lock.wait()  # all four at once, or the barrier breaks
        memory = reply_cache()
        reply = memory.get("the same request")
        met.append((item.number, reply))
        memory.put("the same request", {"text": str(item.number)})
        if item.number == 4:
            msg = "cut off"
            raise GenerationError(msg)

    last = steps_of(World(parallel=4, on_solve=ask), tmp_path / "run")[-1]
    assert sum(outcome.status is Status.SCORED for outcome in last.outcomes) == 3
    assert {reply for _, reply in met} == {None}
    met.clear()

    def again(item):
        met.append((item.number, reply_cache().get("the same request")))

    steps_of(World(on_solve=again), tmp_path / "run")
    assert met == [(4, {"text": "4"})]


def test_an_error_that_nobody_expected_reaches_the_caller(tmp_path):
    def crash(item):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        steps_of(World(on_solve=crash), tmp_path / "run")


def test_a_folder_in_use_and_items_that_changed_are_refused(tmp_path):
    world = World()
    benchmark = toy(world)
    steps = run(benchmark, benchmark.settings(), tmp_path / "run", Paths(tmp_path))
    while next(steps).total == 0:
        pass
    with pytest.raises(RecordError, match="another process is writing into"):
        steps_of(World(), tmp_path / "run")
    steps.close()
    steps_of(World(), tmp_path / "run")

    def renamed(settings, paths):
        task = yield from benchmark.load(settings, paths)
        return replace(task, items=[replace(one, question=Question("another", "q")) for one in task.items])

    with pytest.raises(RecordError, match="was another one"):
        steps_of(World(), tmp_path / "run", load=renamed)


def test_nothing_to_do_is_said(tmp_path):
    with pytest.raises(ConfigError, match="at least one question"):
        steps_of(World(), tmp_path / "run", given={"size": 0})


def test_settings_are_whole_and_known(tmp_path):
    benchmark = toy(World())
    assert benchmark.settings() == {"size": 4, "power": 2, "limit": None}
    with pytest.raises(ConfigError, match="no option 'sizes', expected one of size, power, limit"):
        benchmark.settings(sizes=3)


def test_the_id_of_a_run_counts_files_by_content_and_leaves_out_how_it_is_carried_out(tmp_path):
    file = tmp_path / "q.json"
    file.write_text("[1]")
    options = (
        Option("questions", "", "file"),
        Option("index", "", "index", "a"),
        Option("limit", "", "int", decides=False),
    )
    benchmark = toy(World(), options=options)
    first = benchmark.run_id(benchmark.settings(questions=file))
    assert first == benchmark.run_id(benchmark.settings(questions=str(file), limit=3))
    assert first != benchmark.run_id(benchmark.settings(questions=file, index="b"))
    assert folder_of(benchmark, benchmark.settings(questions=file), Paths(tmp_path)).name == first
    file.write_text("[2]")
    assert first != benchmark.run_id(benchmark.settings(questions=file))
    with pytest.raises(CorpusError, match="cannot be read"):
        benchmark.run_id(benchmark.settings(questions=tmp_path / "gone.json"))


def test_an_item_is_known_by_what_it_is():
    first = Item(1, Question("why", "q1"))
    assert first.identity == Item(2, Question("why", "q1")).identity
    assert first.identity != Item(1, Question("how", "q1")).identity
    assert Item(1, Question("why"), sha256="abc").identity == "abc"


@pytest.mark.slow
@pytest.mark.parametrize("after", [0.0, 0.03, 0.11, 0.2, 0.35])
def test_killed_at_any_moment_the_run_ends_as_if_nothing_had_happened(tmp_path, after):
    killed_and_resumed(tmp_path, [after])


def test_killed_twice_the_run_ends_as_if_nothing_had_happened(tmp_path):
    killed_and_resumed(tmp_path, [0.0, 0.08])


def killed_and_resumed(tmp_path, moments):
    command = [sys.executable, "-m", "tests.support.toy_benchmark", str(tmp_path / "run"), "0.03", "12"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for after in moments:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
        process.stdout.readline()
        time.sleep(after)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    last = steps_of(World(), tmp_path / "run", given={"size": 12})[-1]
    assert last.report.data["sum"] == sum(n * n for n in range(1, 13))
    assert (tmp_path / "run" / "sum.txt").read_text() == "650\n"


def test_the_catalogue_finds_what_lies_in_its_folders():
    assert {"retrieval", "hotpotqa"} <= set(benchmarks())
    assert benchmark_of("retrieval").title == "ObliQA retrieval"
    with pytest.raises(ConfigError, match="one of .*retrieval.*, got 'nothing'"):
        benchmark_of("nothing")


def test_a_folder_without_init_is_left_out_and_named(tmp_path, monkeypatch, caplog):
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "benchmark.py").write_text("raise AssertionError\n")
    monkeypatch.setattr(ragqa.evaluation.benchmarks, "__path__", [str(tmp_path)])
    assert benchmarks.__wrapped__().keys().isdisjoint({"words", "retrieval"})
    assert "expected an __init__.py beside it" in caplog.text
    assert str(tmp_path / "words") in caplog.text


@pytest.mark.model
def test_the_benchmark_that_the_readme_shows_runs_is_offered_files_and_reports(tmp_path):
    text = (Path(ragqa.__file__).parent / "evaluation" / "README.md").read_text(encoding="utf-8")
    code = text.split("```python\n")[1].split("```")[0]
    names = {}
    exec(code, names)
    benchmark = names["BENCHMARK"]
    (option, *_) = benchmark.options
    file = next(one.path for one in demo_files(option) if one.path.name == "questions_1.json")
    settings = benchmark.settings(questions=file, limit=3)
    last = list(run(benchmark, settings, tmp_path / "run", Paths.from_env()))[-1]
    assert len(last.rows) == 3
    assert [one.name for one in last.report.files] == ["report.json"]
    assert len(json.loads((tmp_path / "run" / "report.json").read_text())["words"]) == 3
