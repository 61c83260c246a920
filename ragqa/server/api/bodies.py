"""The request bodies of /v1, as OpenAPI describes them."""

from __future__ import annotations

import base64
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, StrictBool

from ragqa.pipeline import MAX_QUESTION_CHARS, MAX_TEXT_CHARS
from ragqa.server.api import service


class SearchRequest(BaseModel):
    """A question to a corpus, for its passages alone."""

    question: Annotated[str, Field(min_length=1, max_length=MAX_QUESTION_CHARS)]
    corpus: Annotated[str, Field(max_length=200)] = ""
    preset: Annotated[str, Field(max_length=200)] = ""
    as_of: Annotated[str, Field(max_length=40)] = ""  # YYYY-MM-DD
    limit: Annotated[int, Field(ge=1, le=service.MOST_RESULTS)] = 10


class AskRequest(BaseModel):
    """A question to a corpus; with ``stream`` the pipeline's events come as server-sent events."""

    question: Annotated[str, Field(min_length=1, max_length=MAX_QUESTION_CHARS)]
    corpus: Annotated[str, Field(max_length=200)] = ""
    preset: Annotated[str, Field(max_length=200)] = ""
    as_of: Annotated[str, Field(max_length=40)] = ""  # YYYY-MM-DD
    stream: StrictBool = False


class CheckRequest(BaseModel):
    """A text written elsewhere, with the question it answers or without."""

    text: Annotated[str, Field(min_length=1, max_length=MAX_TEXT_CHARS)]
    question: Annotated[str, Field(max_length=MAX_QUESTION_CHARS)] = ""
    corpus: Annotated[str, Field(max_length=200)] = ""
    preset: Annotated[str, Field(max_length=200)] = ""
    as_of: Annotated[str, Field(max_length=40)] = ""  # YYYY-MM-DD
    stream: StrictBool = False


class ScoreRequest(BaseModel):
    """An answer written elsewhere, with the passages it was written from."""

    passages: Annotated[list[str], Field(max_length=service.MOST_TEXTS)]
    answer: Annotated[str, Field(min_length=1, max_length=service.LONGEST_TEXT)]


class ObligationsRequest(BaseModel):
    """Passages of a corpus by their ids."""

    corpus: Annotated[str, Field(min_length=1, max_length=200)]
    passage_ids: Annotated[list[str], Field(min_length=1, max_length=service.MOST_TEXTS)]


def _decoded(content: object) -> bytes:
    try:
        return base64.b64decode(str(content), validate=True)
    except ValueError as error:
        raise ValueError("content must be the file's bytes in base64") from error


class DocumentRequest(BaseModel):
    """A file in base64 for a corpus of the library; without ``corpus`` a new one with this ``title`` is made."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    content: Annotated[bytes, BeforeValidator(_decoded)]
    corpus: Annotated[str, Field(max_length=200)] = ""
    title: Annotated[str, Field(max_length=200)] = ""


class ChatMessage(BaseModel):
    """One message of a chat; of content in parts only the texts are used."""

    role: str
    content: str | list[dict[str, Any]] | None = None

    @property
    def text(self) -> str:
        """The message's text."""
        if isinstance(self.content, list):
            return "\n".join(str(part.get("text", "")) for part in self.content)
        return self.content or ""


class StreamOptions(BaseModel):
    """With ``include_usage`` the last chunk of a stream has the tokens."""

    include_usage: StrictBool = False


class ChatRequest(BaseModel):
    """A request in OpenAI's form; other fields (temperature, tools, …) are ignored."""

    model: Annotated[str, Field(max_length=200)]
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=200)]
    stream: StrictBool | None = False
    stream_options: StreamOptions | None = None
