"""Every error ragqa raises on purpose, as one tree. A message says what was expected, what was found, what to do next.

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
    └── AccessError
"""

from __future__ import annotations


class RagqaError(Exception):
    """Base of all; its text is written for the person at the page or the terminal and is shown to them as it is."""


class ConfigError(RagqaError):
    """A setting is out of its range or unknown. Shown beside the settings, or by the command line with exit code 2."""


class QuestionError(RagqaError):
    """The question is empty or too long. Shown under the question box; what was typed stays there."""


class CorpusError(RagqaError):
    """A source folder or file cannot be read as the corpus it is said to be. Shown to whoever builds an index."""


class IndexingError(RagqaError):
    """An index cannot be built, opened or deleted."""


class IndexNotFoundError(IndexingError):
    """No index of that name. Shown with the names there are."""


class IndexMismatchError(IndexingError):
    """An index on disk is half-written, tampered with, or made by another model. Shown with what to run."""


class IndexLockedError(IndexingError):
    """Another process is building this index. Shown with its process id."""


class ModelError(RagqaError):
    """A model's files are missing, altered or not what its name says. Shown with the embedded alternative."""


class GenerationError(RagqaError):
    """No answer could be written. Shown in the answer's place; passages already shown stay."""


class RateLimitedError(GenerationError):
    """The server asked to slow down and still did so after the retries."""


class TimedOutError(GenerationError):
    """The server did not answer in time."""


class RefusedError(GenerationError):
    """The server refused the request: key, model name or content."""


class ScoringError(RagqaError):
    """RePASs could not be computed. Shown beside the answer, which stays."""


class RecordError(RagqaError):
    """A record cannot be stored, found or read."""


class BusyError(RagqaError):
    """More is asked than the server takes at once, or it is being stopped. Shown in the place of the question's run."""


class AccessError(RagqaError):
    """Somebody who is signed in may not do this. Shown in its place; the refusal is in the audit log."""
