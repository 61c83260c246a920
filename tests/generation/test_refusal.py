"""What counts as "the corpus does not say", and what does not."""

import pytest

from ragqa.generation.citations import parse_cited_text
from ragqa.generation.llm.reply import reads_as_refusal

REFUSALS = [
    "The corpus does not say.",
    "The passages do not answer the question.",
    "The provided passages do not contain information about taxes.",
    "Unfortunately, the passages provided do not address this question.",
    "None of the passages mentions crypto mining.",
    "I cannot answer this question from the passages. Please consult a lawyer.",
    "The obligations sent do not say who pays.",
    "There is no information in the passages about this question.",
    "The given context doesn't specify a time limit.",
    "The question cannot be answered from the passages.",
    "The documents contain no such rule.",
    "Based on the passages, the rules do not say what happens then.",
]
ANSWERS = [
    "",
    "A firm must keep records [1].",
    "The corpus does not say when. However, a firm must keep records for six years [1].",
    "The rules do not say when. A firm must act. A firm must file. A firm must report.",
    "A firm must not provide information to the passages' authors [2].",
    "The document must not contain advertisements [1].",
    "Firms cannot say that a passage is theirs [1].",
    "Korpus o tem ne govori.",
    "No firm may answer the question of a client in writing [3].",
]


@pytest.mark.parametrize("text", REFUSALS)
def test_refusals(text):
    assert reads_as_refusal(parse_cited_text(text, 3).sentences)


@pytest.mark.parametrize("text", ANSWERS)
def test_answers(text):
    assert not reads_as_refusal(parse_cited_text(text, 3).sentences)
