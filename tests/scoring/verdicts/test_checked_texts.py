"""Twenty texts with known faults, written before any of them was checked: what is found, missed, wrongly accused.

With the lists: ``pytest -m slow -s tests/scoring/verdicts/test_checked_texts.py``. A wrong number is found where its
sentence is called contradicted; a dropped exception where its sentence is not called supported; a missing obligation
where it is among those that the text does not cover in full. A sentence without a fault is accused where it is
contradicted, and not recognised where nothing is said to support it.
"""

import json
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from ragqa.index import open_index
from ragqa.loading import load_models
from ragqa.pipeline import assemble
from ragqa.settings.config import Config
from ragqa.settings.paths import Paths
from ragqa.types.events.scoring import Scored
from ragqa.types.scores import Cover, Verdict

TEXTS = Path(__file__).parents[2] / "fixtures" / "checked" / "texts.jsonl"
ACCUSED = {Verdict.CONTRADICTED, Verdict.DISAGREEING}
pytestmark = [pytest.mark.model, pytest.mark.slow]  # 20 texts, a few seconds each


@pytest.fixture(scope="module")
def checked():
    """Each text with its final breakdown."""
    texts = [json.loads(line) for line in TEXTS.read_text(encoding="utf-8").splitlines()]
    config, found = Config(), []
    models = load_models("all-MiniLM-L6-v2", config.scoring)
    for text in texts:
        pipeline = assemble(
            replace(config, index=text["corpus"]), open_index(text["corpus"], Paths.from_env().indexes), models
        )
        events = list(pipeline.check(text["text"], text["question"]))
        scored = next(event for event in events if isinstance(event, Scored))
        found.append((text, scored.paper))
    return found


def is_found(fault, breakdown):
    covers = {one.index: one.cover for one in breakdown.obligation_verdicts}
    if fault["kind"] == "missing obligation":
        told = [covers[one.index] for one in breakdown.obligations if fault["words"] in one.obligation.text]
        return any(cover is not Cover.COVERED for cover in told)
    verdict = breakdown.verdicts[fault["sentence"]].verdict
    return verdict in ACCUSED if fault["kind"] == "wrong number" else verdict is not Verdict.SUPPORTED


def test_what_is_found_missed_and_wrongly_accused(checked):
    found, total, lines = Counter(), Counter(), defaultdict(list)
    for text, breakdown in checked:
        faulty = {fault["sentence"] for fault in text["faults"] if "sentence" in fault}
        for fault in text["faults"]:
            total[fault["kind"]] += 1
            hit = is_found(fault, breakdown)
            found[fault["kind"]] += hit
            lines["found" if hit else "missed"].append(f"{text['id']}: {fault}")
            if "sentence" in fault:
                lines["said"].append(f"{text['id']}: {breakdown.verdicts[fault['sentence']]}")
        for judged in breakdown.verdicts:
            if judged.index in faulty:
                continue
            total["right sentence"] += 1
            words = f"{text['id']}: {breakdown.sentences[judged.index].sentence.text} -> {judged.reason}"
            if judged.verdict in ACCUSED:
                lines["wrongly accused"].append(words)
            elif judged.verdict is not Verdict.SUPPORTED:
                lines["not recognised"].append(words)
            else:
                found["right sentence"] += 1
    for kind, of_kind in lines.items():
        print(f"\n{kind}: {len(of_kind)}", *of_kind, sep="\n  ")
    print({kind: f"{found[kind]} of {count}" for kind, count in total.items()})
    assert found["wrong number"] >= 6  # of 7
    assert found["dropped exception"] >= 4  # of 5
    assert found["missing obligation"] >= 3  # of 5
    assert found["right sentence"] >= 16  # of 25
    assert len(lines["wrongly accused"]) <= 2
