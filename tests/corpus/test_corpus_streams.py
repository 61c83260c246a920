"""JSON lines as a stream give what reading all of them gives, from any line on."""

import json
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragqa.corpus.formats import open_stream
from ragqa.corpus.jsonl import JsonLinesStream
from ragqa.errors import CorpusError
from tests.support.jsonl_reference import reference_passages

LINES = st.lists(
    st.builds(
        lambda identifier, title, text: {
            **({"id": identifier} if identifier else {}),
            **({"title": title} if title else {}),
            "text": text,
        },
        st.sampled_from(["", "", "a", "b", "a#2", "T", "T (2)", "a#3"]),
        st.sampled_from(["T", "T", "T (2)", "T (3)", "a", "U", "a#2", "T#2"]),
        st.sampled_from(["", "one", "one two three four five", "one two three four five six seven eight nine"]),
    ),
    max_size=12,
)


@settings(max_examples=200, deadline=None)
@given(LINES)
@pytest.mark.long
def test_the_stream_gives_what_reading_all_lines_gives(lines):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lines.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        try:
            expected = reference_passages(path, 4)
        except CorpusError as error:
            with pytest.raises(CorpusError, match=re.escape(str(error))):
                list(JsonLinesStream(path, 4).articles())
            return
        articles = list(JsonLinesStream(path, 4).articles())
        assert tuple(passage for _, passages in articles for passage in passages) == expected
        assert [position for position, _ in articles] == [n for n, line in enumerate(lines) if line["text"]]
        for start in range(len(lines) + 1):
            assert list(JsonLinesStream(path, 4).articles(start)) == [item for item in articles if item[0] >= start]


def test_a_stream_of_json_lines_says_what_it_is(tmp_path):
    path = tmp_path / "lines.jsonl"
    path.write_text('{"title": "A", "text": "one"}\n')
    stream = open_stream(path)
    assert (stream.format, stream.name) == ("jsonl", "lines.jsonl")
    same = stream.identity()
    assert same == open_stream(path).identity() != open_stream(path, chunk_max_tokens=9).identity()
    path.write_text('{"title": "A", "text": "two"}\n')
    assert same != open_stream(path).identity()
    with pytest.raises(CorpusError, match="no JSON lines in"):
        JsonLinesStream(tmp_path / "nothing.jsonl")
