"""The questions of RAGQA_DATA/claims, asked of an index of all its passages: which are answered, and which refused.

Half of them are near misses, which their own passage does not answer; another passage may. With `--verdicts` its claims
are judged instead, each by the ten passages that retrieval finds for it. Run::

    python -m tests.benchmarks.claim_questions RAGQA_DATA/claims/claims.jsonl --fold 0
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import typer

from ragqa.index.build import build_index
from ragqa.lab.claims import FOLDS, ClaimedPassage, ClaimQuestion, fold_of, read_claims
from ragqa.lab.training.claim_verdicts import LABELS, claim_rates, judge_claims
from ragqa.loading import load_encoder
from ragqa.pipeline import Pipeline, load_pipeline
from ragqa.settings.config import Config, IndexingConfig
from ragqa.settings.paths import Paths
from ragqa.types import Passage, Question
from ragqa.types.streams import returned

LONGEST = 700  # words; no passage is longer, so that each stays whole
SOURCES = 10  # passages that a claim is judged by


def claim_questions(claims: Path, fold: int = typer.Option(0, min=0, max=FOLDS - 1), *, verdicts: bool = False) -> None:
    """Prints a line for each question of the fold, and the shares; or the rates of verdicts on its claims."""
    passages = read_claims(claims)
    with TemporaryDirectory() as folder:
        pipeline = pipeline_of(passages, Path(folder))
        of_fold = [one for one in passages if fold_of(one.id) == fold]
        (_print_rates if verdicts else _print_questions)(of_fold, pipeline)


def _print_questions(passages: list[ClaimedPassage], pipeline: Pipeline) -> None:
    first, answered, refused = [], [], []
    for passage, question in ((one, question) for one in passages for question in one.questions):
        text, state = answer_of(question, pipeline)
        print(state, question.answerable, question.text, text[:120], sep=" | ")
        if not question.answerable:
            refused.append(state == "not found")
            continue
        answered.append(state != "not found")
        if len(passage.sentences) > 1:
            first.append(bool(text) and is_of(text, [passage.sentences[n] for n in question.sentences]))
    for name, found in (("right sentence first", first), ("answered", answered), ("near misses refused", refused)):
        print(f"{name}: {sum(found)} of {len(found)}, {sum(found) / len(found):.2f}")


def _print_rates(passages: list[ClaimedPassage], pipeline: Pipeline) -> None:
    def retrieved(text: str) -> list[Passage]:
        return [hit.passage for hit in pipeline.search(text).hits[:SOURCES]]

    scorer = pipeline.models.scorer(pipeline.config.scoring)
    rates = claim_rates([one for found in judge_claims(passages, scorer, retrieved) for one in found])
    print(f"balanced {rates.balanced:.3f}")
    for gold in LABELS:
        print(gold, ", ".join(f"called {said} {rates.share(gold, said):.3f}" for said in LABELS))


def pipeline_of(passages: tuple[ClaimedPassage, ...], folder: Path) -> Pipeline:
    """The default pipeline over an index of these passages, which is built in ``folder``."""
    source = folder / "passages.jsonl"
    rows = ({"id": one.id, "title": one.title, "text": " ".join(one.sentences)} for one in passages)
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    paths = replace(Paths.from_env(), indexes=folder / "indexes")
    config = IndexingConfig(chunk_max_tokens=LONGEST)
    build_index("claims", source, indexes=paths.indexes, config=config, encoder=load_encoder(config.encoder))
    return load_pipeline(replace(Config.from_env(), index="claims"), paths, recording=False)


def answer_of(question: ClaimQuestion, pipeline: Pipeline) -> tuple[str, str]:
    """The first sentence of the answer and its state; a refusal has no sentence."""
    ranking = pipeline.search(question.text)
    answer, _ = returned(pipeline.generator.stream_searching(Question(question.text), ranking, pipeline.search))
    return (answer.sentences[0].text if answer.sentences else ""), answer.state


def is_of(text: str, gold: list[str]) -> bool:
    """Whether the text is one of the gold sentences, a part of one, or holds one."""
    return any(text in " ".join(one.split()) or " ".join(one.split()) in text for one in gold)


if __name__ == "__main__":
    typer.run(claim_questions)
