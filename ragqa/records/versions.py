"""Records of older versions in the form of this one. Pure: a JSON object in, a JSON object out."""

from __future__ import annotations

from typing import Any

# The form in which records are written. Earlier ones: 5 knew no sub-questions, 4 no reranking, 3 no trace of how an
# answer was written, 2 two rankings and one weight, 1 one NLI model for both uses.
SCHEMA_VERSION = 6


def current_version(record: object) -> object:
    """A record of an older version in the form of this one; anything else as it is."""
    if isinstance(record, dict) and record.get("schema_version") == 1:
        record = _with_version_2(record)
    if isinstance(record, dict) and record.get("schema_version") == 2:
        weight = float(record["fusion"]["bm25_weight"])
        fusion = {"method": record["fusion"]["method"], "weights": {"bm25": weight, "dense": 1.0 - weight}}
        record = record | {"fusion": fusion, "schema_version": 3}
    if isinstance(record, dict) and record.get("schema_version") == 3:
        record = record | {"trace": [], "schema_version": 4}
    if isinstance(record, dict) and record.get("schema_version") == 4:
        record = record | {"reranking": {}, "reranker_scores": [], "schema_version": 5}
    if isinstance(record, dict) and record.get("schema_version") == 5:
        record = record | {"schema_version": SCHEMA_VERSION}
    return record


def _with_version_2(record: dict[str, Any]) -> dict[str, Any]:
    scoring = {**record["scoring"], "coverage_model": record["scoring"]["nli_model"]}
    scoring["entailment_model"] = scoring.pop("nli_model")
    models = {**record["models"], "coverage": record["models"]["nli"]}
    models["entailment"] = models.pop("nli")
    scored = record.get("scored") and {mode: _with_two_models(found) for mode, found in record["scored"].items()}
    return record | {"scoring": scoring, "models": models, "scored": scored, "schema_version": 2}


def _with_two_models(evaluation: dict[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in evaluation.items() if name != "nli_model"}
    return rest | {"entailment_model": evaluation["nli_model"], "coverage_model": evaluation["nli_model"]}
