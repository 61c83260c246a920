"""Learning to rank the best fused passages: LambdaMART (Burges 2010, MSR-TR-2010-82) over features of hits.

The features follow LETOR (Qin and Liu 2013, https://arxiv.org/abs/1306.2597): of the passage, of the question, and of
both together. They need no model other than those of the retrievers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import fsum  # exact sums of sets, whose order differs between processes
from pathlib import Path
from typing import Final

import numpy as np

from ragqa.english.words import Analyser
from ragqa.errors import ModelError
from ragqa.models import EMBEDDED, check_model, manifest_of, resolve_model, shown_name
from ragqa.plugins.protocols import Corpus, FloatMatrix, Reranker
from ragqa.retrieval.analysis import tokenise
from ragqa.retrieval.citations import asks_twice
from ragqa.types import ModelInfo, Passage, ScoredPassage

KIND: Final = "ranker"
RANKER_FILE: Final = "ranker.txt"  # LightGBM's own text format
RANKINGS: Final = ("bm25", "context", "dense")
FURTHER: Final = "further"  # the name of one more ranking in the features, whatever its own name
_OF_RANKING: Final = ("score", "normalised", "reciprocal rank")
_OF_FUSION: Final = (
    *("fused", "fused reciprocal rank", "document sum", "document best"),
    *("fused before", "fused after", "fused two away", "section sum", "section best"),
)
_OF_LINKS: Final = (
    *("citations score", "citations reciprocal rank", "cites best", "cited by best", "linked reciprocal rank"),
    *("links in ten", "rankings in ten", "worst reciprocal rank", "named", "question names", "question asks twice"),
)
_OF_WORDS: Final = (
    *("covered", "covered squared", "covered with neighbours", "neighbours add", "covered by a sentence"),
    *("pairs", "triples", "heading covers", "heading adds", "shared", "rarest missing", "frequency", "density"),
    *("sentence density", "sentences", "words", "question words", "question weight"),
)
_AGAINST_BEST: Final = (
    *("fused", "covered", "covered squared", "covered with neighbours", "covered by a sentence", "pairs"),
    *("heading covers", "bm25 normalised", "dense normalised", "citations score"),
)
_OF_FURTHER: Final = "further score"
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)+(?:\.?[A-Z]\b)?|(?<=[Ss]ection )\d+|(?<=paragraph )\d+")
_SENTENCE_END: Final = re.compile(r"(?<=[.;:])\s+")
_TOP: Final = 10  # the number of hits for the features "… in ten"
_READ_BEFORE: Final = 4096  # passages whose words are cached
_MOST_REPEATS: Final = 3  # occurrences of one word that count in "frequency"


def column_names(*, further: bool = False) -> tuple[str, ...]:
    """The names of the features for LightGBM, which allows no blanks."""
    return tuple(name.replace(" ", "_") for name in feature_names(further=further))


def is_ranker(name: str) -> bool:
    """Whether this is the name or folder of a learned ranker, not of a cross-encoder."""
    if not name or (name not in EMBEDDED and not Path(name).expanduser().is_dir()):
        return False
    return (resolve_model(name, "reranker") / RANKER_FILE).is_file()


def rankings_read(name: str) -> tuple[str, ...]:
    """The rankings that the learned ranker of this name or folder requires; none for a cross-encoder."""
    if not is_ranker(name):
        return ()
    further = manifest_of(resolve_model(name, "reranker")).get(FURTHER)
    return (*RANKINGS, further) if further else RANKINGS


class LearnedRanker(Reranker):
    """Decision trees over the hits of the retrievers. It does not change after construction: threads may share it."""

    def __init__(self, model: str) -> None:
        """The bundled ranker of this name or the ranker in this folder, checked and loaded. Raises ModelError."""
        import lightgbm

        folder = resolve_model(model, "reranker")
        fingerprint = check_model(folder, KIND)
        try:
            self._booster = lightgbm.Booster(model_file=folder / RANKER_FILE)
        except (OSError, ValueError, TypeError, lightgbm.basic.LightGBMError) as error:
            raise ModelError(
                f"The ranker in {folder} cannot be read ({type(error).__name__}: {str(error)[:200]}); expected "
                f"{RANKER_FILE} as `ragqa train ranker` writes it. Train it again, or leave the reranker out."
            ) from error
        self._read = rankings_read(model)
        self._further = "".join(self._read[len(RANKINGS) :])
        if tuple(self._booster.feature_name()) != column_names(further=bool(self._further)):
            raise ModelError(
                f"The ranker in {folder} was trained on other features than this version of ragqa computes; train it "
                "again with `ragqa train ranker`, or leave the reranker out."
            )
        self._info = ModelInfo(shown_name(model, folder), fingerprint, f"fp64, LightGBM {lightgbm.__version__}")

    @property
    def info(self) -> ModelInfo:
        """Its ``precision`` names the arithmetic and the library."""
        return self._info

    def score_hits(self, question: str, hits: Sequence[ScoredPassage], depth: int, corpus: Corpus) -> list[float]:
        """A score for each of the best ``depth`` hits, in order. Raises ModelError if a ranking is missing."""
        found = {part.retriever for hit in hits for part in hit.parts}  # a rule asked for by number may have none
        lacking = [name for name in self._read if hits and name not in found]
        if lacking:
            how = f" (`--also {self._further}`)" if self._further in lacking else ""
            raise ModelError(
                f"The reranker {self._info.name} reads the rankings {', '.join(self._read)}; this index has no "
                f"{' and no '.join(lacking)}. Build the index with it{how}, or leave the reranker out."
            )
        features = ranking_features(question, hits, depth, corpus, self._further)
        return [float(score) for score in self._booster.predict(features, num_threads=1)] if len(features) else []


# Features ------------------------------------------------------------------------------------------------------------


def feature_names(*, further: bool = False) -> tuple[str, ...]:
    """The columns of `ranking_features`, in order; those of a further ranking come last."""
    return (
        *(f"{ranking} {what}" for ranking in RANKINGS for what in _OF_RANKING),
        *_OF_FUSION,
        *_OF_LINKS,
        *_OF_WORDS,
        *(f"{name} below the best" for name in _AGAINST_BEST),
        *((*(f"{FURTHER} {what}" for what in _OF_RANKING), f"{_OF_FURTHER} below the best") if further else ()),
    )


def ranking_features(
    question: str, hits: Sequence[ScoredPassage], depth: int, corpus: Corpus, further: str = ""
) -> FloatMatrix:
    """float32 array of shape (min(depth, n_hits), n_features) of the best ``depth`` fused hits.

    ``hits`` are all hits of the fused ranking; their ``parts`` name the rankings. The features of a ranking that did
    not return a passage are 0. ``further`` names one more ranking to read. Words are weighted by
    ``ln((N + 1) / (df + 0.5))``; weighted shares lie in [0, 1].
    """
    best = hits[:depth]
    names = feature_names(further=bool(further))
    if not best:
        return np.zeros((0, len(names)), np.float32)
    columns = _of_rankings(best, further) | _of_fusion(hits, best, corpus) | _of_words(question, best, corpus)
    columns |= _of_links(question, best, corpus, columns)
    for name in (*_AGAINST_BEST, _OF_FURTHER) if further else _AGAINST_BEST:
        columns[f"{name} below the best"] = [value - max(columns[name]) for value in columns[name]]
    return np.array([columns[name] for name in names], np.float32).T


def _of_rankings(best: Sequence[ScoredPassage], further: str) -> dict[str, list[float]]:
    parts = [{part.retriever: part for part in hit.parts} for hit in best]
    columns: dict[str, list[float]] = {}
    for name in (*RANKINGS, FURTHER) if further else RANKINGS:
        parts_of_ranking = [of_hit.get(further if name == FURTHER else name) for of_hit in parts]
        columns[f"{name} score"] = [part.raw or 0.0 if part else 0.0 for part in parts_of_ranking]
        columns[f"{name} normalised"] = [part.normalised if part else 0.0 for part in parts_of_ranking]
        columns[f"{name} reciprocal rank"] = [1 / part.rank if part and part.rank else 0.0 for part in parts_of_ranking]
    return columns


def _of_fusion(hits: Sequence[ScoredPassage], best: Sequence[ScoredPassage], corpus: Corpus) -> dict[str, list[float]]:
    """The fused scores of the passage, of its document and section, and of its neighbours in reading order."""
    at = {corpus.position_of[hit.passage.passage_id]: hit.score for hit in hits}
    sums: dict[str, float] = {}
    tops: dict[str, float] = {}
    for hit in hits:
        for group in (hit.passage.document_id, _section(hit.passage)):
            sums[group] = sums.get(group, 0.0) + hit.score
            tops[group] = max(tops.get(group, 0.0), hit.score)
    places = [corpus.position_of[hit.passage.passage_id] for hit in best]
    values = (
        [hit.score for hit in best],
        [1 / rank for rank in range(1, len(best) + 1)],
        [sums[hit.passage.document_id] for hit in best],
        [tops[hit.passage.document_id] for hit in best],
        [at.get(place - 1, 0.0) for place in places],
        [at.get(place + 1, 0.0) for place in places],
        [max(at.get(place - 2, 0.0), at.get(place + 2, 0.0)) for place in places],
        [sums[_section(hit.passage)] for hit in best],
        [tops[_section(hit.passage)] for hit in best],
    )
    return dict(zip(_OF_FUSION, values, strict=True))


def _section(passage: Passage) -> str:
    """A name for the passage's section: its number without the last part."""
    return f"{passage.document_id} {passage.number.rstrip('.').rpartition('.')[0]}"


def _of_links(
    question: str, best: Sequence[ScoredPassage], corpus: Corpus, columns: Mapping[str, Sequence[float]]
) -> dict[str, list[float]]:
    """Citations among the hits, the agreement of the rankings, and whether the question names a passage."""
    places = [corpus.position_of[hit.passage.passage_id] for hit in best]
    rank_of = {place: rank for rank, place in enumerate(places, start=1)}
    links = corpus.links
    rows = []
    named = set(_NUMBER.findall(question))
    twice = float(asks_twice(question))
    for n, hit in enumerate(best):
        parts = {part.retriever: part for part in hit.parts}
        cited = parts.get("citations")
        cites, by = (
            [rank_of[other] for other in edges.get(places[n], ()) if other in rank_of]
            for edges in (links.cites, links.cited_by)
        )
        ranks = [part.rank for name in RANKINGS if (part := parts.get(name)) and part.rank]
        number = hit.passage.number.rstrip(".)")
        rows.append(
            (
                cited.raw or 0.0 if cited else 0.0,
                1 / cited.rank if cited and cited.rank else 0.0,
                best[min(cites) - 1].score if cites else 0.0,
                best[min(by) - 1].score if by else 0.0,
                1 / min(cites + by) if cites or by else 0.0,
                sum(rank <= _TOP for rank in {*cites, *by}),
                sum(rank <= _TOP for rank in ranks),
                min(columns[f"{name} reciprocal rank"][n] for name in RANKINGS),
                max((_naming(mention, number) for mention in named), default=0.0),
                len(named),
                twice,
            )
        )
    return {name: [row[n] for row in rows] for n, name in enumerate(_OF_LINKS)}


def _naming(named: str, number: str) -> float:
    """1 if the question names this number, 0.5 if it names the rule that the number is a part of, else 0."""
    return 1.0 if number == named else 0.5 if number.startswith(f"{named}.") else 0.0


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of a passage by the index's analyser, without bigrams. A sentence ends in . ; or :"""

    tokens: tuple[str, ...]
    kinds: frozenset[str]
    sentences: tuple[frozenset[str], ...]
    headings: frozenset[str]


def _of_words(question: str, best: Sequence[ScoredPassage], corpus: Corpus) -> dict[str, list[float]]:
    single = replace(corpus.bm25s.analyser, bigrams=False)
    asked = tokenise(question, single)
    read = [_words(hit.passage, single) for hit in best]
    near = [
        words.kinds.union(*(_words(other, single).kinds for other in corpus.neighbours(hit.passage) if other))
        for hit, words in zip(best, read, strict=True)
    ]
    kinds = frozenset(asked).union(*(words.kinds for words in read))
    weights = corpus.bm25s.rarities(sorted(kinds))
    rows = [_shared(asked, words, around, weights.__getitem__) for words, around in zip(read, near, strict=True)]
    return {name: [row[n] for row in rows] for n, name in enumerate(_OF_WORDS)}


@lru_cache(_READ_BEFORE)
def _words(passage: Passage, analyser: Analyser) -> _Words:
    """Cached, as a passage is read for many questions and as the neighbour of others."""
    sentences = (tuple(tokenise(sentence, analyser)) for sentence in _SENTENCE_END.split(passage.text))
    tokens = tuple(tokenise(passage.text, analyser))
    headings = frozenset(tokenise(f"{passage.title} {passage.section}", analyser))
    return _Words(tokens, frozenset(tokens), tuple(frozenset(s) for s in sentences if s), headings)


def _shared(
    asked: Sequence[str], words: _Words, around: frozenset[str], weight: Callable[[str], float]
) -> tuple[float, ...]:
    """The values of `_OF_WORDS` for one passage."""
    kinds = frozenset(asked)
    total = fsum(map(weight, kinds)) or 1.0
    squares = fsum(weight(word) ** 2 for word in kinds) or 1.0
    shared = kinds & words.kinds
    covered, near = fsum(map(weight, shared)) / total, fsum(map(weight, kinds & around)) / total
    counts = Counter(words.tokens)
    by_sentence = [fsum(map(weight, kinds & sentence)) for sentence in words.sentences]
    fullest = max(range(len(by_sentence)), key=by_sentence.__getitem__, default=None)
    dense = 0.0 if fullest is None else by_sentence[fullest] / (fsum(map(weight, words.sentences[fullest])) or 1.0)
    return (
        covered,
        fsum(weight(word) ** 2 for word in shared) / squares,
        near,
        near - covered,
        max(by_sentence, default=0.0) / total,
        _share_of_runs(asked, words.tokens, 2),
        _share_of_runs(asked, words.tokens, 3),
        fsum(map(weight, kinds & words.headings)) / total,
        fsum(map(weight, (kinds - words.kinds) & words.headings)) / total,
        len(shared),
        max(map(weight, kinds - words.kinds), default=0.0),
        fsum(weight(word) * min(_MOST_REPEATS, counts[word]) for word in shared) / total,
        fsum(map(weight, shared)) / (fsum(map(weight, words.kinds)) or 1.0),
        dense,
        len(words.sentences),
        len(words.tokens),
        len(kinds),
        total,
    )


def _share_of_runs(asked: Sequence[str], words: Sequence[str], length: int) -> float:
    """The share of the question's distinct runs of ``length`` words that occur in the passage."""
    wanted, there = _runs(asked, length), _runs(words, length)
    return len(wanted & there) / (len(wanted) or 1)


def _runs(tokens: Sequence[str], length: int) -> set[tuple[str, ...]]:
    return {tuple(tokens[n : n + length]) for n in range(len(tokens) - length + 1)}
