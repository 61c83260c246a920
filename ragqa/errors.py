"""The tree of all errors that ragqa raises on purpose.

Each message says what was expected, what was found and what to do next.

::

    RagqaError
    ├── ConfigError
    ├── QuestionError
    ├── CorpusError
    ├── IndexingError
    │   ├── IndexNotFoundError
    │   ├── IndexMismatchError
    │   └── IndexLockedError
    ├── ModelError
    ├── GenerationError
    │   ├── RateLimitedError
    │   ├── TimedOutError
    │   └── RefusedError
    ├── ScoringError
    ├── RecordError
    ├── BusyError
    └── AccessError
"""

from __future__ import annotations


class RagqaError(Exception):
    """Base class of all errors. Its text is written for users; the page and the terminal show it unchanged."""


class ConfigError(RagqaError):
    """A setting is unknown or out of range. The page shows it beside the settings; a command ends with exit code 2."""


class QuestionError(RagqaError):
    """The question is empty or too long. Shown under the question box, which keeps the typed text."""


class CorpusError(RagqaError):
    """A source folder or file cannot be read in the stated corpus format. Shown to whoever builds an index."""


class IndexingError(RagqaError):
    """An index cannot be built, opened or deleted."""


class IndexNotFoundError(IndexingError):
    """No index has this name. Shown with the names of the existing indexes."""


class IndexMismatchError(IndexingError):
    """An index on disk is incomplete, altered, or built with another model. Shown with the command that repairs it."""


class IndexLockedError(IndexingError):
    """Another process is building this index. Shown with the id of that process."""


class ModelError(RagqaError):
    """A model's files are missing, altered or of another kind of model. Shown with the bundled alternative."""


class GenerationError(RagqaError):
    """No answer could be written. Shown in place of the answer; the passages stay visible."""


class RateLimitedError(GenerationError):
    """The server still reported too many requests after all retries."""


class TimedOutError(GenerationError):
    """The server did not answer in time."""


class RefusedError(GenerationError):
    """The server refused the request because of its key, model name or content."""


class ScoringError(RagqaError):
    """RePASs could not be computed. Shown beside the answer, which stays visible."""


class RecordError(RagqaError):
    """A record cannot be stored, found or read."""


class BusyError(RagqaError):
    """The server runs as many questions as it can, or is shutting down. Shown in place of the run of the question."""


class AccessError(RagqaError):
    """The signed-in user may not do this. Shown in place of the result; the refusal is written to the audit log."""
