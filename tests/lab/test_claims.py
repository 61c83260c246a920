"""The labelled claims are read as they stand, and their folds part documents."""

from collections import Counter

import pytest

from ragqa.lab.claims import FOLDS, fold_of, read_claims, read_gaps
from tests.conftest import DATA as SHARED

DATA = SHARED / "claims"


def test_documents_and_near_duplicates_share_a_fold():
    assert fold_of("adgm:21:1.2") == fold_of("adgm:37:9.(1)")
    assert fold_of("adgm:6:1") == fold_of("adgm:7:3.3")
    assert fold_of("adgm:15:1") == fold_of("adgm:16:1")
    assert 0 <= fold_of("hotpot:1371") < FOLDS


@pytest.mark.data
def test_every_passage_and_rule_has_a_fold_of_about_a_fifth():
    if not (DATA / "claims.jsonl").is_file():
        pytest.skip(f"no labelled claims in {DATA}; set RAGQA_DATA to the folder of the data sets")
    passages = read_claims(DATA / "claims.jsonl")
    sizes = Counter(fold_of(passage.id) for passage in passages)
    assert len(passages) == 880
    assert all(0.15 < sizes[fold] / len(passages) < 0.25 for fold in range(FOLDS)), sizes
    labels = Counter(claim.label for passage in passages for claim in passage.claims)
    assert labels == {"supported": 1760, "contradicted": 1760, "unsupported": 1760}
    assert Counter(text.label for gap in read_gaps(DATA / "gaps.jsonl") for text in gap.texts).total() == 261
