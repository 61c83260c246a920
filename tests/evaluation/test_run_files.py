"""Rankings on disk: TREC runs, JSON lines per question and the cache of rankings."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragqa.errors import CorpusError, RecordError
from ragqa.evaluation.measures import MEASURES, measure_run
from ragqa.evaluation.run_files import QuestionResult, write_per_question, write_run
from ragqa.types import Ranking, ScoredPassage
from tests.support.fakes import passage, ranking
from tests.support.made import read_run


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
        assert read_run(path) == {"q2": (("a", pytest.approx(0.7)), ("b", pytest.approx(0.1))), "q1": (("c", -3.5),)}
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
    def test_a_folder_that_is_not_there(self, tmp_path, write):
        with pytest.raises(RecordError, match="cannot be written .*choose a file in a folder you may write to"):
            write(tmp_path / "none" / "run.txt")
