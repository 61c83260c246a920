"""Gold places of documents: what comes back of them, and the table that says it."""

import json

import pytest
from typer.testing import CliRunner

from ragqa.cli import app
from ragqa.errors import CorpusError
from ragqa.evaluation.documents import recovered

PAGE = """<html><body><h1>Boats</h1><h2>1 Keepers</h2>
<p>1.1 A keeper counts every boat in the harbour each morning before the first ferry leaves.</p>
<p>1.2 A keeper writes the count in the log of the harbour and signs it.</p></body></html>"""


def place(number, text, heading="Keepers"):
    return {"file": "boats.html", "kind": "provision", "number": number, "heading": heading, "text": text}


def write(folder):
    (folder / "boats.html").write_text(PAGE, encoding="utf-8")
    places = [
        place("1.1", "A keeper counts every boat in the harbour each morning before the first ferry leaves."),
        place("1.3", "A keeper writes the count in the log of the harbour and signs it."),
        place("1.4", "Nobody sails at night.", "Night"),
    ]
    (folder / "gold.jsonl").write_text("\n".join(map(json.dumps, places)), encoding="utf-8")


def test_text_number_and_heading_are_counted_apart(tmp_path):
    write(tmp_path)
    [row], messages = recovered(tmp_path, 128)
    assert (row.n, row.text, row.both, row.heading, row.numbered) == (3, 2, 1, 2, 3)
    assert messages == ()


def test_a_number_that_cannot_be_recovered_is_in_no_share(tmp_path):
    write(tmp_path)
    file = tmp_path / "gold.jsonl"
    first, *others = map(json.loads, file.read_text().splitlines())
    file.write_text("\n".join(map(json.dumps, [first | {"number_recoverable": False}, *others])))
    [row], _ = recovered(tmp_path, 128)
    assert (row.numbered, row.both, row.alone, row.text) == (2, 0, 0, 2)


def test_the_command_prints_a_row_for_each_kind(tmp_path):
    write(tmp_path)
    result = CliRunner().invoke(app, ["eval", "documents", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "provision" in result.output
    assert "0.667" in result.output


@pytest.mark.parametrize(
    "line", ['{"kind": "provision"}', '{"file": "a", "kind": "x"}', '{"file": "a", "kind": "reference"}']
)
def test_a_line_without_what_it_needs_is_named(tmp_path, line):
    write(tmp_path)
    (tmp_path / "gold.jsonl").write_text(line)
    with pytest.raises(CorpusError, match=r"gold.jsonl, line 1: expected '(?:file|text|to)' with"):
        recovered(tmp_path, 128)
