"""Made questions beside real ones, and validation on both: `python -m tests.benchmarks.made_questions WHAT …`.

``transfer --index adgm --made DIR/export/obliqa/all.json --real FILE``: MAP@10 of eight rankings on both, Kendall's tau
between the two orders with its bootstrap interval (questions of both drawn anew), and what a ranker that learnt from
the made questions alone gains on the real ones. The ranker is out of fold on the made ones.
``validation --index adgm --real FILE [--limit N] [--wrong 2000]``: how many real pairs of question and gold passage,
and how many wrong pairs (one drawn from the corpus, and one that BM25 finds), each rule keeps.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from rank_bm25 import BM25Okapi
from scipy.stats import kendalltau

from ragqa import loading
from ragqa.cli.rankings import rankings_of
from ragqa.cli.train_ranking import asked_index
from ragqa.corpus.questions import GoldQuestion, load_gold
from ragqa.english.words import stemmer, words_of
from ragqa.evaluation.measures import measure_run
from ragqa.evaluation.significance import paired_test
from ragqa.fusion import fuse, rerank
from ragqa.index import Index, open_index
from ragqa.lab.dataset.validating import COVERED, Validator, cover, kept_by_rirag
from ragqa.lab.questions import folds_by_gold
from ragqa.lab.training import ranker as ranking
from ragqa.lab.training.retriever import text_numbers, with_equal_gold
from ragqa.retrieval.ranking import fitting_fusion
from ragqa.settings.config import Config, FusionConfig, IndexingConfig, RerankingConfig, ScoringConfig
from ragqa.settings.paths import Paths
from ragqa.types import Ranking, ScoredPassage

DRAWN, DEPTH, MEASURE = 2_000, 50, "AP@10"
ANSWERED, NEAR = 500, 500  # pairs that the direct writer reads; wrong pairs that BM25 finds
LEARNED = RerankingConfig("learned", DEPTH, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("transfer", "validation"))
    parser.add_argument("--index", default="adgm")
    parser.add_argument("--made", type=Path)
    parser.add_argument("--real", type=Path, required=True)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--wrong", type=int, default=2_000)
    options = parser.parse_args()
    (transfer if options.what == "transfer" else validation)(options)


def transfer(options: argparse.Namespace) -> None:
    made = asked_index(options.index, [options.made])
    index, texts = made.index, text_numbers(made.texts)
    real = list(load_gold(options.real, index.passages)[0])[: options.limit]
    documents = Documents(index)
    found, learnt = {}, []
    for name, gold in (("made", made.learnt), ("real", real)):
        columns, _ = rankings_of(tuple(gold), index, Config(options.index))
        by_question = [
            dict(zip([c[n].retriever for c in columns], [c[n] for c in columns], strict=True)) for n in range(len(gold))
        ]
        systems = [_systems(one, of, documents, index) for one, of in zip(gold, by_question, strict=True)]
        fused = [of["default"] for of in systems]
        rows = list(ranking.gather(gold, fused, ranking.RankerTraining(depth=DEPTH), index, texts))
        if name == "made":
            parts = folds_by_gold(with_equal_gold(gold, index.position_of, texts), 5)
            *_, scores = ranking.out_of_fold(rows, parts, ranking.RankerTraining())
            learnt = rows
        else:
            booster = ranking.train(learnt, ranking.RankerTraining())
            scores = [ranking.scored(booster, one) for one in rows]
        for of, score in zip(systems, scores, strict=True):
            of["learned ranker"] = rerank(of["default"], score, LEARNED)
        found[name] = _values(gold, systems)
    names = list(found["made"])
    for name in names:
        print(f"{name:16} made {found['made'][name].mean():.4f}   real {found['real'][name].mean():.4f}")
    test = paired_test(found["real"]["learned ranker"].tolist(), found["real"]["default"].tolist())
    interval = f"[{test.low:+.4f}, {test.high:+.4f}], p = {test.p_value:.4f}"
    print(f"learned from made, on real: {test.mean_difference:+.4f} {interval}", flush=True)
    chance = np.random.default_rng(0)
    tables = {name: np.array([of[one] for one in names]) for name, of in found.items()}

    def tau(draw: bool) -> float:
        means = []
        for table in tables.values():
            n = table.shape[1]
            means.append(table[:, chance.integers(0, n, n)].mean(axis=1) if draw else table.mean(axis=1))
        return float(kendalltau(*means).statistic)

    draws = [tau(draw=True) for _ in range(DRAWN)]
    print(f"Kendall's tau {tau(draw=False):.2f} [{np.quantile(draws, 0.025):.2f}, {np.quantile(draws, 0.975):.2f}]")


def _systems(one: GoldQuestion, of: Mapping[str, Ranking], documents: Documents, index: Index) -> dict[str, Ranking]:
    every = tuple(of.values())
    default = fitting_fusion(FusionConfig(), index.manifest.retrievers, index.manifest.encoder, index.name)
    fused = fuse(every, default)
    return {
        **{name: of[name] for name in ("bm25", "context", "dense")},
        "bm25 + dense": fuse((of["bm25"], of["dense"]), FusionConfig.of(bm25=0.6, dense=0.4)),
        "default": fused,
        "RRF": fuse(every, FusionConfig("rrf", default.weights)),
        "document fusion": documents.fused(one.question.text, fused),
    }


class Documents:
    """BM25 over whole documents, at a weight of .1 beside the fused score, as in RIRAG's table 4."""

    def __init__(self, index: Index) -> None:
        words: dict[str, list[str]] = {}
        for passage in index.passages:
            words.setdefault(passage.document_id, []).extend(_stems(passage.text))
        self.place = {name: n for n, name in enumerate(words)}
        self.bm25 = BM25Okapi(list(words.values()))

    def fused(self, question: str, ranking: Ranking) -> Ranking:
        scores = np.asarray(self.bm25.get_scores(_stems(question)))
        spread = float(np.ptp(scores)) or 1.0
        best, least = (f(hit.score for hit in ranking.hits) for f in (max, min))
        hits = [
            ScoredPassage(
                hit.passage,
                0.9 * (hit.score - least) / ((best - least) or 1.0)
                + 0.1 * float(scores[self.place[hit.passage.document_id]] - scores.min()) / spread,
            )
            for hit in ranking.hits
        ]
        return Ranking.of("document fusion", hits)


def _stems(text: str) -> list[str]:
    return [stemmer("english").stemWord(word.lower) for word in words_of(text)]


def _values(gold: Sequence[GoldQuestion], systems: Sequence[Mapping[str, Ranking]]) -> dict[str, np.ndarray]:
    return {
        name: np.array(
            measure_run(
                [one.gold for one in gold],
                [[hit.passage.passage_id for hit in of[name].hits] for of in systems],
                (MEASURE,),
            )[MEASURE]
        )
        for name in systems[0]
    }


def validation(options: argparse.Namespace) -> None:
    index = open_index(options.index, Paths.from_env().indexes)
    real = [one for one in load_gold(options.real, index.passages)[0] if one.gold][: options.limit]
    nli = loading.load_nli(ScoringConfig().entailment_model, paths=Paths.from_env())
    encoder = loading.load_encoder(IndexingConfig().encoder)
    validator = Validator(index, (), FusionConfig(), nli, encoder)
    chance = random.Random(1)
    columns, _ = rankings_of(tuple(real), index, Config(options.index))
    right = [(one.question.text, name) for one in real for name in sorted(one.gold) if name in index.position_of]
    asked = [chance.choice(range(len(real))) for _ in range(options.wrong)]
    shown = [n for n, hidden in enumerate(index.hidden) if not hidden and len(index.passages[n].text.split()) >= 12]
    far, near = [], []
    for n in asked:
        others = [
            hit.passage.passage_id for hit in columns[0][n].hits[:10] if hit.passage.passage_id not in real[n].gold
        ]
        far.append((real[n].question.text, index.passages[chance.choice(shown)].passage_id))
        if len(near) < NEAR:
            near.append((real[n].question.text, chance.choice(others)))
    if options.limit is None and len(right) > options.wrong:
        right = chance.sample(right, options.wrong)
    for name, pairs in (("gold", right), ("wrong, drawn", far), ("wrong, found by BM25", near)):
        passages = [index.passages[index.position_of[one]] for _, one in pairs]
        scores = nli.predict([(passage.text, question) for (question, _), passage in zip(pairs, passages, strict=True)])
        rirag = [kept_by_rirag(one) for one in scores]
        covers = [cover(question, passage) >= COVERED for (question, _), passage in zip(pairs, passages, strict=True)]
        n = min(ANSWERED, len(pairs))
        ours = [
            covered and validator.answered(question, passage)
            for covered, (question, _), passage in zip(covers[:n], pairs[:n], passages[:n], strict=True)
        ]
        labels = [max(("contradiction", "entailment", "neutral"), key=lambda key: getattr(one, key)) for one in scores]
        shares = ", ".join(f"{key} {labels.count(key) / len(labels):.3f}" for key in sorted(set(labels)))
        kept = f"rirag {np.mean(rirag):.3f}, covered {np.mean(covers):.3f}, ours {np.mean(ours):.3f} (of {n})"
        print(f"{name:22} {len(pairs):,} pairs: {kept}; {shares}", flush=True)


if __name__ == "__main__":
    main()
