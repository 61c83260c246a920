"""The sixth benchmark is one folder, which no other code names; what it adds to retrieval is right."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import ragqa
from ragqa.cli import app
from ragqa.evaluation.catalogue import benchmark_of

FOLDER = Path(ragqa.__file__).parent / "evaluation" / "benchmarks" / "hotpotqa"


def test_it_is_one_folder_and_no_other_code_names_it():
    root = Path(ragqa.__file__).parents[1]
    files = [*root.glob("*.toml"), root / "app.py", *(root / "ragqa").rglob("*.py")]
    naming = [
        path.relative_to(root).as_posix()
        for path in files
        if FOLDER not in path.parents and re.search(rf"evaluation[./]{FOLDER.name}\b", path.read_text(encoding="utf-8"))
    ]
    assert naming == []
    assert benchmark_of("hotpotqa").title == "HotpotQA, two documents"


@pytest.mark.model
def test_both_documents_are_counted_for_every_configuration(tmp_path):
    questions = tmp_path / "two.jsonl"
    source = Path(ragqa.__file__).parent / "corpus" / "demo" / "encyclopedia" / "questions.json"
    items = json.loads(source.read_text(encoding="utf-8"))[:5]
    lines = [
        {"question": item["Question"], "gold_passage_ids": sorted({proof["DocumentID"] for proof in item["Evidence"]})}
        for item in items
    ]
    questions.write_text("".join(json.dumps(line) + "\n" for line in lines))
    options = ["eval", "hotpotqa", "--index", "encyclopedia", "--questions", str(questions), "--fan-out", "--json"]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert set(report["both"]) == set(report["measures"])
    for name, both in report["both"].items():
        assert 0 <= both["both@2"] <= both["both@5"] <= both["both@10"] <= report["measures"][name]["R@10"] <= 1
    plain = CliRunner().invoke(app, options[:-1], env={"COLUMNS": "150"})
    assert "both documents of 5 questions" in plain.stdout
