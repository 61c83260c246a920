"""Verdicts on answer sentences and obligations, by rules beside RePASs. Start at `ragqa.scoring.verdicts.judge`."""

from pathlib import Path

RULES_VERSION = "12"  # named in records; raise it with every change of a rule
RATES = Path(__file__).with_name("rates.json")  # error rates of verdicts by kind, from `ragqa eval claims --out`
