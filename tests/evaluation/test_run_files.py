"""Rankings on disk: TREC runs, JSON lines per question and the cache of rankings."""

import io
import json
import logging
import os
import pickle
import signal
import subprocess
import sys
import zipfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragqa.errors import CorpusError, RecordError
from ragqa.evaluation.measures import MEASURES, measure_run
from ragqa.evaluation.ranking_cache import RankingCache, ranking_key
from ragqa.evaluation.run_files import QuestionResult, read_run, write_per_question, write_run
from ragqa.types import Ranking, ScoredPassage
from tests.support.fakes import passage, ranking


def names_in(folder):
    return sorted(entry.name for entry in folder.iterdir())


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.txt"


class TestRun:
    def test_as_the_shared_task_wants_it(self, path):
        write_run(path, "fused", ["q1", "q2"], [ranking("x", {"1:a": 0.5, "2:b": 2.25}), ranking("x", {"1:a": 1.0})])
        assert path.read_text() == ("q1 Q0 2:b 1 2.25 fused\nq1 Q0 1:a 2 0.5 fused\nq2 Q0 1:a 1 1 fused\n")

    def test_round_trip(self, path):
        write_run(path, "t", ["q2", "q1"], [ranking("x", {"b": 0.1, "a": 0.7}), ranking("x", {"c": -3.5})])
        assert read_run(path) == {
            "q2": (("a", pytest.approx(0.7)), ("b", pytest.approx(0.1))),
            "q1": (("c", -3.5),),
        }
        assert list(read_run(path)) == ["q2", "q1"]

    def test_white_space_in_names(self, path):
        write_run(path, "my run", [" q 1"], [ranking("x", {"6:APP 3\u00a0(b)": 1.0})])
        assert path.read_text() == "q_1 Q0 6:APP_3_(b) 1 1 my_run\n"

    def test_docids_in_place_of_passage_ids(self, path):
        write_run(path, "t", ["q"], [ranking("x", {"6:APP 3": 1.0})], {"6:APP 3": "c1f9-uuid", "9:9": "unused"})
        assert read_run(path) == {"q": (("c1f9-uuid", 1.0),)}

    def test_a_passage_without_docid_is_refused(self, path):
        with pytest.raises(CorpusError, match="docid of its own for passage '1:b', found none"):
            write_run(path, "t", ["q"], [ranking("x", {"1:a": 2.0, "1:b": 1.0})], {"1:a": "uuid"})
        assert not path.exists()

    @pytest.mark.parametrize(("ids", "docids"), [(["a b", "a_b"], None), (["1", "2"], {"1": "same", "2": "same"})])
    def test_two_passages_of_one_docid_are_refused(self, path, ids, docids):
        with pytest.raises(CorpusError, match="a second time"):
            write_run(path, "t", ["q"], [ranking("x", dict.fromkeys(ids, 1.0))], docids)
        assert list(path.parent.iterdir()) == []

    def test_the_same_docid_for_another_question_is_fine(self, path):
        write_run(path, "t", ["q", "r"], [ranking("x", {"a": 1.0})] * 2)
        assert list(read_run(path)) == ["q", "r"]

    @pytest.mark.parametrize(
        ("ids", "found"), [(["q", "q"], "'q' several"), (["q", ""], "an empty"), (["a b", "a_b"], "'a_b'")]
    )
    def test_question_ids_that_cannot_be_told_apart_are_refused(self, path, ids, found):
        with pytest.raises(CorpusError, match=f"found {found}.*QuestionID"):
            write_run(path, "t", ids, [ranking("x", {"a": 1.0})] * 2)

    @pytest.mark.parametrize(("tag", "count"), [("", 1), (" ", 1), ("t", 2)])
    def test_arguments_that_cannot_be_meant(self, path, tag, count):
        with pytest.raises(ValueError, match="expected a tag and one ranking per question"):
            write_run(path, tag, ["q"], [ranking("x", {"a": 1.0})] * count)

    @pytest.mark.parametrize("score", [float("nan"), float("inf"), -float("inf"), 1e300])
    def test_scores_that_cannot_be_compared(self, path, score):
        with pytest.raises(ValueError, match="expected finite scores"):
            write_run(path, "t", ["q"], [Ranking("x", (ScoredPassage(passage("a"), score),))])
        assert not path.exists()

    def test_ties_are_written_so_that_trec_eval_sees_our_order(self, path):
        """trec_eval would put b before a; the file must not let it."""
        write_run(path, "t", ["q"], [ranking("x", {"a": 1.0, "b": 1.0, "c": 1.0 - 1e-12, "d": 0.0, "e": 0.0})])
        assert [docid for docid, _ in read_run(path)["q"]] == ["a", "b", "c", "d", "e"]
        [*scores] = (np.float32(line.split()[4]) for line in path.read_text().splitlines())
        assert all(before > after for before, after in pairwise(scores))
        assert scores[:4] == pytest.approx([1, 1, 1, 0], abs=1e-6)

    @given(st.lists(st.one_of(st.sampled_from([0.0, 1.0, 0.3]), st.floats(-1e38, 1e38)), max_size=12))
    @settings(deadline=None, max_examples=60)
    @pytest.mark.long
    def test_the_file_measures_as_the_ranking_does(self, tmp_path_factory, scores):
        import ir_measures

        path = tmp_path_factory.mktemp("runs") / "run.txt"
        hits = ranking("x", {f"{number:02}": score for number, score in enumerate(scores)})
        write_run(path, "t", ["0"], [hits])
        ids = [hit.passage.passage_id for hit in hits.hits]
        assert [docid for docid, _ in read_run(path).get("0", ())] == ids
        gold = frozenset({"00", "05", "11"})
        qrels = [ir_measures.Qrel("0", docid, 1) for docid in gold]
        official = ir_measures.iter_calc(
            [ir_measures.parse_measure(name) for name in MEASURES if "RR" not in name],
            qrels,
            list(ir_measures.read_trec_run(str(path))),
        )
        ours = measure_run([gold], [ids])
        for metric in official:
            assert ours[str(metric.measure)] == [pytest.approx(metric.value)]

    def test_empty_rankings_and_empty_files(self, path):
        write_run(path, "t", ["q", "r"], [ranking("x", {}), ranking("x", {"a": 1.0})])
        assert read_run(path) == {"r": (("a", 1.0),)}
        write_run(path, "t", [], [])
        assert path.read_text() == ""
        assert read_run(path) == {}

    def test_files_of_others(self, path):
        """Tabs, carriage returns, a byte-order mark, ranks from 0 and out of order, ties by docid from the greatest."""
        path.write_bytes(b"\xef\xbb\xbfq\tQ0\ta\t0\t1e-1\tt\r\n\r\n q 0 c 2 2 other\nq Q0 b 1 2.00000001 t")
        assert read_run(path) == {"q": (("c", 2.0), ("b", 2.00000001), ("a", 0.1))}

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("q Q0 6:APP 3 1 0.5 t", "line 2: expected 6 fields, qid Q0 docid rank score tag, found 7: 'q Q0 6:APP 3"),
            ("q Q0 b 1 0.5", "line 2: expected 6 fields, .* found 5"),
            ("q Q0 b first 0.5 t", "line 2: expected a whole number from 0 as rank, found 'first'"),
            ("q Q0 b -1 0.5 t", "as rank, found '-1'"),
            ("q Q0 b 1 high t", "line 2: expected a number within 2e.38 as score, found 'high'"),
            ("q Q0 b 1 nan t", "as score, found 'nan'"),
            ("q Q0 b 1 1e999 t", "as score, found '1e999'"),
            ("q Q0 a 1 0.5 t", "line 2: expected each docid once per question, found 'a' again for question 'q'"),
        ],
    )
    def test_damaged_lines(self, path, line, message):
        path.write_text(f"q Q0 a 1 0.5 t\n{line}\n")
        with pytest.raises(CorpusError, match=f"run.txt, {message}" if message.startswith("line") else message):
            read_run(path)

    def test_no_text_and_no_file(self, path):
        with pytest.raises(CorpusError, match="cannot be read"):
            read_run(path)
        path.write_bytes(b"q Q0 \xff 1 1 t\n")
        with pytest.raises(CorpusError, match="not UTF-8"):
            read_run(path)


class TestPerQuestion:
    def row(self, **changes):
        found = tuple(f"p{number}" for number in range(12))
        fields = {"question_id": "q", "question": "Wer haftet für „X“?", "gold": frozenset({"b", "a"}), "found": found}
        return QuestionResult(**(fields | {"values": {"R@10": 0.5}} | changes))

    def test_lines(self, path):
        write_per_question(path, [self.row(), self.row(question_id="r", found=(), question="two\nlines \u2028")])
        first, second = (json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1])
        assert list(first) == ["question_id", "question", "gold", "found", "values"]
        assert first["question"] == "Wer haftet für „X“?"
        assert first["gold"] == ["a", "b"]
        assert first["found"] == [f"p{number}" for number in range(10)]
        assert first["values"] == {"R@10": 0.5}
        assert (second["question"], second["found"]) == ("two\nlines \u2028", [])
        assert "für" in path.read_text(encoding="utf-8")

    def test_lone_surrogates_survive(self, path):
        write_per_question(path, [self.row(question="a\ud800b")])
        assert json.loads(path.read_text(encoding="utf-8"))["question"] == "a\ud800b"

    def test_no_rows(self, path):
        write_per_question(path, iter([]))
        assert path.read_text() == ""

    def test_what_is_not_finite_is_refused_and_the_old_file_stays(self, path):
        write_per_question(path, [self.row()])
        before = path.read_bytes()
        with pytest.raises(ValueError, match="JSON"):
            write_per_question(path, [self.row(), self.row(values={"R@10": float("nan")})])
        assert path.read_bytes() == before
        assert names_in(path.parent) == [path.name]


WRITERS = [
    lambda path: write_run(path, "t", ["q"], [ranking("x", {"a": 1.0})]),
    lambda path: write_per_question(path, [QuestionResult("q", "?", frozenset("a"), ("a",), {})]),
]


class TestWhole:
    @pytest.mark.parametrize("write", WRITERS)
    @pytest.mark.parametrize("step", ["write", "fsync", "replace"])
    def test_a_crash_while_writing_leaves_the_old_file(self, path, monkeypatch, write, step):
        path.write_text("old")

        def crash(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(os, step, crash)
        with pytest.raises(KeyboardInterrupt):
            write(path)
        assert path.read_text() == "old"
        monkeypatch.undo()
        write(path)
        assert names_in(path.parent) == [path.name]

    @pytest.mark.parametrize("write", WRITERS)
    def test_a_folder_that_is_not_there(self, tmp_path, write):
        with pytest.raises(RecordError, match="cannot be written .*choose a file in a folder you may write to"):
            write(tmp_path / "none" / "run.txt")


def hits_of(*lengths, start=0):
    """Hits for as many questions, all numbers different."""
    hits = []
    for length in lengths:
        positions = np.arange(start, start + length)
        hits.append((positions, (100 - positions / 8).astype(np.float32)))
        start += length
    return hits


def as_lists(hits):
    return [(positions.tolist(), scores.tolist()) for positions, scores in hits]


KEY, OTHER, THIRD = (ranking_key("index", "bm25", top_k, ["?"]) for top_k in (1, 2, 3))


class TestRankingCache:
    def test_round_trip(self, tmp_path):
        cache = RankingCache(tmp_path / "made" / "on demand")
        assert cache.load(KEY) is None
        hits = hits_of(3, 0, 1)
        cache.save(KEY, hits)
        loaded = RankingCache(tmp_path / "made" / "on demand").load(KEY)
        assert as_lists(loaded) == as_lists(hits)
        assert {(positions.dtype, scores.dtype) for positions, scores in loaded} == {
            (np.dtype(np.int32), np.dtype(np.float32))
        }
        assert cache.load(OTHER) is None
        assert names_in(tmp_path / "made" / "on demand") == [f"{KEY}.npz"]

    @pytest.mark.parametrize("lengths", [(), (0,), (0, 0), (2,)])
    def test_few_or_no_hits(self, tmp_path, lengths):
        cache = RankingCache(tmp_path)
        cache.save(KEY, hits_of(*lengths))
        assert as_lists(cache.load(KEY)) == as_lists(hits_of(*lengths))

    def test_scores_come_back_in_single_precision(self, tmp_path):
        cache = RankingCache(tmp_path)
        cache.save(KEY, [(np.array([7], dtype=np.int64), np.array([0.1], dtype=np.float64))])
        [(positions, scores)] = cache.load(KEY)
        assert (positions.tolist(), scores.tolist()) == ([7], [float(np.float32(0.1))])

    def test_saving_again_replaces(self, tmp_path):
        cache = RankingCache(tmp_path)
        cache.save(KEY, hits_of(3))
        cache.save(KEY, hits_of(1, 1))
        assert as_lists(cache.load(KEY)) == as_lists(hits_of(1, 1))

    def test_no_pickle(self, tmp_path, caplog):
        """An array of objects would need a pickle, which is not read."""
        cache = RankingCache(tmp_path)
        buffer = io.BytesIO()
        np.savez(buffer, lengths=np.array([object()]), positions=np.empty(0, np.int32), scores=np.empty(0, np.float32))
        (tmp_path / f"{KEY}.npz").write_bytes(buffer.getvalue())
        assert cache.load(KEY) is None
        (tmp_path / f"{KEY}.npz").write_bytes(pickle.dumps([1]))
        assert cache.load(KEY) is None
        assert caplog.text.count("retrieving again") == 2

    @pytest.mark.parametrize(
        "arrays",
        [
            {"lengths": np.array([2]), "positions": np.zeros(1, np.int32), "scores": np.zeros(2, np.float32)},
            {"lengths": np.array([1]), "positions": np.zeros(2, np.int32), "scores": np.zeros(2, np.float32)},
            {"lengths": np.array([3, -1]), "positions": np.zeros(2, np.int32), "scores": np.zeros(2, np.float32)},
            {"lengths": np.array([2]), "positions": np.zeros(2, np.int64), "scores": np.zeros(2, np.float32)},
            {"lengths": np.array([2]), "positions": np.zeros((2, 1), np.int32), "scores": np.zeros(2, np.float32)},
            {"lengths": np.array([2]), "positions": np.zeros(2, np.int32)},
        ],
    )
    def test_arrays_that_do_not_fit(self, tmp_path, arrays):
        np.savez(tmp_path / f"{KEY}.npz", **arrays)
        assert RankingCache(tmp_path).load(KEY) is None

    @pytest.mark.long
    def test_every_truncation_and_every_changed_byte(self, tmp_path):
        """The hits that were saved, or none: never others, never an exception."""
        cache, path = RankingCache(tmp_path), tmp_path / f"{KEY}.npz"
        logging.getLogger("ragqa.evaluation.ranking_cache").setLevel(logging.CRITICAL)
        try:
            cache.save(KEY, hits_of(2, 1))
            content, expected = path.read_bytes(), as_lists(hits_of(2, 1))
            for place in range(len(content)):
                path.write_bytes(content[:place])
                assert cache.load(KEY) is None, place
                path.write_bytes(content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :])
                found = cache.load(KEY)
                assert found is None or as_lists(found) == expected, place
        finally:
            logging.getLogger("ragqa.evaluation.ranking_cache").setLevel(logging.NOTSET)
        cache.save(KEY, hits_of(4))
        assert as_lists(cache.load(KEY)) == as_lists(hits_of(4))

    def test_a_folder_in_the_place_of_the_file(self, tmp_path):
        (tmp_path / f"{KEY}.npz").mkdir()
        cache = RankingCache(tmp_path)
        assert cache.load(KEY) is None
        cache.save(KEY, hits_of(1))
        assert cache.load(KEY) is None

    def test_a_file_in_the_place_of_the_folder(self, tmp_path, caplog):
        (tmp_path / "cache").write_text("")
        cache = RankingCache(tmp_path / "cache")
        cache.save(KEY, hits_of(1))
        assert cache.load(KEY) is None
        assert "going on without it" in caplog.text

    @pytest.mark.parametrize("key", ["", "../" + "a" * 61, "A" * 64, "a" * 63, "a" * 64 + "\n"])
    def test_only_keys(self, tmp_path, key):
        with pytest.raises(ValueError, match="expected a key of `ranking_key`"):
            RankingCache(tmp_path).load(key)

    @pytest.mark.parametrize(
        ("positions", "scores", "message"),
        [
            ([1, 2], [1.0], r"found \(2,\) and \(1,\)"),
            ([[1]], [[1.0]], r"found \(1, 1\)"),
            ([-1], [1.0], "found -1 to -1"),
            ([2**31], [1.0], "positions from 0 to 2"),
        ],
    )
    def test_what_cannot_be_hits(self, tmp_path, positions, scores, message):
        with pytest.raises(ValueError, match=message):
            RankingCache(tmp_path).save(KEY, [(np.array(positions), np.array(scores))])
        assert names_in(tmp_path) == []

    # The bound

    def test_the_least_recently_used_is_dropped(self, tmp_path):
        cache = RankingCache(tmp_path)
        for age, key in ((300, KEY), (200, OTHER)):
            cache.save(key, hits_of(5))
            os.utime(tmp_path / f"{key}.npz", (0, 1_000_000 - age))
        size = (tmp_path / f"{KEY}.npz").stat().st_size
        assert cache.load(KEY) is not None  # now used after OTHER
        bounded = RankingCache(tmp_path, max_bytes=2 * size)
        bounded.save(THIRD, hits_of(5))
        assert bounded.load(OTHER) is None
        assert bounded.load(KEY) is not None
        assert bounded.load(THIRD) is not None

    def test_the_bound_holds_over_many(self, tmp_path):
        RankingCache(tmp_path).save(KEY, hits_of(5))
        size = (tmp_path / f"{KEY}.npz").stat().st_size
        cache = RankingCache(tmp_path, max_bytes=3 * size + 10)
        for top_k in range(10):
            cache.save(ranking_key("i", "r", top_k, []), hits_of(5))
        files = list(tmp_path.iterdir())
        assert len(files) == 3
        assert sum(file.stat().st_size for file in files) <= 3 * size + 10
        assert cache.load(ranking_key("i", "r", 9, [])) is not None

    def test_hits_over_the_bound_alone_are_not_kept(self, tmp_path):
        cache = RankingCache(tmp_path, max_bytes=100)
        cache.save(KEY, hits_of(5))
        assert cache.load(KEY) is None

    def test_files_of_others_stay_and_those_of_the_dead_go(self, tmp_path):
        for name in ("notes.npz", ".ranking-young.new", ".ranking-dead.new"):
            (tmp_path / name).write_bytes(b"x" * 1000)
        os.utime(tmp_path / ".ranking-dead.new", (0, 0))
        RankingCache(tmp_path, max_bytes=10).save(KEY, hits_of(1))
        assert names_in(tmp_path) == [".ranking-young.new", "notes.npz"]

    # Crashes

    @pytest.mark.parametrize("step", ["fsync", "replace"])
    def test_a_full_disk_leaves_the_old_file(self, tmp_path, monkeypatch, caplog, step):
        cache = RankingCache(tmp_path)
        cache.save(KEY, hits_of(1))

        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, step, full)
        cache.save(KEY, hits_of(2))
        assert "No space left on device" in caplog.text
        assert as_lists(cache.load(KEY)) == as_lists(hits_of(1))
        assert names_in(tmp_path) == [f"{KEY}.npz"]

    def test_killed_before_the_rename(self, tmp_path):
        cache = RankingCache(tmp_path)
        cache.save(KEY, hits_of(1))
        code = (
            "import os, signal, sys, numpy as np\nfrom pathlib import Path\n"
            "from ragqa.evaluation.ranking_cache import RankingCache\n"
            "os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
            "RankingCache(Path(sys.argv[1])).save(sys.argv[2], [(np.arange(9), np.ones(9))])\n"
        )
        root = Path(__file__).resolve().parents[2]
        died = subprocess.run([sys.executable, "-c", code, str(tmp_path), KEY], cwd=root, check=False)
        assert died.returncode == -signal.SIGKILL
        assert as_lists(cache.load(KEY)) == as_lists(hits_of(1))
        [left] = tmp_path.glob(".ranking-*.new")
        os.utime(left, (0, 0))
        cache.save(KEY, hits_of(2))
        assert names_in(tmp_path) == [f"{KEY}.npz"]

    def test_a_plain_npz(self, tmp_path):
        RankingCache(tmp_path).save(KEY, hits_of(2, 1))
        with zipfile.ZipFile(tmp_path / f"{KEY}.npz") as archive:
            assert sorted(archive.namelist()) == ["lengths.npy", "positions.npy", "scores.npy"]


def test_every_part_of_the_key_counts():
    keys = [
        ranking_key("index", "bm25", 100, ["a", "b"]),
        ranking_key("index 2", "bm25", 100, ["a", "b"]),
        ranking_key("index", "bm25 b=0.4", 100, ["a", "b"]),
        ranking_key("index", "bm25", 10, ["a", "b"]),
        ranking_key("index", "bm25", 100, ["b", "a"]),
        ranking_key("index", "bm25", 100, ["ab"]),
        ranking_key("index", "bm25", 100, ["a", "b", ""]),
        ranking_key("indexbm25", "", 100, ["a", "b"]),
    ]
    assert len(set(keys)) == len(keys)
    assert ranking_key("index", "bm25", 100, ("a", "b")) == keys[0]
    assert ranking_key("index", "bm25", 100, ["a\ud800"])
