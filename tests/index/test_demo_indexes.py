"""The committed demonstration indexes are what their sources give, and they find the gold passages."""

from dataclasses import replace

import numpy as np
import pytest

from ragqa.corpus.demo import DEMOS
from ragqa.evaluation.measures import means, measure_run
from ragqa.fusion import fuse
from ragqa.index import build_index, open_index, verify_index
from ragqa.retrieval import retrievers_for
from ragqa.settings.config import Config, IndexingConfig
from tests.support.server import ROOT

pytestmark = pytest.mark.model
COMMITTED = ROOT / "indexes"


@pytest.fixture(scope="module")
def encoder():
    from ragqa.retrieval.encoder import BertEncoder

    return BertEncoder(precision="fp32")


@pytest.mark.parametrize("name", [pytest.param("rulebook", marks=pytest.mark.slow), *sorted({*DEMOS} - {"rulebook"})])
def test_rebuilding_gives_the_committed_index(name, encoder, tmp_path):
    demo = DEMOS[name]
    build_index(name, demo.source, indexes=tmp_path, config=IndexingConfig(), encoder=encoder, format=demo.format)
    committed, rebuilt = verify_index(name, COMMITTED), verify_index(name, tmp_path)
    same = {"created": "", "files": (), "libraries": {}}
    assert replace(committed, **same) == replace(rebuilt, **same)
    for file in ("passages.jsonl", "passages.ids.npy", "passages.order.npy", "bm25/vocabulary.npy"):
        assert (COMMITTED / name / file).read_bytes() == (tmp_path / name / file).read_bytes()
    for array in ("data", "indices", "indptr"):
        path = f"{name}/bm25/{array}.csc.index.npy"
        np.testing.assert_allclose(np.load(COMMITTED / path), np.load(tmp_path / path), rtol=1e-5)
    ours, theirs = open_index(name, COMMITTED).vectors, open_index(name, tmp_path).vectors
    np.testing.assert_allclose(ours.reconstruct_n(0, ours.ntotal), theirs.reconstruct_n(0, theirs.ntotal), atol=1e-4)


# What the committed indexes reach with the default settings, less two questions' worth.
@pytest.mark.parametrize(("name", "recall"), [("rulebook", 0.56), ("encyclopedia", 0.87)])
def test_the_example_questions_find_their_gold_passages(name, recall, encoder):
    index = open_index(name, COMMITTED)
    config, questions = Config(), DEMOS[name].questions()
    retrievers = retrievers_for(index, encoder, config.retrieval)
    found = [
        [
            hit.passage.passage_id
            for hit in fuse([r.retrieve(gold.question.text, 100) for r in retrievers], config.fusion).hits
        ]
        for gold in questions
    ]
    assert means(measure_run([gold.gold for gold in questions], found))["R@10"] >= recall
