"""Logs of one JSON object per line, each with the run that it belongs to; keys are removed from them."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Final

from ragqa.errors import ConfigError
from ragqa.infra.cleaning import without_keys

SECRETS: Final = (
    "OPENAI_API_KEY",
    "VOYAGE_API_KEY",
    "RAGQA_JUDGE_KEY",
    "FANOUTQA_OPENAI_API_KEY",
    "RAGQA_METRICS_TOKEN",
    "PGPASSWORD",
    "RAGQA_MILVUS_TOKEN",
)  # environment variables whose values are
_about: ContextVar[Mapping[str, str]] = ContextVar("ragqa_log_about", default={})  # noqa: B039 - never changed


@contextmanager
def about(**values: str) -> Iterator[None]:
    """Within this context, the thread's log lines carry these values: ``run``, ``record``."""
    token = _about.set({**_about.get(), **values})
    try:
        yield
    finally:
        _about.reset(token)


class JsonLines(logging.Formatter):
    """Formats a log record as one line of JSON: time, level, logger, message; run, record and trace if known."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_about.get(),
        }
        if record.exc_info:
            fields["trace"] = self.formatException(record.exc_info)
        secrets = [os.environ.get(name, "").strip() for name in SECRETS]
        plain = {name: without_keys(value, *secrets) for name, value in fields.items() if value}
        return json.dumps(plain, ensure_ascii=False)


def set_up() -> None:
    """If RAGQA_LOG is json, writes all logs as JSON lines, including those of Streamlit and its server.

    Call it again for loggers created since. Raises ConfigError if RAGQA_LOG is neither json nor text.
    """
    wanted = os.environ.get("RAGQA_LOG", "").strip().lower()
    if wanted not in {"", "text", "json"}:
        raise ConfigError(f"RAGQA_LOG: expected text or json, found {wanted[:20]!r}; correct it and start again")
    if wanted != "json":
        return
    root = logging.getLogger()
    if not any(isinstance(one.formatter, JsonLines) for one in root.handlers):
        before = [one for one in root.handlers if type(one) is logging.StreamHandler]
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(JsonLines())
        handler.setLevel(max(logging.INFO, *(one.level for one in before), 0))
        for one in before:
            root.removeHandler(one)
        root.addHandler(handler)
        logging.getLogger("ragqa").setLevel(logging.INFO)
        logging.captureWarnings(True)
    for logger in list(logging.Logger.manager.loggerDict.values()):
        if isinstance(logger, logging.Logger):
            for one in [one for one in logger.handlers if type(one) is logging.StreamHandler]:
                logger.removeHandler(one)
                logger.propagate = True
