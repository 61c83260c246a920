"""Late interaction (ColBERT, Khattab and Zaharia 2020): a vector per token, compared exactly with MaxSim.

::

    score(q, p) = sum over tokens i of q of  max over tokens j of p of  cosine(q_i, p_j)

The token vectors are on disk in half precision, memory-mapped. A small corpus is ranked as a whole. A large one would
have to be read from end to end for each question, so only passages that other rankings found are scored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from ragqa.errors import IndexMismatchError, ModelError
from ragqa.models.inference.pair_encoding import encodable
from ragqa.plugins.protocols import FloatMatrix
from ragqa.retrieval.local_models import SharedModel, distinct, refuse_adapters
from ragqa.retrieval.ranking import CorpusRanker, Positions, Rankable, index_files
from ragqa.types import Passage, Ranking, ScoredPassage

VECTORS: Final = "vectors.f16"  # float16, little-endian, (n_tokens, dimension), one row after another
OFFSETS: Final = "offsets.npy"  # int64, (n_texts + 1,): text i has the rows offsets[i]:offsets[i + 1]
TEXT_OF: Final = "text_of.npy"  # int32, (n_passages,): the number of a passage's text among the distinct texts
LATE_FILES: Final = (OFFSETS, TEXT_OF, VECTORS)
ENCODED_AT_ONCE: Final = 64  # texts between two reports of progress
TOKENS_PER_BATCH: Final = 2048
TOKENS_AT_ONCE: Final = 32_768  # 16 MB with 128 numbers each in single precision
LENGTH_TOLERANCE: Final = 1e-2
_INSTEAD: Final = "name a folder or a downloaded model of that kind, for example lightonai/GTE-ModernColBERT-v1"
RANKED_WHOLE: Final = 2_000_000  # most token vectors of a small corpus: 0.5 GB with 128 numbers each, 1 s on two cores

Scores = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class TokenVectors:
    """The token vectors of the distinct texts, and the text of each passage; see `LATE_FILES`."""

    vectors: npt.NDArray[np.float16]
    offsets: npt.NDArray[np.int64]
    text_of: npt.NDArray[np.int32]


class LateInteraction(CorpusRanker):
    """Ranks every passage by MaxSim."""

    def __init__(self, tokens: TokenVectors, corpus: Rankable, encoder: LateEncoder) -> None:
        super().__init__("late", corpus)
        self._tokens = tokens
        self._shown = np.flatnonzero(~corpus.hidden)
        self._encoder = encoder

    def retrieve(self, question: str, top_k: int) -> Ranking:
        """The ``top_k`` passages of highest MaxSim, however low; none for a blank question."""
        if not question.strip() or top_k < 1:
            return Ranking(self.name, ())
        return self._best(self._shown, self._scores(question, self._shown), top_k)

    def _scores(self, question: str, positions: Positions) -> Scores:
        """MaxSim of the passages at these positions, in this order; each distinct text is compared once."""
        query, tokens = self._encoder.encode_query(question), self._tokens
        if query.shape[1] != tokens.vectors.shape[1]:
            raise IndexMismatchError(
                f"the index holds token vectors of {tokens.vectors.shape[1]} numbers, the model "
                f"{self._encoder.info.name} makes {query.shape[1]}; rebuild the index with this model "
                "(`ragqa index build --also late:NAME`)"
            )
        texts, place = np.unique(tokens.text_of[positions], return_inverse=True)
        return _max_sim(query, tokens, texts)[place]


class LateRescorer(LateInteraction):
    """Scores the passages that other rankings found; without other rankings it ranks every passage."""

    def __init__(
        self, tokens: TokenVectors, corpus: Rankable, encoder: LateEncoder, position_of: Mapping[str, int]
    ) -> None:
        """As `LateInteraction`; ``position_of`` maps passage ids to positions."""
        super().__init__(tokens, corpus, encoder)
        self._position_of = position_of

    def rescore(self, question: str, passages: Sequence[Passage]) -> Ranking:
        """All of ``passages`` with their MaxSim; none for a blank question."""
        if not question.strip() or not passages:
            return Ranking(self.name, (), finds=False)
        positions = np.array([self._position_of[passage.passage_id] for passage in passages], dtype=np.int64)
        scores = self._scores(question, positions).tolist()
        return Ranking.of(self.name, [ScoredPassage(*pair) for pair in zip(passages, scores, strict=True)], finds=False)


def late_retriever(
    tokens: TokenVectors, corpus: Rankable, encoder: LateEncoder, position_of: Mapping[str, int]
) -> LateInteraction:
    """A retriever that ranks the whole corpus or, above `RANKED_WHOLE` token vectors, only scores candidates."""
    if len(tokens.vectors) <= RANKED_WHOLE:
        return LateInteraction(tokens, corpus, encoder)
    return LateRescorer(tokens, corpus, encoder, position_of)


def save_tokens(texts: Sequence[str], encoder: LateEncoder, folder: Path) -> Iterator[tuple[int, int]]:
    """Writes `LATE_FILES`: the token vectors of these texts, batch by batch; yields (done, total) distinct texts.

    Equal texts are encoded once, so that they tie exactly. A text without a token gets one vector of zeros. Raises
    ModelError.
    """
    rows, text_of = distinct(texts)
    folder.mkdir(parents=True, exist_ok=True)
    dimension, lengths = 0, []
    yield 0, len(rows)
    with (folder / VECTORS).open("wb") as file:
        for start in range(0, len(rows), ENCODED_AT_ONCE):
            for matrix in encoder.encode(rows[start : start + ENCODED_AT_ONCE]):
                dimension = dimension or matrix.shape[1]
                rows_of_text = matrix if len(matrix) else np.zeros((1, dimension), np.float32)
                if not dimension or rows_of_text.shape[1] != dimension:
                    width = f"{matrix.shape[1]} in one"
                    msg = f"expected vectors of {dimension} numbers from {encoder.info.name}, found {width}; "
                    msg += "choose another model"
                    raise ModelError(msg)
                file.write(rows_of_text.astype("<f2").tobytes())
                lengths.append(len(rows_of_text))
            yield min(start + ENCODED_AT_ONCE, len(rows)), len(rows)
    np.save(folder / OFFSETS, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), allow_pickle=False)
    np.save(folder / TEXT_OF, np.array(text_of, dtype=np.int32), allow_pickle=False)


def load_tokens(folder: Path) -> TokenVectors:
    """The output of `save_tokens`, memory-mapped read-only. Raises IndexMismatchError."""
    with index_files("the files of token vectors", folder):
        offsets, text_of = (np.asarray(np.load(folder / n, allow_pickle=False)) for n in (OFFSETS, TEXT_OF))
        numbers = np.memmap(folder / VECTORS, dtype="<f2", mode="r")
        sound = offsets.dtype == np.int64 and text_of.dtype == np.int32 and offsets.ndim == text_of.ndim == 1
        if not sound or offsets[0] != 0 or (np.diff(offsets) < 1).any() or text_of.max() + 1 != len(offsets) - 1:
            raise ValueError(f"{OFFSETS} and {TEXT_OF} are not of the same texts")
        if len(numbers) % int(offsets[-1]):
            raise ValueError(f"{VECTORS} holds {len(numbers):,} numbers, not a multiple of {int(offsets[-1]):,} tokens")
    return TokenVectors(np.asarray(numbers).reshape(int(offsets[-1]), -1), offsets, text_of)


def _max_sim(query: FloatMatrix, tokens: TokenVectors, texts: npt.NDArray[np.int32]) -> Scores:
    """The MaxSim of each text, shape (n_texts,); ``texts`` is ascending. Tokens are read in blocks of whole texts."""
    scores = np.empty(len(texts), dtype=np.float32)
    starts, ends = tokens.offsets[texts], tokens.offsets[texts + 1]
    sizes = np.cumsum(ends - starts)
    begin = 0
    while begin < len(texts):
        done = sizes[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(sizes, done + TOKENS_AT_ONCE, side="right")))
        block = _rows(tokens.vectors, starts[begin:end], ends[begin:end])
        cosines = block @ query.T
        first = np.concatenate([[0], np.cumsum(ends[begin:end] - starts[begin:end])[:-1]])
        scores[begin:end] = np.maximum.reduceat(cosines, first, axis=0).sum(axis=1)
        begin = end
    return scores


def _rows(vectors: npt.NDArray[np.float16], starts: Positions, ends: Positions) -> FloatMatrix:
    """The rows of these ranges, concatenated, in single precision."""
    breaks = np.flatnonzero(starts[1:] != ends[:-1]) + 1  # adjacent texts are read as one range
    runs = zip(starts[[0, *breaks]].tolist(), ends[[*(breaks - 1), -1]].tolist(), strict=True)
    return np.concatenate([vectors[start:end] for start, end in runs]).astype(np.float32)


class LateEncoder(SharedModel[FloatMatrix]):
    """A late-interaction encoder with sentence-transformers' MultiVectorEncoder, from version 6.

    It reads checkpoints of PyLate and of Stanford's ColBERT as well as those of sentence-transformers.
    """

    def __init__(self, name: str) -> None:
        """Loads the model called ``name``, as `ragqa.retrieval.local_models.weights_of` finds it. Raises ModelError."""
        import sentence_transformers

        if not hasattr(sentence_transformers, "MultiVectorEncoder"):
            raise ModelError(
                "expected a version of sentence-transformers with late interaction (6.2 or later), found an older "
                "one; install the extra: `pip install 'ragqa[late]'`"
            )
        refuse_adapters(name, "a late-interaction model (ColBERT)")
        super().__init__(name, "MultiVectorEncoder", "a late-interaction model (ColBERT)", _INSTEAD)

    def encode(self, texts: Sequence[str]) -> list[FloatMatrix]:
        """The token vectors of passages: for each text, float32 of shape (n_tokens, dimension), rows of length 1.

        A text may have no row. Text beyond the model's window is not read. Raises ModelError if rows are not finite or
        not of length 1.
        """
        clean = [encodable(text) for text in texts]
        encoded: list[FloatMatrix] = [np.zeros((0, 0), np.float32)] * len(clean)
        for batch in self._batches(clean, TOKENS_PER_BATCH, None):
            matrices = self._encode_batch([clean[position] for position in batch], query=False)
            for position, matrix in zip(batch, matrices, strict=True):
                encoded[position] = matrix
        return encoded

    def encode_query(self, text: str) -> FloatMatrix:
        """The token vectors of a question, read-only. Recent questions are cached."""
        return self._queries.get(text, lambda: self._question(text))

    def _question(self, text: str) -> FloatMatrix:
        (matrix,) = self._encode_batch([encodable(text)], query=True)
        matrix.setflags(write=False)
        return matrix

    def _encode_batch(self, texts: list[str], *, query: bool) -> list[FloatMatrix]:
        vectors = self._computed(texts, query=query, convert_to_numpy=True, normalize_embeddings=True)
        matrices = [np.array(matrix, dtype=np.float32) for matrix in vectors]
        lengths = np.concatenate([np.linalg.norm(matrix, axis=1) for matrix in matrices])
        if not (np.abs(lengths - 1) <= LENGTH_TOLERANCE).all():  # False for NaN and infinity, too
            raise ModelError(f"expected vectors of length 1 from the model {self.info.name}, found others; {_INSTEAD}")
        return matrices
