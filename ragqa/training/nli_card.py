"""The model card that `ragqa train nli` writes beside the weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from ragqa.training.loop import Progress
from ragqa.training.nli import NliTraining
from ragqa.training.nli_data import LABELS, LabelledPair


def model_card(
    name: str,
    training: NliTraining,
    base_fingerprint: str,
    pairs: Sequence[LabelledPair],
    last: Progress,
    scores: Sequence[tuple[str, str]] = (),
) -> str:
    """The card as Markdown. ``scores`` are (what and by which command, the figure), measured afterwards."""
    sets = Counter(pair.source for pair in pairs)
    labels = Counter(LABELS[pair.label] for pair in pairs)
    settings = ", ".join(f"{key} {value}" for key, value in asdict(training).items() if key != "base")
    rows = "\n".join(f"| {what} | {figure} |" for what, figure in scores) or "| not measured yet | |"
    used = "\n".join(f"| {source} | {count:,} |" for source, count in sets.most_common())
    held_out = "not measured" if last.held_out is None else f"{last.held_out:.4f}"
    return f"""# {name}: does one sentence entail or contradict another?

A three-way NLI cross-encoder (labels {", ".join(LABELS)}), weights in half precision as safetensors. Used by RePASs.
Made by `ragqa train nli`; English only.

## Scores of exactly these weights

| what | figure |
|---|---|
{rows}

Accuracy on training pairs held out, at the end: {held_out}.

## Trained on

{len(pairs):,} pairs ({", ".join(f"{count:,} {label}" for label, count in labels.most_common())}), {last.steps:,} steps
from `{training.base}` (weights {base_fingerprint[:12]}). Settings: {settings}.

| set | pairs per epoch |
|---|---|
{used}

Sets named `made_…` are made from the sentences of documents at training time (`ragqa/training/nli_made_pairs.py`):
quotations and rewordings (entailment), a sentence with its neighbours as premise (entailment), changed numbers, duties
and denials (contradiction), sentences of one document that do not bear on each other (neutral). `made_quoting` are
sentences of written answers and their sources, labelled by the words they share; nobody checked those labels. No
sentence is stored in the weights' folder.
"""
