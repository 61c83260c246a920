"""JSON lines read into memory in the plainest way: what the stream of `ragqa.corpus.jsonl` must give."""

import json
from collections import Counter
from pathlib import Path

from ragqa.corpus.chunking import chunk, plain_outline
from ragqa.corpus.cleaning import clean_text
from ragqa.errors import CorpusError
from ragqa.types import Passage


def reference_passages(path: Path, max_tokens: int) -> tuple[Passage, ...]:
    """The passages of one file of lines {id, title, text}, id and title may be missing, but not both."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    places: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        place, name = f"{path.name}, line {number}", line.get("id", "")
        if name and name in places:
            found = f"{name!r}, which {places[name]} has"
            msg = (
                f"{place}: expected an id of its own, found {found}; give each line its own, or load one file at a time"
            )
            raise CorpusError(msg)
        if name:
            places[name] = place
    if not any(line["text"] for line in lines):
        msg = (
            f"{path}: expected at least one line with text under 'text', found {len(lines)} lines, all blank; "
            "check that this is the right file and try again"
        )
        raise CorpusError(msg)
    taken, counts, named = set(places), Counter(), []
    for line in lines:
        if not line["text"]:
            continue
        title = line.get("title", "")
        name = line.get("id", "") or title
        while not line.get("id") and name in taken:
            counts[title] += 1
            name = f"{title} ({counts[title] + 1})"
        taken.add(name)
        named.append((name, title, clean_text(line["text"])))
    documents = {name for name, _, _ in named}
    return tuple(
        passage for name, title, text in named for passage in _passages(name, title, text, max_tokens, documents)
    )


def _passages(name: str, title: str, text: str, max_tokens: int, documents: set[str]) -> list[Passage]:
    spans = [span for section in plain_outline(text).sections for span in chunk(text, section.blocks, max_tokens)]
    passages, suffix = [], 1
    for ordinal, span in enumerate(spans, start=1):
        passage_id = name
        while ordinal > 1 and (passage_id == name or passage_id in documents):
            suffix += 1
            passage_id = f"{name}#{suffix}"
        passages.append(
            Passage(passage_id, name, span.text, title, number=str(ordinal), start=span.start, end=span.end)
        )
    return passages
