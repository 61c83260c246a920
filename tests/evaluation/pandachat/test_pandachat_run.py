"""`ragqa eval pandachat`: progress per question, a submission that its own check accepts."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import ragqa.evaluation.benchmarks.pandachat.benchmark as module
from ragqa.cli import app
from ragqa.corpus.pandachat import load_pandachat_questions, load_pandachat_rows, locate_pandachat
from ragqa.errors import ConfigError
from ragqa.evaluation.benchmark import Item, Task
from ragqa.evaluation.benchmarks.pandachat.benchmark import BENCHMARK, check_index, fits, ranker_of, score, solve
from ragqa.evaluation.benchmarks.pandachat.results import published
from ragqa.evaluation.benchmarks.pandachat.submissions import read_submission, submission_json, write_submission
from ragqa.evaluation.run import run
from ragqa.index import build_index, open_index
from ragqa.settings.config import FusionConfig, IndexingConfig, RetrievalConfig
from ragqa.settings.paths import Paths
from ragqa.types import Ranking, ScoredPassage
from tests.support.fakes import FakeEncoder, FakeRetriever, passage
from tests.support.pandachat_set import CAT, GARDEN, QUERIES, write_set

CHUNK = 16  # tokens: the least an index may have, so that documents have several chunks
SYSTEM = "submission_ragqa-fake-encoder--BM25-only.json"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The data set, its questions and an open index of it."""
    home = tmp_path_factory.mktemp("pandachat")
    data = write_set(home / "set.json")
    config = IndexingConfig(chunk_max_tokens=CHUNK)
    build_index("mini", data, indexes=home / "indexes", config=config, encoder=FakeEncoder())
    return data, load_pandachat_questions(data), open_index("mini", home / "indexes"), home / "indexes"


@pytest.fixture
def calls(monkeypatch):
    """What was ranked, the warm-up first."""
    noted = SimpleNamespace(asked=[])

    def counting(*arguments):
        ranker = ranker_of(*arguments)

        def ranked(text):
            noted.asked.append(text)
            return ranker(text)

        return ranked

    monkeypatch.setattr(module, "ranker_of", counting)
    monkeypatch.setattr("ragqa.loading.load_encoder", lambda *_, **__: FakeEncoder())
    return noted


@pytest.fixture
def running(world, calls, tmp_path):
    """Runs the benchmark into a folder; every progress of it."""

    def start(**settings):
        given = {"data": world[0], "index": "mini", "preset": "BM25 only"} | settings
        paths = Paths(tmp_path / "home", world[3])
        found = BENCHMARK.settings(**given)
        return run(BENCHMARK, found, tmp_path / "run", paths)

    return start


# The run ------------------------------------------------------------------------------------------------------------


def test_every_question_is_told_as_it_is_done(running, tmp_path):
    steps = list(running())
    told = [step.outcome.item.question.text for step in steps if step.outcome]
    assert told == list(QUERIES)
    assert [row.number for row in steps[-1].rows] == [1, 2, 3, 4]
    assert all(row.right and row.values["top1"] == row.values["top2"] == 1 for row in steps[-1].rows)
    assert all(row.hits[0].is_gold and row.hits[0].document_id == row.gold[0] for row in steps[-1].rows)
    seconds = [outcome.solution["seconds"] for outcome in steps[-1].outcomes]
    assert [row.values["ms"] for row in steps[-1].rows] == [1000 * one for one in seconds]
    report = json.loads((tmp_path / "run" / "report.json").read_text("utf-8"))
    (ours,) = report["systems"]
    assert ours["rows"][0]["time_per_question (s)"] == pytest.approx(sum(seconds) / 4)
    assert [figure.text for figure in steps[-1].report.figures[:2]] == ["4 of 4", "4 of 4"]


def test_the_data_set_may_be_named_by_its_folder(running, world, tmp_path):
    (folder := tmp_path / "sets" / "pandachat").mkdir(parents=True)
    (folder / "set.json").write_bytes(world[0].read_bytes())
    for data in (folder, folder.parent):
        assert list(running(data=data))[-1].done == 4


def test_duplicates_of_a_document_count(world):
    hits = [ScoredPassage(passage(name), 9.0 - n) for n, name in enumerate(("splet.9:1", "splet.9:2", f"{CAT}:1"))]
    ranked = SimpleNamespace(ranker=lambda _: Ranking.of("bm25", hits), n_sources=5)
    task, one = Task((), {}, ranked), world[1][1]
    item = Item(2, one.question, one)
    solution = solve(task, item)
    assert [source for _, source, _ in solution["hits"]] == ["splet.9", "splet.9", CAT]
    assert score(task, item, solution) == {"place": 3}
    assert score(task, item, {"hits": solution["hits"][:2], "seconds": 0.1}) == {"place": None}


def test_loading_on_the_first_question_is_no_questions_time(running, calls):
    list(running())
    assert len(calls.asked) == 5
    assert calls.asked[0] not in QUERIES


def test_the_first_questions_and_more_sources(running, tmp_path):
    last = list(running(limit=2, k=[7]))[-1]
    (file,) = tmp_path.glob("run/submission_*only.json")
    rows = json.loads(file.read_text("ascii"))["df"]
    assert [row["query"] for row in rows] == list(QUERIES[:2])
    assert json.loads((tmp_path / "run" / "run.json").read_text())["stamp"]["settings"]["sources"] == 7
    assert [figure.label for figure in last.report.figures] == ["Top 7", "Time"]
    assert (last.report.data["n_questions"], last.report.data["n_questions_of_data"]) == (2, 4)


def test_a_ranking_without_weight_is_not_asked():
    silent = FakeRetriever(Ranking.of("dense", []), error=AssertionError("asked"))
    asked = FakeRetriever(Ranking.of("bm25", [ScoredPassage(passage("a:1"), 1.0)]))
    ranking = ranker_of((asked, silent), RetrievalConfig(top_k=7), FusionConfig.of(bm25=1))("?")
    assert [hit.passage.passage_id for hit in ranking.hits] == ["a:1"]
    assert asked.calls == [("?", 7)]


def test_a_ranking_without_weight_is_asked_for_one_that_follows_it():
    class Citing(FakeRetriever):
        def follow(self, question, rankings, top_k):
            return Ranking.of("citations", [hit for ranking in rankings for hit in ranking.hits])

    bm25, dense = (FakeRetriever(Ranking.of(n, [ScoredPassage(passage(n), 1.0)])) for n in ("bm25", "dense"))
    retrievers = bm25, dense, Citing(Ranking.of("citations", []))
    ranking = ranker_of(retrievers, RetrievalConfig(), FusionConfig.of(bm25=1, citations=1))("?")
    assert {hit.passage.passage_id for hit in ranking.hits} == {"bm25", "dense"}


# The index ----------------------------------------------------------------------------------------------------------


def test_only_an_index_of_the_data_set_in_chunks_of_at_most_128_tokens(world, tmp_path):
    data, _, index, _ = world
    check_index(index, data)
    assert fits(data, index)
    larger = replace(index, manifest=replace(index.manifest, chunk_max_tokens=129))
    with pytest.raises(ConfigError, match="chunks of up to 129 tokens; expected at most 128"):
        check_index(larger, data)
    text = data.read_text("utf-8").replace("paradi", "Paradi").replace("Testo vzhaja", "Testo raste")
    assert not fits(data, larger)
    other = tmp_path / "set.json"
    other.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="index 'mini' was made from 'set.json'; expected one of the texts of"):
        check_index(index, other)


def test_the_data_set_is_found_in_a_folder_of_several(tmp_path):
    (tmp_path / "pandachat").mkdir()
    (tmp_path / "obliqa").mkdir()
    file = write_set(tmp_path / "pandachat" / "set.json")
    assert locate_pandachat(tmp_path) == tmp_path / "pandachat"
    assert locate_pandachat(tmp_path / "pandachat") == tmp_path / "pandachat"
    assert locate_pandachat(file) == file


# The command --------------------------------------------------------------------------------------------------------


@pytest.fixture
def run_command(world, calls, monkeypatch, tmp_path):
    monkeypatch.setenv("RAGQA_INDEXES", str(world[3]))

    def run_it(*options):
        found = CliRunner().invoke(app, ["eval", "pandachat", "--data", str(world[0]), *map(str, options)])
        if found.exception and not isinstance(found.exception, SystemExit):
            raise found.exception
        return found

    return run_it


def test_a_run_writes_a_submission_that_is_accepted_and_a_rerun_the_same(world, run_command, tmp_path):
    out = tmp_path / "out"
    options = ("--index", "mini", "--preset", "BM25 only", "--out", out, "--json")
    report = json.loads(run_command(*options).stdout)
    (one,) = report["systems"]
    assert one["system"] == "ragqa-fake-encoder, BM25 only"
    assert [row["correct_retrieval_count"] for row in one["rows"]] == [4, 4]
    assert len(report["published"]["rows"]) == 11
    names = {path.name for path in out.iterdir()} - {".lock"}
    file = SYSTEM
    assert names == {
        "run.json",
        "journal.jsonl",
        "report.json",
        "results.json",
        "results-aqa-sl.md",
        file,
        f"{file}_results.json",
    }
    read = read_submission(out / file, world[1])
    assert {len(sources) for _, _, sources in read.rows} <= {1, 2, 3, 4, 5}
    assert any(len(set(sources)) < len(sources) for _, _, sources in read.rows)  # duplicates are kept
    before = {name: (out / name).read_bytes() for name in names}
    assert "continuing: 4 are done already" in run_command(*options).stderr
    assert {name: (out / name).read_bytes() for name in names} == before
    assert len(json.loads(before["results.json"])) == len(published()) + 2


def test_the_table_shows_our_row_among_the_published_ones(run_command):
    found = run_command("--index", "mini", "--preset", "BM25 only", "--limit", "2", "--k", "2")
    assert "right of 2 questions" in found.stdout
    assert "this run" in found.stdout
    assert "206 of 206" in found.stdout


def test_a_preset_that_reranks_is_refused(run_command):
    with pytest.raises(ConfigError, match="'learning to rank' reranks"):
        run_command("--index", "mini", "--preset", "learning to rank")
    with pytest.raises(ConfigError, match="'AUEB final' reranks"):
        run_command("--index", "mini", "--preset", "AUEB final")


@pytest.mark.long
def test_a_part_of_the_questions_is_no_result_of_the_benchmark(run_command, tmp_path):
    out = tmp_path / "out"
    found = run_command("--index", "mini", "--limit", "2", "--out", out)
    assert "Only 2 of 4 questions were asked" in found.stdout
    assert not (out / "results.json").exists()
    assert "continuing: 2 are done already" in run_command("--index", "mini", "--out", out).stderr
    assert (out / "results.json").exists()


@pytest.mark.long
def test_submission_files_need_no_index(world, run_command, monkeypatch, tmp_path):
    def refuse(*_, **__):
        raise AssertionError

    monkeypatch.setattr("ragqa.loading.load_encoder", refuse)
    file = tmp_path / "submission_theirs.json"
    write_submission(file, submission_json("bge-m3", 0.5, load_pandachat_rows(world[0]), [[GARDEN]] * 4))
    out = tmp_path / "out"
    options = ("--submission", file, "--k", "2", "--k", "1", "--out", out, "--json")
    report = json.loads(run_command(*options).stdout)
    (one,) = report["systems"]
    assert one["origin"] == "submission_theirs.json"
    assert [row["evaluated-top-k"] for row in one["rows"]] == [1, 2]
    run_command(*options)
    rows = json.loads((out / "results.json").read_text("utf-8"))
    assert [row["system"] for row in rows].count("bge-m3") == 2  # at 1 and at 2, however often it is evaluated
    (out / "submission_theirs.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigError, match="must differ in name"):
        run_command("--submission", file, "--submission", write_copy(file, tmp_path / "b"))


def write_copy(file, folder):
    folder.mkdir()
    copy = folder / file.name
    copy.write_bytes(file.read_bytes())
    return copy


@pytest.mark.long
def test_an_index_is_built_where_there_is_none(world, run_command):
    found = run_command("--index", "fresh", "--limit", "1", "--json")
    assert "Building the index fresh" in found.stderr
    opened = open_index("fresh", world[3])
    assert (opened.manifest.format, opened.manifest.chunk_max_tokens) == ("pandachat", 128)
    assert str(opened.manifest.analyser).startswith("characters")
    assert "Building" not in run_command("--index", "fresh", "--limit", "1", "--json").stderr


def test_the_pipelines_own_retrievers_serve(running):
    last = list(running(preset=None))[-1]
    assert {row.gold[0] for row in last.rows} == {GARDEN, CAT, "splet.3"}
    assert all(len(row.hits) >= 1 for row in last.rows)


def test_submissions_are_counted_beside_a_run(world, run_command, tmp_path):
    file = tmp_path / "submission_theirs.json"
    write_submission(file, submission_json("theirs", 0.5, load_pandachat_rows(world[0]), [[GARDEN]] * 4))
    out = tmp_path / "out"
    options = ("--index", "mini", "--preset", "BM25 only", "--submission", file, "--out", out, "--json")
    report = json.loads(run_command(*options).stdout)
    assert [one["origin"] for one in report["systems"]] == ["this run", "submission_theirs.json"]
    assert (out / "submission_theirs.json_results.json").is_file()
    assert (out / f"{SYSTEM}_results.json").is_file()


def test_a_submission_with_the_name_of_the_runs_own_is_refused(world, run_command, tmp_path):
    write_submission(tmp_path / SYSTEM, submission_json("theirs", 0.5, load_pandachat_rows(world[0]), [[GARDEN]] * 4))
    with pytest.raises(ConfigError, match=f"other names than '{SYSTEM}'"):
        run_command("--index", "mini", "--preset", "BM25 only", "--submission", tmp_path / SYSTEM)


@pytest.mark.model
@pytest.mark.data
@pytest.mark.slow
def test_the_real_questions_with_the_embedded_models(shared_data, tmp_path, monkeypatch):
    monkeypatch.setenv("RAGQA_INDEXES", str(tmp_path / "indexes"))
    out = tmp_path / "out"
    found = CliRunner().invoke(app, ["eval", "pandachat", "--data", str(shared_data), "--out", str(out), "--json"])
    assert found.exit_code == 0, found.output
    (one,) = json.loads(found.stdout)["systems"]
    at_1, at_2 = (row["correct_retrieval_count"] for row in one["rows"])
    assert at_1 >= 202  # 203 and 206 on the machine README speaks of; bf16 and fp32 may order a tie differently
    assert at_2 >= 205
    questions = load_pandachat_questions(shared_data / "pandachat")
    assert len(read_submission(out / "submission_ragqa-all-MiniLM-L6-v2.json", questions).rows) == 206
