"""Every environment variable that ragqa reads, with its meaning and default; those that name language models."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ragqa.errors import ConfigError
from ragqa.plugins import registry
from ragqa.settings.paths import expanded


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable with its meaning and default."""

    name: str
    meaning: str
    default: str = ""
    least: int | None = None  # least value, if it is a whole number of at most six digits; None: not a number


ENVIRONMENT: Final = (
    Variable("RAGQA_HOME", "folder of records, caches, presets and runs", "the user's data folder"),
    Variable(
        "RAGQA_RECORDS",
        "record store: a file, or postgresql://… (`ragqa/server/README.md`)",
        "records.sqlite3 in RAGQA_HOME",
    ),
    Variable("RAGQA_INDEXES", "folder of indexes", "the checkout's `indexes/`, else a folder of RAGQA_HOME"),
    Variable("RAGQA_MILVUS_URI", "address of Milvus (`ragqa/retrieval/README.md`)", "the one an index was built with"),
    Variable("RAGQA_MILVUS_TOKEN", "token of Milvus, or USER:PASSWORD"),
    Variable("RAGQA_DATA", "folder of question files that the Evaluate page offers", "../shared/data"),
    Variable("RAGQA_LIBRARY_FOLDERS", "folders whose files the Library page offers, separated as in PATH", "none"),
    Variable("RAGQA_WATCHED_FOLDER", "folder whose new and changed files are proposed in the Library page", "none"),
    Variable("RAGQA_INDEX", "the corpus opened first", "rulebook"),
    Variable(
        "RAGQA_API", "`on` or `off`: whether programs may call `/v1` and `/mcp`", "on where nobody signs in, else off"
    ),
    Variable("RAGQA_ACCESS", "`on` or `off`: whether people sign in to the page", "off on localhost, else on"),
    Variable("RAGQA_ACCESS_FILE", "TOML file of people's roles (`ragqa/server/access/README.md`)", "nobody has a role"),
    Variable("RAGQA_AUDIT_ANCHOR", "file elsewhere, `syslog` or `syslog:HOST:PORT`: gets each audit entry's hash"),
    Variable("RAGQA_LOG", "`json`: the log has one JSON object a line (`ragqa/server/README.md`)", "text"),
    Variable("RAGQA_TRACES", "`on`: trace each question as OpenTelemetry spans; `texts`: with its texts", "off"),
    Variable("RAGQA_METRICS_TOKEN", "bearer token that `/metrics` requires (`ragqa/server/README.md`)"),
    Variable("RAGQA_MAX_RUNS", "maximum of questions answered at once; the others wait in order", "16", 1),
    Variable("RAGQA_MAX_WAITING", "maximum of waiting questions; beyond it the page refuses", "100", 0),
    Variable("RAGQA_UPLOADS_MB", "maximum of all visitors' files in memory at once, in MB", "1000", 1),
    Variable("RAGQA_SESSIONS_PER_ADDRESS", "maximum of pages open at once from one address", "100", 1),
    Variable("RAGQA_STOP_SECONDS", "seconds that running questions may take when the server is stopped", "8", 0),
    Variable("RAGQA_PROMPTS", "folder of prompts that replace the bundled ones"),
    Variable("RAGQA_PAGE_MODELS", "further rerankers that the page offers, separated by commas"),
    Variable("OPENAI_API_KEY", "key of the language model, and of models called `openai:MODEL`"),
    Variable("OPENAI_BASE_URL", "address of the server of these models", "OpenAI's own"),
    Variable("RAGQA_MODEL", "the language model, as its server names it", "gpt-4o-mini"),
    Variable("RAGQA_LANGUAGE_MODELS", "models of that server on the page, separated by commas", "all it lists"),
    Variable("RAGQA_LOCAL_MODEL", "a language model on this machine: a name of `ragqa models list`, or a GGUF file"),
    Variable("VOYAGE_API_KEY", "key of models called `voyage:MODEL`"),
    Variable("VOYAGE_BASE_URL", "address of the server of these models", "Voyage's own"),
    Variable("RAGQA_SCORING_PROFILE", "RePASs' models and splitter: `embedded` or `reference`", "embedded"),
    Variable("RAGQA_ENTAILMENT_MODEL", "model of entailment: a name, a folder or a hub name", "the profile's"),
    Variable("RAGQA_COVERAGE_MODEL", "model of obligation coverage, likewise", "the entailment model"),
    Variable("RAGQA_VERDICT_MODEL", "the verifier, likewise", "verifier-minilm-l6"),
    Variable("RAGQA_ANSWER_MODEL", "a larger selector beside answers-minilm-l12, likewise (answers-mpnet)", "none"),
    Variable("RAGQA_OBLIGATION_MODEL", "model that finds obligations, likewise", "the profile's"),
    Variable("RAGQA_JUDGE_KEY", "key of the model that judges FanOutQA's answers"),
    Variable("FANOUTQA_OPENAI_API_KEY", "the same, if RAGQA_JUDGE_KEY is not set"),
    Variable("RAGQA_JUDGE_MODEL", "the model that judges", "gpt-4-0613, as FanOutQA's authors"),
    Variable("RAGQA_JUDGE_URL", "address of its server", "OpenAI's own"),
    Variable("RAGQA_BLEURT", "folder of BLEURT's checkpoint", "BLEURT-20 in the working directory"),
    Variable("OMP_WAIT_POLICY", "how idle threads of the arithmetic libraries wait", "passive"),
    Variable("HF_HUB_ETAG_TIMEOUT", "seconds that the hub may take to respond", least=1),
    Variable(
        "HF_HUB_DOWNLOAD_TIMEOUT", "seconds without data after which a download from the hub is abandoned", least=1
    ),
)


def whole_number(name: str) -> int:
    """The value of this variable, which is a whole number, else its default. Raises ConfigError."""
    one = next(each for each in ENVIRONMENT if each.name == name)
    text, least = os.environ.get(name, "").strip() or one.default, one.least or 0
    if not (text.isascii() and text.isdigit() and len(text) < 7 and int(text) >= least):
        msg = f"{name}: expected a whole number from {least}, found {text[:20]!r}; correct it and start again"
        raise ConfigError(msg)
    return int(text)


def check_numbers() -> None:
    """Raises ConfigError for the first variable whose value is not the whole number required."""
    for one in ENVIRONMENT:
        if one.least is not None and os.environ.get(one.name, "").strip():
            whole_number(one.name)


def environment_table() -> str:
    """`ENVIRONMENT` as a Markdown table."""
    rows = [(f"`{one.name}`", one.meaning, one.default) for one in ENVIRONMENT]
    return registry.table(("variable", "what it decides", "where not set"), rows)


def has_llm(environ: Mapping[str, str] | None = None) -> bool:
    """Whether a language model is configured: one behind a server, or one on this machine."""
    env = os.environ if environ is None else environ
    return has_server(env) or bool(env.get("RAGQA_LOCAL_MODEL"))


def has_server(environ: Mapping[str, str] | None = None) -> bool:
    """Whether a server of language models is configured: a key, or a server of one's own (which may need none)."""
    env = os.environ if environ is None else environ
    return bool(env.get("OPENAI_API_KEY") or env.get("OPENAI_BASE_URL"))


def api_key(environ: Mapping[str, str] | None = None) -> str | None:
    """``OPENAI_API_KEY``; for the generator only, never for a record, a log or a message."""
    env = os.environ if environ is None else environ
    return env.get("OPENAI_API_KEY") or None


def prompt_folder(environ: Mapping[str, str] | None = None) -> Path | None:
    """``RAGQA_PROMPTS``, the folder of prompts that replace the bundled ones; None: not set."""
    env = os.environ if environ is None else environ
    return expanded(env["RAGQA_PROMPTS"], "RAGQA_PROMPTS") if env.get("RAGQA_PROMPTS") else None


def page_models(variable: str, environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The names in ``RAGQA_PAGE_MODELS`` (rerankers) or ``RAGQA_LANGUAGE_MODELS`` that a visitor may choose."""
    env = os.environ if environ is None else environ
    return tuple(filter(None, (name.strip() for name in env.get(variable, "").split(","))))
