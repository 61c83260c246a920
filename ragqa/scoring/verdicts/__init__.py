"""Verdicts on answer sentences and obligations, by rules beside RePASs. Start at `ragqa.scoring.verdicts.judge`."""

RULES_VERSION = "6"  # what records name; raised with every change of a rule
