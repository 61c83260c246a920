"""`ragqa eval pandachat`: progress per question, stopped and resumed, a submission that its own check accepts."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from ragqa.cli import app
from ragqa.config import FusionConfig, IndexingConfig, RetrievalConfig
from ragqa.corpus.pandachat import load_pandachat_questions, locate_pandachat
from ragqa.errors import ConfigError, RecordError
from ragqa.evaluation.pandachat import PandachatOutcome, check_index, ranker_of, run_pandachat
from ragqa.evaluation.pandachat_folder import open_pandachat_folder, stamp_of
from ragqa.evaluation.pandachat_results import PUBLISHED
from ragqa.evaluation.pandachat_submission import read_submission, write_submission
from ragqa.indexing import build_index, open_index
from ragqa.retrieval import retrievers_for
from ragqa.types import Question, Ranking, ScoredPassage
from tests.support.fakes import FakeEncoder, FakeRetriever, passage
from tests.support.pandachat_set import CAT, GARDEN, QUERIES, write_set

CHUNK = 16  # tokens: the least an index may have, so that documents have several chunks


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The data set, its questions and an open index of it."""
    home = tmp_path_factory.mktemp("pandachat")
    data = write_set(home / "set.json")
    config = IndexingConfig(chunk_max_tokens=CHUNK)
    build_index("mini", data, indexes=home / "indexes", config=config, encoder=FakeEncoder())
    return data, load_pandachat_questions(data), open_index("mini", home / "indexes"), home / "indexes"


class CountingRanker:
    """BM25 over the index; notes what it was asked."""

    def __init__(self, index, error_after=None):
        self.calls, self._error_after = [], error_after
        self._rank = ranker_of((index.bm25s,), RetrievalConfig(), FusionConfig.of(bm25=1))

    def __call__(self, text):
        self.calls.append(text)
        if self._error_after is not None and len(self.calls) > self._error_after:
            raise KeyboardInterrupt
        return self._rank(text)


def finished(run):
    seen = []
    while True:
        try:
            seen.append(next(run))
        except StopIteration as stop:
            return seen, stop.value


def stamp(index, data, **changes):
    return stamp_of(index, data, RetrievalConfig(**changes), FusionConfig.of(bm25=1))


# The run ------------------------------------------------------------------------------------------------------------


def test_every_question_is_told_as_it_is_done(world):
    _, questions, index, _ = world
    seen, result = finished(run_pandachat(index, CountingRanker(index), questions))
    assert [outcome.question.text for outcome in seen] == list(QUERIES)
    assert [outcome.number for outcome in seen] == [1, 2, 3, 4]
    assert result.outcomes == tuple(seen)
    assert all(outcome.sources[0] == outcome.document and outcome.right_at(1) for outcome in seen)
    assert all(hit.passage.text for outcome in seen for hit in outcome.hits)
    assert all(outcome.milliseconds == 1000 * outcome.seconds > 0 for outcome in seen)
    assert result.seconds == pytest.approx(sum(outcome.seconds for outcome in seen) / 4)
    row = result.row("ours", 1)
    assert (row.n_right, row.n_questions, row.top_k) == (4, 4, 1)


def test_duplicates_of_a_document_count(world):
    hits = [ScoredPassage(passage(name), 9.0 - n) for n, name in enumerate(("a:1", "a:2", "b:1"))]
    outcome = PandachatOutcome(1, Question("?"), "b", tuple(hits), 0.1)
    assert outcome.sources == ("a", "a", "b")
    assert (outcome.right_at(2), outcome.right_at(3)) == (False, True)


def test_loading_on_the_first_question_is_no_questions_time(world):
    _, questions, index, _ = world
    ranker = CountingRanker(index)
    finished(run_pandachat(index, ranker, questions))
    assert len(ranker.calls) == 5
    assert ranker.calls[0] not in QUERIES


def test_the_first_questions_and_fewer_sources(world):
    data, questions, index, _ = world
    seen, result = finished(run_pandachat(index, CountingRanker(index), questions, limit=2, n_sources=1))
    assert [len(outcome.sources) for outcome in seen] == [1, 1]
    assert (len(result.outcomes), result.n_all) == (2, 4)
    assert [row["query"] for row in result.submission("ours", data)["df"]] == list(QUERIES[:2])
    with pytest.raises(ConfigError, match="at least one question"):
        next(run_pandachat(index, CountingRanker(index), ()))


def test_a_ranking_without_weight_is_not_asked():
    silent = FakeRetriever(Ranking.of("dense", []), error=AssertionError("asked"))
    asked = FakeRetriever(Ranking.of("bm25", [ScoredPassage(passage("a:1"), 1.0)]))
    ranking = ranker_of((asked, silent), RetrievalConfig(top_k=7), FusionConfig.of(bm25=1))("?")
    assert [hit.passage.passage_id for hit in ranking.hits] == ["a:1"]
    assert asked.calls == [("?", 7)]


# The folder ---------------------------------------------------------------------------------------------------------


def test_a_stopped_run_goes_on_and_ranks_nothing_twice(world, tmp_path):
    data, questions, index, _ = world
    with open_pandachat_folder(tmp_path / "run", stamp(index, data)) as folder:
        run = run_pandachat(index, CountingRanker(index), questions, folder=folder)
        first = [next(run), next(run)]
        run.close()
    with (tmp_path / "run" / "journal.jsonl").open("ab") as journal:
        journal.write(b'{"sha256": "torn')
    ranker = CountingRanker(index)
    with open_pandachat_folder(tmp_path / "run", stamp(index, data)) as folder:
        assert folder.n_done == 2
        seen, result = finished(run_pandachat(index, ranker, questions, folder=folder))
    assert ranker.calls[1:] == list(QUERIES[2:])
    assert [outcome.kept for outcome in seen] == [True, True, False, False]
    assert [replace(outcome, kept=False).sources for outcome in seen[:2]] == [outcome.sources for outcome in first]
    assert [outcome.seconds for outcome in seen[:2]] == [outcome.seconds for outcome in first]
    assert [hit.passage.text for hit in seen[0].hits] == [hit.passage.text for hit in first[0].hits]
    again = CountingRanker(index)
    with open_pandachat_folder(tmp_path / "run", stamp(index, data)) as folder:
        _, same = finished(run_pandachat(index, again, questions, folder=folder))
        assert folder.n_done == 4
    assert again.calls == []
    assert same.submission("ours", data) == result.submission("ours", data)
    assert len((tmp_path / "run" / "journal.jsonl").read_text("utf-8").splitlines()) == 4


def test_an_interrupted_question_is_asked_again(world, tmp_path):
    data, questions, index, _ = world
    with (
        open_pandachat_folder(tmp_path / "run", stamp(index, data)) as folder,
        pytest.raises(KeyboardInterrupt),
    ):
        finished(run_pandachat(index, CountingRanker(index, error_after=3), questions, folder=folder))
    with open_pandachat_folder(tmp_path / "run", stamp(index, data)) as folder:
        assert folder.n_done == 2


def test_a_folder_of_other_settings_is_refused_and_begun_anew(world, tmp_path):
    data, questions, index, _ = world
    with open_pandachat_folder(tmp_path / "run", stamp(index, data)) as folder:
        finished(run_pandachat(index, CountingRanker(index), questions, folder=folder))
    other = stamp(index, data, top_k=50)
    with (
        pytest.raises(ConfigError, match=r"settings.retrieval.top_k was 100, is 50"),
        open_pandachat_folder(tmp_path / "run", other),
    ):
        pass
    with open_pandachat_folder(tmp_path / "run", other, restart=True) as folder:
        assert folder.n_done == 0


def test_one_process_at_a_time(world, tmp_path):
    data, _, index, _ = world
    with (
        open_pandachat_folder(tmp_path / "run", stamp(index, data)),
        pytest.raises(RecordError, match="another process is retrieving"),
        open_pandachat_folder(tmp_path / "run", stamp(index, data)),
    ):
        pass


# The index ----------------------------------------------------------------------------------------------------------


def test_only_an_index_of_the_data_set_in_chunks_of_at_most_128_tokens(world, tmp_path):
    data, _, index, _ = world
    check_index(index, data)
    larger = replace(index, manifest=replace(index.manifest, chunk_max_tokens=129))
    with pytest.raises(ConfigError, match="chunks of up to 129 tokens; expected at most 128"):
        check_index(larger, data)
    text = data.read_text("utf-8").replace("paradi", "Paradi").replace("Testo vzhaja", "Testo raste")
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
def run_command(world, monkeypatch, tmp_path):
    monkeypatch.setenv("RAGQA_INDEXES", str(world[3]))
    monkeypatch.setattr("ragqa.loading.load_encoder", lambda *_, **__: FakeEncoder())

    def run(*options):
        found = CliRunner().invoke(app, ["eval", "pandachat", "--data", str(world[0]), *map(str, options)])
        if found.exception and not isinstance(found.exception, SystemExit):
            raise found.exception
        return found

    return run


def test_a_run_writes_a_submission_that_is_accepted_and_a_rerun_the_same(world, run_command, tmp_path):
    out = tmp_path / "out"
    options = ("--index", "mini", "--preset", "BM25 only", "--out", out, "--json")
    report = json.loads(run_command(*options).stdout)
    (one,) = report["systems"]
    assert one["system"] == "ragqa-fake-encoder, BM25 only"
    assert [row["correct_retrieval_count"] for row in one["rows"]] == [4, 4]
    assert len(report["published"]["rows"]) == 11
    names = {path.name for path in out.iterdir()} - {".lock"}
    file = "submission_ragqa-fake-encoder--BM25-only.json"
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
    assert "going on: 4 questions" in run_command(*options).stderr
    assert {name: (out / name).read_bytes() for name in names} == before
    assert len(json.loads(before["results.json"])) == len(PUBLISHED) + 2


def test_the_table_shows_our_row_among_the_published_ones(run_command):
    found = run_command("--index", "mini", "--preset", "BM25 only", "--limit", "2", "--k", "2")
    assert "right of 2 questions" in found.stdout
    assert "this run" in found.stdout
    assert "206 of 206" in found.stdout


def test_a_preset_that_reranks_is_refused(run_command):
    with pytest.raises(ConfigError, match="'AUEB final' reranks"):
        run_command("--index", "mini", "--preset", "AUEB final")


@pytest.mark.long
def test_a_part_of_the_questions_is_no_result_of_the_benchmark(run_command, tmp_path):
    out = tmp_path / "out"
    found = run_command("--index", "mini", "--limit", "2", "--out", out)
    assert "only 2 of 4 questions were asked" in found.stderr
    assert not (out / "results.json").exists()
    assert "going on: 2 questions" in run_command("--index", "mini", "--out", out).stderr
    assert (out / "results.json").exists()


@pytest.mark.long
def test_submission_files_need_no_index(world, run_command, monkeypatch, tmp_path):
    def refuse(*_, **__):
        raise AssertionError

    monkeypatch.setattr("ragqa.loading.load_encoder", refuse)
    data, questions, index, _ = world
    _, result = finished(run_pandachat(index, CountingRanker(index), questions))
    file = tmp_path / "submission_theirs.json"
    write_submission(file, result.submission("bge-m3", data))
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
    assert "no index 'fresh' yet: building it" in found.stderr
    opened = open_index("fresh", world[3])
    assert (opened.manifest.format, opened.manifest.chunk_max_tokens) == ("pandachat", 128)
    assert str(opened.manifest.analyser).startswith("characters")
    assert "building" not in run_command("--index", "fresh", "--limit", "1", "--json").stderr


def test_ctrl_c_keeps_what_was_retrieved(run_command, monkeypatch, tmp_path):
    import ragqa.evaluation.pandachat as module

    ranked, rank = [], module.rank

    def stopped(*arguments):
        ranked.append(arguments)
        if len(ranked) == 4:
            raise KeyboardInterrupt
        return rank(*arguments)

    monkeypatch.setattr(module, "rank", stopped)
    options = ("--index", "mini", "--preset", "BM25 only", "--out", tmp_path / "out")
    found = run_command(*options)
    assert found.exit_code == 130
    assert "the same command goes on from there" in found.stderr
    assert "going on: 2 questions" in run_command(*options).stderr


def test_the_pipelines_own_retrievers_serve(world):
    _, questions, index, _ = world
    retrievers = retrievers_for(index, FakeEncoder(), RetrievalConfig())
    seen, _ = finished(run_pandachat(index, ranker_of(retrievers, RetrievalConfig(), FusionConfig()), questions))
    assert {outcome.document for outcome in seen} == {GARDEN, CAT, "splet.3"}
    assert all(len(outcome.hits) >= 1 for outcome in seen)


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
