"""The first three stages: passages that oblige, permit or define; topics; and groups of related passages.

Pure except for the obligation classifier; scikit-learn clusters on one thread, so that a seed gives the same bytes.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import log
from typing import Any, Final

from ragqa.english.sentences import reads_as_heading, split_sentences
from ragqa.errors import CorpusError
from ragqa.infra.journal import digest
from ragqa.lab.dataset import rules
from ragqa.lab.dataset.pseudo_queries import defined_terms
from ragqa.lab.dataset.stages import PASSAGES, Row
from ragqa.plugins.protocols import ObligationClassifier
from ragqa.retrieval.citations import Edges
from ragqa.types import Passage

SHORTEST, LONGEST = 12, 250  # words of a passage
MOST_TOPICS: Final = 69  # RIRAG has as many
PASSAGES_A_TOPIC: Final = 15  # the fewest passages of a topic
TERMS: Final = 6  # of a topic
LEAST_ALIKE, MOST_ALIKE = 0.15, 0.9  # cosine of passages in a group: related, but not the same
NEAREST: Final = 12  # neighbours of a passage that are considered
SPARE: Final = {True: 1.6, False: 1.3}  # questions made per question wanted, by rules and by a model
SEVERAL: Final = 0.25  # share of questions about several passages; ObliQA has .24
SIZES: Final = {2: 0.74, 3: 0.17, 4: 0.05, 5: 0.025, 6: 0.015}  # of groups; ObliQA's table 1, rounded
SHARES: Final = {  # of kinds, of questions about one passage
    "obligation": 0.45,
    "condition": 0.2,
    "permission": 0.12,
    "deadline": 0.09,
    "exception": 0.07,
    "definition": 0.07,
}
PERSONA_SHARES: Final = {"professional": 0.7, "newcomer": 0.15, "auditor": 0.15}
SCENARIOS: Final = 0.3  # share of conditions and obligations tried as scenarios
_MARKS: Final = {
    "permission": r"\bmay (?!not|only)",
    "exception": r"\b(?:unless|except|does not apply)\b",
    "condition": r"\b(?:if|where|when|provided that)\b",
    "deadline": r"\b(?:within|immediately|promptly|no later than|annually|at least once|days?|years?|months?)\b",
}


def passages_of(
    passages: Iterable[Passage], classifier: ObligationClassifier, only: Sequence[str], *, by_rules: bool
) -> list[Row]:
    """The passages to ask about: {id, document, section, why, kinds, text}, in the corpus's order.

    ``why`` is "obliges", "permits" or "defines". ``kinds`` are the possible kinds of question; with ``by_rules``, those
    that a template makes. ``only`` selects documents by id or title, and sections by words. Raises CorpusError.
    """
    rows = []
    corpus = list(passages)
    documents = {one for passage in corpus for one in (passage.document_id, passage.title)}.intersection(only)
    words = [one.lower() for one in only if one not in documents]
    for passage in corpus:
        is_named = not documents.isdisjoint((passage.document_id, passage.title))
        wanted = not only or is_named or any(one in passage.section.lower() for one in words)
        n_words = len(passage.text.split())
        if not wanted or reads_as_heading(passage.text) or not SHORTEST <= n_words <= LONGEST:
            continue
        sentences = [span.text for span in split_sentences(passage.text)]
        obliges = any(classifier.classify(sentences))
        defines = bool(defined_terms(passage.text))
        permits = bool(re.search(_MARKS["permission"], passage.text))
        why = "obliges" if obliges else "defines" if defines else "permits" if permits else ""
        kinds = (rules.kinds_in(passage) if by_rules else _marked(passage.text, obliges, defines)) if why else ()
        if why:
            rows.append(
                {
                    "id": passage.passage_id,
                    "document": passage.document_id,
                    "section": passage.section,
                    "why": why,
                    "kinds": list(kinds),
                    "text": passage.text,
                }
            )
    if not rows:
        raise CorpusError(
            f"expected passages of {SHORTEST} to {LONGEST} words that oblige, permit or define, found none"
            f"{f' in {only}' if only else ''}; choose another corpus or leave out --only"
        )
    return rows


def _marked(text: str, obliges: bool, defines: bool) -> tuple[str, ...]:
    found = {kind for kind, mark in _MARKS.items() if re.search(mark, text)}
    found |= ({"obligation"} if obliges else set()) | ({"definition"} if defines else set())
    return tuple(kind for kind in rules.KINDS if kind in found)


# Topics -------------------------------------------------------------------------------------------------------------


def vectors_of(texts: Sequence[str], *, every: bool = False) -> tuple[Any, list[str]]:
    """The TF-IDF vectors of the texts, sparse, of length 1, and the term of each column.

    With many texts, words in fewer than three or in more than a fifth of them are left out, unless ``every`` is set.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    is_many = len(texts) > 100 and not every
    vectoriser = TfidfVectorizer(
        stop_words=None if every else "english",
        ngram_range=(1, 2),
        min_df=3 if is_many else 1,
        max_df=0.2 if is_many else 1.0,
        sublinear_tf=True,
        token_pattern=r"(?u)\b[A-Za-z][A-Za-z-]{2,}\b",  # noqa: S106 - no password
    )
    return vectoriser.fit_transform(texts), list(vectoriser.get_feature_names_out())


def topics_of(texts: Sequence[str], seed: int) -> dict[str, list[str]]:
    """Topics by k-means, each named by its two heaviest terms, with the six terms that distinguish it most."""
    import numpy as np
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    vectors, terms = vectors_of(texts)
    n_topics = max(2, min(MOST_TOPICS, len(texts) // PASSAGES_A_TOPIC))
    if len(texts) < 2 * n_topics:
        return {"everything": [terms[n] for n in np.argsort(-np.asarray(vectors.sum(axis=0)).ravel())[:TERMS]]}
    with threadpool_limits(1):
        centres = KMeans(n_topics, n_init=1, random_state=seed, max_iter=50).fit(vectors).cluster_centers_
    found: dict[str, list[str]] = {}
    for centre in centres - 0.5 * centres.mean(axis=0):
        ranked = [terms[n] for n in np.argsort(-centre, kind="stable")[: 3 * TERMS]]
        kept: list[str] = []
        for term in ranked:  # keeps "client money", drops "money"
            words = set(term.split())
            if not any(words <= set(one.split()) for one in kept):
                kept = [one for one in kept if not set(one.split()) < words] + [term]
        found.setdefault(", ".join(kept[:2]), kept[:TERMS])
    return dict(sorted(found.items()))


def topic_of_each(texts: Sequence[str], topics: Mapping[str, Sequence[str]]) -> list[str]:
    """For each text, the topic with most of its key terms, rare terms counting more; "" if it has none."""
    patterns = {
        term: re.compile(rf"\b{re.escape(term.lower())}(?:e?s)?\b") for terms in topics.values() for term in terms
    }
    lowered = [text.lower() for text in texts]
    has = {
        term: [n for n, text in enumerate(lowered) if term.lower() in text and pattern.search(text)]
        for term, pattern in patterns.items()
    }
    scores: list[Counter[str]] = [Counter() for _ in texts]
    for topic, terms in sorted(topics.items()):
        for term in terms:
            for n in has[term]:
                scores[n][topic] += log(1 + len(texts) / len(has[term])) / len(terms) ** 0.5
    return [max(sorted(found), key=found.__getitem__) if found else "" for found in scores]


# Groups -------------------------------------------------------------------------------------------------------------

Makes = Callable[[Row], bool]  # whether a question can be made of a group


class Plan:
    """Draws groups until there are enough. ``rows`` are those of the first stage; ``makes`` tests a group.

    ``joins`` tells for each row whether it may be in a group of several passages. Raises CorpusError for a row with a
    kind that is not of `SHARES`, as in an edited file.
    """

    def __init__(
        self, rows: Sequence[Row], topics: Mapping[str, Sequence[str]], seed: int, makes: Makes, joins: Sequence[bool]
    ) -> None:
        unknown = next(((kind, row["id"]) for row in rows for kind in row["kinds"] if kind not in SHARES), None)
        if unknown:
            expected, (found, of) = f"{PASSAGES}: expected the kinds {', '.join(SHARES)}", unknown
            msg = f"{expected}, found {found!r} of {of}; correct the edited file"
            raise CorpusError(msg)
        self.rows, self.makes, self.joins = rows, makes, joins
        self.chance = random.Random(seed)
        self.topics = topic_of_each([row["text"] for row in rows], topics)
        self.vectors = vectors_of([row["text"] for row in rows])[0]

    def drawn(self, wanted: int, cites: Edges, position_of: Mapping[str, int], *, by_rules: bool) -> list[Row]:
        """Groups of one passage, then of several: {id, topic, from, kind, persona, form, passages}.

        There are fewer than wanted if the corpus has no more. ``cites`` are the corpus's citations by position.
        """
        total = round(wanted * SPARE[by_rules])
        n_several = round(total * SEVERAL)
        several = list(self._several(n_several, cites, position_of))
        return [*self._single(total - len(several)), *several]

    def _row(self, places: Sequence[int], origin: str, kind: str, form: str) -> Row:
        persona = self.chance.choices(list(PERSONA_SHARES), list(PERSONA_SHARES.values()))[0]
        passages = [self.rows[n]["id"] for n in places]
        row = {"kind": kind, "persona": persona, "form": form, "passages": passages}
        return {"id": digest(row)[:12], "topic": self.topics[places[0]], "from": origin, **row}

    def _single(self, wanted: int) -> Iterator[Row]:
        counts: Counter[str] = Counter()
        for place in self._stratified():
            kinds = sorted(self.rows[place]["kinds"], key=lambda kind: counts[kind] / SHARES[kind])
            for kind in kinds:
                form = "question"
                if kind in ("condition", "obligation") and self.chance.random() < SCENARIOS:
                    form = "scenario"
                tried = [self._row([place], "one passage", kind, one) for one in dict.fromkeys((form, "question"))]
                made = next((row for row in tried if self.makes(row)), None)
                if made:
                    counts[kind] += 1
                    yield made
                    break
            if counts.total() >= wanted:
                return

    def _stratified(self) -> list[int]:
        """Every passage, in an order whose first items always have documents and sections in proportion."""
        groups: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for place, row in enumerate(self.rows):
            groups[row["document"], row["section"]].append(place)
        keyed = []
        for places in groups.values():
            self.chance.shuffle(places)
            keyed += [((n + self.chance.random()) / len(places), place) for n, place in enumerate(places)]
        return [place for _, place in sorted(keyed)]

    def _several(self, wanted: int, cites: Edges, position_of: Mapping[str, int]) -> Iterator[Row]:
        """Half from citations, half from similar passages of a topic."""
        of_position = {position_of[row["id"]]: n for n, row in enumerate(self.rows) if self.joins[n]}
        pairs = [
            (place, of_position[target])
            for position, place in of_position.items()
            for target in cites.get(position, ())
            if target in of_position
        ]
        self.chance.shuffle(pairs)
        n_made = 0
        for pair in pairs:
            if n_made >= wanted // 2:
                break
            row = self._row(pair, "citation", "cross-reference", "question")
            if self.makes(row):
                n_made += 1
                yield row
        yield from self._alike(wanted - n_made)

    def _alike(self, wanted: int) -> Iterator[Row]:
        of_topic: defaultdict[str, list[int]] = defaultdict(list)
        for place, topic in enumerate(self.topics):
            if topic and self.joins[place]:
                of_topic[topic].append(place)
        n_made = 0
        for place in self._stratified():
            if not self.joins[place]:
                continue
            if n_made >= wanted:
                return
            size = self.chance.choices(list(SIZES), list(SIZES.values()))[0]
            kind = "comparison" if size == 2 and self.chance.random() < 0.5 else "obligation"
            near = self._near(place, of_topic.get(self.topics[place], []))
            for others in _choices(near, size - 1):
                row = self._row([place, *others], "alike", kind, "question")
                if self.makes(row):
                    n_made += 1
                    yield row
                    break

    def _near(self, place: int, places: Sequence[int]) -> list[int]:
        if len(places) < 2:
            return []
        cosines = (self.vectors[places] @ self.vectors[place].T).toarray().ravel().round(6)
        ranked = sorted(zip((-cosines).tolist(), places, strict=True))
        return [one for value, one in ranked if one != place and LEAST_ALIKE <= -value <= MOST_ALIKE][:NEAREST]


def _choices(near: Sequence[int], n: int) -> Iterator[list[int]]:
    """Runs of ``n`` neighbours, the nearest first."""
    for start in range(max(0, len(near) - n + 1)):
        yield list(near[start : start + n])
