"""Verdicts on answer sentences and obligations, by rules beside RePASs. Start at `ragqa.scoring.verdicts.judge`."""

from pathlib import Path

RULES_VERSION = "8"  # what records name; raised with every change of a rule
RATES = Path(__file__).with_name("rates.json")  # how often they are wrong, by kind: `ragqa eval claims --out`
