"""`python -m tests.benchmarks.planted_gaps RUN.json [--sealed]`: how many of the planted gaps `ragqa gaps` finds.

RUN.json is what `ragqa gaps rulebook policies --document 8 --document 9 --json` wrote. The sealed half is read once,
when the work is done.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from ragqa.lab.training.claim_verdicts import Rates

NO_ROW = {"label": "not in the register", "words": []}  # wrong, whatever the case is labelled
PLANTED = Path(__file__).parents[1] / "library" / "planted_gaps.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("run", type=Path)
    parser.add_argument("--sealed", action="store_true")
    arguments = parser.parse_args()
    rows = {one["row"]["obligation_id"]: one for one in json.loads(arguments.run.read_text(encoding="utf-8"))["rows"]}
    rates, n_named = Rates({}, {}), 0
    for case in map(json.loads, PLANTED.read_text(encoding="utf-8").splitlines()):
        if case["sealed"] is not arguments.sealed:
            continue
        row = rows.get(case["obligation_id"], {"readings": [{**NO_ROW, "document_id": case["policy"]}]})
        readings = (one for one in row["readings"] if one["document_id"] == case["policy"])
        reading = next(readings, {"label": "not found", "words": []})
        said = reading["label"].replace("not found", "absent")
        rates.counts.setdefault(case["label"], Counter())[said] += 1
        parts = case["words"].split(", ") if case["label"] == said == "partly" else []
        n_named += any(words in " ".join(reading["words"]) for words in parts)
    for label, counts in rates.counts.items():
        print(label, dict(counts))
    wrong = [rates.counts[label] for label in ("conflicts", "absent")]
    n_covered, n_wrong = sum(one["covered"] for one in wrong), sum(map(Counter.total, wrong))
    print(
        f"balanced accuracy {rates.balanced:.3f}; missing part named in {n_named} of {rates.counts['partly'].total()}"
    )
    print(f"covered though absent or conflicting: {n_covered} of {n_wrong}")


if __name__ == "__main__":
    main()
