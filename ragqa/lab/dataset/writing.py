"""Questions by a language model: one short call each, and a few more if the reply is rejected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, Final

from ragqa.errors import CorpusError
from ragqa.generation.llm.cleanup import unwrapped
from ragqa.generation.llm.client import ChatClient
from ragqa.generation.llm.reply import Reply
from ragqa.generation.prompts import build_prompt, load_prompt
from ragqa.infra.cleaning import without_controls, without_invisible
from ragqa.lab.dataset.checks import problem, without_references
from ragqa.lab.dataset.stages import GROUPS
from ragqa.settings.config import GenerationConfig
from ragqa.settings.environment import api_key, prompt_folder
from ragqa.types import Passage, Question
from ragqa.types.streams import returned

PROMPT: Final = "dataset_question"
TRIES: Final = 3
MAX_TOKENS: Final = 160
MAX_CHARS: Final = 800
_ASKERS: Final = {
    "professional": "a compliance officer who knows the rulebook well",
    "newcomer": "somebody new to compliance, in plain words",
    "auditor": "an auditor who checks whether a firm complies",
}
_FORMS: Final = {
    "question": "one question",
    "scenario": "a scenario: one sentence that tells a case, and one that asks about it and ends with a question mark",
}


def written(row: Mapping[str, Any], passages: Sequence[Passage], config: GenerationConfig) -> dict[str, str]:
    """{question, by, note} by the model; the question is empty if all its tries were rejected.

    Raises GenerationError if the server fails, ConfigError and ModelError as `ChatClient` does, and CorpusError for a
    person or form that is none, as in an edited file.
    """
    for key, known in (("persona", _ASKERS), ("form", _FORMS)):
        if row[key] not in known:
            expected = f"{GROUPS}: expected {key} to be one of {', '.join(known)}"
            msg = f"{expected}, found {row[key]!r}; correct the edited file"
            raise CorpusError(msg)
    wish = f"Wanted: a question of the kind {row['kind']!r}, asked by {_ASKERS[row['persona']]}; "
    instructions = load_prompt(PROMPT, prompt_folder())
    client = ChatClient(replace(config, max_tokens=MAX_TOKENS), api_key())
    texts, found = [passage.text for passage in passages], ""
    with closing(client):
        for n in range(TRIES):
            again = f" Your last reply {found}: write another." if found else ""
            form = _FORMS["question" if found else row["form"]]  # after a failed scenario a plain question is requested
            prompt = build_prompt(Question(f"{wish}{form}.{again}"), passages, instructions)
            reply = Reply(MAX_CHARS)
            returned(client.write(prompt.messages, reply, seed=(config.seed or 0) + n))
            asked = _one_line(reply.raw)
            found = problem(asked, texts, row["kind"])
            if not found:
                return {"question": asked, "by": client.model, "note": ""}
    return {"question": "", "by": client.model, "note": f"{TRIES} tries; the last one {found}"}


def _one_line(reply: str) -> str:
    """The question in the reply, on one line, without labels, quotation marks and references to rules.

    Of several lines the first question counts; the other lines are the model's comments on it.
    """
    lines = [" ".join(line.split()) for line in unwrapped(without_invisible(without_controls(reply))).splitlines()]
    bare = [line.strip(" \t\"'“”*").removeprefix("Question:").strip(" \t\"'“”*") for line in lines]
    asked = next((line for line in bare if line.endswith("?")), " ".join(line for line in bare if line))
    return without_references(asked)
