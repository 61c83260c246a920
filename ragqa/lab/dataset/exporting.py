"""Exports a data set: ObliQA's schema, TREC topics and qrels, BEIR, JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ragqa.corpus.files import passage_id_of
from ragqa.infra.files import write_whole
from ragqa.infra.journal import translated
from ragqa.lab.dataset.finishing import SPLITS
from ragqa.lab.dataset.stages import Row, as_lines
from ragqa.types import Passage

FOLDER: Final = "export"


def export(folder: Path, rows: Sequence[Row], passages: Mapping[str, Passage], corpus: Sequence[Passage]) -> list[str]:
    """Writes every format into ``folder``/export; returns the files' names relative to ``folder``.

    ``rows`` are those of the last stage, ``passages`` the gold ones, ``corpus`` all of them. Raises RecordError.
    """
    files = dict(_files(rows, passages, corpus))
    with translated(folder):
        for name, text in files.items():
            path = folder / FOLDER / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, [text])
    return [f"{FOLDER}/{name}" for name in files]


def _files(
    rows: Sequence[Row], passages: Mapping[str, Passage], corpus: Sequence[Passage]
) -> Iterator[tuple[str, str]]:
    by_split = {"all": list(rows), **{name: [row for row in rows if row["split"] == name] for name in SPLITS}}
    for name, of in by_split.items():
        questions = [obliqa(row, [passages[one] for one in row["passages"]]) for row in of]
        yield f"obliqa/{name}.json", json.dumps(questions, ensure_ascii=False, indent=1) + "\n"
        pairs = [(row["id"], "_".join(one.split())) for row in of for one in row["passages"]]
        yield f"trec/{name}.topics.tsv", "".join(f"{row['id']}\t{row['question']}\n" for row in of)
        yield f"trec/{name}.qrels", "".join(f"{asked} 0 {one} 1\n" for asked, one in pairs)
        lines = "".join(f"{row['id']}\t{one}\t1\n" for row in of for one in row["passages"])
        yield f"beir/qrels/{name}.tsv", f"query-id\tcorpus-id\tscore\n{lines}"
    yield "beir/queries.jsonl", as_lines({"_id": row["id"], "text": row["question"]} for row in rows)
    yield (
        "beir/corpus.jsonl",
        as_lines({"_id": one.passage_id, "title": one.section or one.title, "text": one.text} for one in corpus),
    )
    yield (
        "dataset.jsonl",
        as_lines(
            {"question_id": row["id"], "question": row["question"], "gold_passage_ids": row["passages"]}
            | {key: row[key] for key in ("split", "kind", "persona", "form", "topic", "group")}
            for row in rows
        ),
    )


def obliqa(row: Row, gold: Sequence[Passage]) -> dict[str, Any]:
    """The question in ObliQA's schema.

    If passage ids are not DocumentID:PassageID, as in a chunked corpus, the passage's text identifies it.
    """
    found: dict[str, Any] = {"QuestionID": row["id"], "Question": row["question"], "Group": row["group"]}
    found["Passages"] = []
    for passage in gold:
        number = passage.passage_id.removeprefix(f"{passage.document_id}:")
        if passage_id_of(passage.document_id, number) == passage.passage_id:
            found["Passages"].append({"DocumentID": passage.document_id, "PassageID": number, "Passage": passage.text})
        else:
            evidence = {"DocumentID": passage.document_id, "Sentence": " ".join(passage.text.split())}
            found.setdefault("Evidence", []).append(evidence)
    return found
