"""The last stages: removing near duplicates, splits without leakage, statistics like RIRAG's tables, the card. Pure."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ragqa.lab.dataset.selecting import vectors_of
from ragqa.lab.dataset.stages import Row
from ragqa.lab.dataset.validating import FUSED

DUPLICATE: Final = 0.8  # cosine, over words and pairs of words, from which two questions are the same
SPLITS: Final = {"train": 0.8, "dev": 0.1, "test": 0.1}  # RIRAG's table 6


def duplicates(questions: Sequence[str]) -> list[int | None]:
    """For each question, the position of an earlier, new question that asks nearly the same; None for a new one."""
    found: list[int | None] = [None] * len(questions)
    if len(questions) < 2:
        return found
    vectors = vectors_of([one.split(": ")[-1] for one in questions], every=True)[0]  # without the persona
    for place in range(1, len(questions)):
        near = (vectors[:place] @ vectors[place].T).toarray().ravel().round(6)
        earlier = [n for n in range(place) if near[n] >= DUPLICATE and found[n] is None]
        found[place] = earlier[0] if earlier else None
    return found


def relevant_only(row: Row, labels: Mapping[str, str]) -> Row:
    """The row without passages that experts found irrelevant or null, and without their ranks.

    ``labels`` are the experts' by ``"question passage"``.
    """
    names = [labels.get(f"{row['id']} {one}", "relevant") for one in row["passages"]]
    stay = [place for place, name in enumerate(names) if name in ("relevant", "indirect")]
    ranks = {name: [of[place] for place in stay if place < len(of)] for name, of in row["ranks"].items()}
    return {**row, "passages": [row["passages"][place] for place in stay], "ranks": ranks}


def split(rows: Sequence[Row], section_of: Mapping[str, str], seed: int) -> list[str]:
    """Train, dev or test for each question, so that no gold passage and no section is in two splits.

    Questions that share one form a set. Whole sets are dealt, the largest first, each to the split that lacks most.
    ``section_of`` gives a passage's document and section; a passage without a section counts as its own section.
    """
    parents: dict[str, str] = {}

    def root(name: str) -> str:
        while parents.setdefault(name, name) != name:
            parents[name] = name = parents[parents[name]]
        return name

    keys = [sorted({section_of.get(one, one) for one in row["passages"]}) for row in rows]
    for of_one in keys:
        for key in of_one[1:]:
            parents[root(of_one[0])] = root(key)
    sets: defaultdict[str, list[int]] = defaultdict(list)
    for place, of_one in enumerate(keys):
        sets[root(of_one[0])].append(place)
    dealt = sorted(sets.values())
    random.Random(seed).shuffle(dealt)
    found, counts = [""] * len(rows), Counter[str]()
    for places in sorted(dealt, key=len, reverse=True):
        name = max(SPLITS, key=lambda one: SPLITS[one] * len(rows) - counts[one])
        counts[name] += len(places)
        for place in places:
            found[place] = name
    return found


def statistics(rows: Sequence[Row], stages: Mapping[str, int], decisions: Mapping[str, str]) -> dict[str, Any]:
    """Counts by stage, size of group (RIRAG's table 1), split (table 6), label (table 2), kind and so on.

    ``decisions`` are the experts' labels by ``"question passage"``.
    """
    sizes = sorted({len(row["passages"]) for row in rows})

    def by(of: str) -> dict[str, int]:
        return dict(sorted(Counter(str(row[of]) for row in rows).items()))

    groups = {
        name: {"questions": len(of), **{f"{n} passages": sum(len(row["passages"]) == n for row in of) for n in sizes}}
        for name in sorted({f"group {row['group']}" for row in rows})
        for of in [[row for row in rows if f"group {row['group']}" == name]]
    }
    ranks: defaultdict[str, list[int | None]] = defaultdict(list)
    for row in rows:
        for name, of_one in row["ranks"].items():
            ranks[name] += of_one
    labels: dict[str, dict[str, int]] = {}
    for row in rows:
        told = Counter(decisions[key] for one in row["passages"] if (key := f"{row['id']} {one}") in decisions)
        if told:
            of_group = Counter(labels.get(f"group {row['group']}", {})) + told
            labels[f"group {row['group']}"] = dict(of_group)
    return {
        "stages": dict(stages),
        "by_group": groups,
        "by_split": {name: sum(row["split"] == name for row in rows) for name in SPLITS},
        "by_kind": by("kind"),
        "by_persona": by("persona"),
        "by_form": by("form"),
        "by_origin": by("from"),
        "topics": len({row["topic"] for row in rows if row["topic"]}),
        "gold_passages": len({one for row in rows for one in row["passages"]}),
        "words_a_question": round(sum(len(row["question"].split()) for row in rows) / (len(rows) or 1), 1),
        "difficulty": {
            name: {
                f"first {k}": round(sum(one is not None and one <= k for one in of) / len(of), 3) for k in (1, 10, 100)
            }
            for name, of in ranks.items()
            if of
        },
        "labels": labels,
    }


def card(name: str, found: Mapping[str, Any], stamp: Mapping[str, Any], command: str) -> str:
    """The data card: the set's content, how it was made, its figures, and its limits."""
    fused = found["difficulty"].get(FUSED, {})
    tables = "\n\n".join(
        f"### {title}\n\n| | |\n|---|---|\n" + "\n".join(f"| {key} | {value} |" for key, value in found[of].items())
        for title, of in (
            *(("Stages", "stages"), ("Splits", "by_split"), ("Kinds", "by_kind"), ("Personas", "by_persona")),
            *(("Forms", "by_form"), ("Where groups are from", "by_origin")),
        )
    )
    sizes = "\n".join(
        f"| {group} | " + ", ".join(f"{key}: {value}" for key, value in of.items()) + " |"
        for group, of in found["by_group"].items()
    )
    labels = "\n".join(f"| {group} | {of} |" for group, of in found["labels"].items()) or "| none yet | |"
    return f"""# {name}: questions made of a corpus

Made by `{command}` with ragqa {stamp["ragqa_version"]}; questions by {stamp["writer"]}; index sha256
{stamp["index_sha256"][:12]}; seed {stamp["seed"]}. No real question was used.

{sum(found["by_split"].values()):,} questions on {found["gold_passages"]:,} gold passages, {found["topics"]} topics,
{found["words_a_question"]} words per question. The default ranking has {fused.get("first 10", 0):.0%} of
the gold passages among its first ten; how hard a question is to find was recorded and did not select it.

{tables}

### By size of group (RIRAG, table 1)

| group | questions, and how many have each number of passages |
|---|---|
{sizes}

### Experts' labels (RIRAG, table 2)

| group | labels |
|---|---|
{labels}

## What it is for, and what not

To compare settings, and to train rankers and retrievers, on this corpus. Gold is incomplete: other passages may
answer a question too, so figures are lower bounds. Questions made by rules are close to their passage's
words, so lexical rankings look better than on real questions. No gold passage and no section is in two
splits. Labels by experts decide where there are any. The texts of the passages belong to whoever owns the corpus.
"""


def in_proportion(rows: Sequence[Row], n: int) -> list[Row]:
    """The first ``n`` rows, with questions on one and on several passages in their original proportion."""
    if len(rows) <= n:
        return list(rows)
    several = [row for row in rows if row["group"] > 1]
    n_several = min(len(several), round(n * len(several) / len(rows)))
    single = [row for row in rows if row["group"] == 1][: n - n_several]
    return [*single, *several[:n_several]]
