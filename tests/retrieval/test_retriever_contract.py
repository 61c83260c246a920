"""One contract for every retriever, whatever it ranks by."""

import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from ragqa.english.words import Analyser
from ragqa.infra import http as http_client
from ragqa.plugins.protocols import Rescorer, Retriever
from ragqa.retrieval import rank
from ragqa.retrieval.analysis import context_analyser, context_windows, token_table, tokenise
from ragqa.retrieval.api_encoder import ApiEncoder
from ragqa.retrieval.bm25 import Bm25sRetriever, RankBm25Retriever, load_bm25
from ragqa.retrieval.dense import DenseRetriever, read_vectors, write_vectors
from ragqa.retrieval.document_bm25 import DocumentBm25, load_documents
from ragqa.retrieval.late_interaction import LateEncoder, LateInteraction, LateRescorer, load_tokens, save_tokens
from ragqa.retrieval.milvus.bm25 import MilvusBm25, SparseModel, SparseWords, idf_of
from ragqa.retrieval.milvus.client import Milvus
from ragqa.retrieval.milvus.corpus import MilvusPassages, MilvusVectors, mark_row, placed, row_of
from ragqa.retrieval.ranking import Rankable
from ragqa.retrieval.splade import SpladeEncoder, SpladeRetriever, load_sparse, save_sparse
from tests.support.embedding_server import EmbeddingServer, reset, status, vectors
from tests.support.fakes import FakeEncoder, passage, ranking
from tests.support.hostile import hostile_texts
from tests.support.made import build_bm25, save_bm25, save_documents, scored_bm25, tie_order

PLAIN = Analyser()
K1, B = 1.2, 0.75
PASSAGES = (
    passage("1:1", "A dealer must keep client money in a separate account."),
    passage("1:2", "Client money is money held for a client; client assets are not money."),
    passage("1:3", "Records must be kept for six years."),
    passage("2:1", "The dealer must tell the regulator at once about any loss of client assets, in writing."),
    passage("2:2", "of the and"),
    passage("2:3", "A record is kept in writing. Records of complaints are kept apart."),
    passage("2:9", "Same words: client money records."),
    passage("2:8", "Same words: client money records."),
    passage("3:1", "1. CLIENT MONEY RECORDS"),
)
HIDDEN = "3:1"
QUESTION = "When must a dealer keep client money records?"
ORDER = tie_order(PASSAGES)
MASK = np.array([one.passage_id == HIDDEN for one in PASSAGES])
TEXTS = [one.text for one in PASSAGES]
TOKENS = [tokenise(text, PLAIN) for text in TEXTS]
FAULTS = (status(429, retry_after="0"), reset(), status(503))


@dataclass(frozen=True)
class Tools:
    """What building takes."""

    folder: Path
    model: Callable[[str], str]  # the folder of a tiny model of this kind
    serve: Callable[..., EmbeddingServer]
    api: Callable[[str, EmbeddingServer], ApiEncoder]
    milvus: Callable[[], str]  # the address of its server


def bm25s(tools):
    save_bm25(build_bm25(TOKENS, K1, B), tools.folder)
    return Bm25sRetriever(load_bm25(tools.folder), PLAIN, Rankable(PASSAGES, ORDER, MASK))


def rank_bm25(tools):
    return RankBm25Retriever(PLAIN, Rankable(PASSAGES, ORDER, MASK), K1, B)


def context(tools):
    analyser = context_analyser(PLAIN)
    windows = context_windows([one.document_id for one in PASSAGES], 1)
    save_bm25(scored_bm25(token_table(TOKENS), K1, B, windows), tools.folder)
    return Bm25sRetriever(load_bm25(tools.folder), analyser, Rankable(PASSAGES, ORDER, MASK), "context")


def dense_of(tools, encoder):
    write_vectors(encoder.encode(TEXTS), tools.folder / "dense.faiss")
    return DenseRetriever(read_vectors(tools.folder / "dense.faiss"), Rankable(PASSAGES, ORDER, MASK), encoder)


def dense(tools):
    return dense_of(tools, FakeEncoder())


def openai(tools):
    server = tools.serve(vectors(), *FAULTS, vectors())  # passages, then a question that meets every fault
    return dense_of(tools, tools.api("openai:test", server))


def voyage(tools):
    server = tools.serve(*FAULTS, vectors(), *FAULTS, vectors())
    return dense_of(tools, tools.api("voyage:test", server))


def document(tools):
    save_documents(PASSAGES, token_table(TOKENS), K1, B, tools.folder)
    return DocumentBm25(load_documents(tools.folder), PLAIN, Rankable(PASSAGES, ORDER, MASK))


def splade(tools):
    encoder = SpladeEncoder(tools.model("splade"))
    list(save_sparse(TEXTS, encoder, tools.folder))
    return SpladeRetriever(load_sparse(tools.folder), Rankable(PASSAGES, ORDER, MASK), encoder)


def late(tools):
    encoder = LateEncoder(tools.model("late"))
    list(save_tokens(TEXTS, encoder, tools.folder))
    return LateInteraction(load_tokens(tools.folder), Rankable(PASSAGES, ORDER, MASK), encoder)


def late_rescorer(tools):
    encoder = LateEncoder(tools.model("late"))
    list(save_tokens(TEXTS, encoder, tools.folder))
    positions = {one.passage_id: n for n, one in enumerate(PASSAGES)}
    return LateRescorer(load_tokens(tools.folder), Rankable(PASSAGES, ORDER, MASK), encoder, positions)


def in_milvus(tools, name, **fields):
    """As after an update: half of the rows came later, some of another generation are there, and one is left out."""
    collection = Milvus(tools.milvus(), f"contract_{name}")
    dimension, sparse = len(fields["dense"][0]) if "dense" in fields else 0, [key for key in fields if key != "dense"]
    own = [{key: values[n] for key, values in fields.items()} for n in range(len(PASSAGES))]
    keys = [n if n % 2 else 20 + n for n in range(len(PASSAGES))]
    now = [row_of(key, 2 - n % 2, PASSAGES[n], hidden=bool(MASK[n]), fields=own[n]) for n, key in enumerate(keys)]
    gone = [row_of(40 + n, 1, PASSAGES[0], hidden=False, fields=own[0]) for n in range(3)]
    later = [row_of(50 + n, 3, PASSAGES[1], hidden=False, fields=own[1]) for n in range(3)]
    marks = [mark_row(generation, dimension, sparse) for generation in (1, 2)]
    collection.create(dimension, "Flat", sparse)
    assert list(collection.insert([*gone, *now, *later, *marks]))[-1] == len(PASSAGES) + 8
    return MilvusPassages(collection, placed(np.array(keys)), 2)


def bm25_in_milvus(tools, name="bm25", windows=None):
    """As after an update: the words' rarity and the average length were others when the rows were written."""
    analyser = context_analyser(PLAIN) if windows is not None else PLAIN
    model = scored_bm25(token_table(TOKENS), K1, B, windows)
    spans = windows if windows is not None else [(n, n + 1) for n in range(len(PASSAGES))]
    texts = [[token for tokens in TOKENS[first:last] for token in tokens] for first, last in spans]
    lengths = np.array([len(tokens) for tokens in texts], dtype=np.int32)
    idf, n_tokens = idf_of(model.scores["indptr"], len(PASSAGES)), len(model.vocabulary)
    words = SparseWords(
        vocabulary=model.vocabulary,
        numbers=np.random.default_rng(7).permutation(n_tokens) + 1,
        idf0=(idf * np.linspace(0.9, 1.1, n_tokens)).astype(np.float32),
        idf=idf,
        lengths=lengths,
        length0=lengths.mean() * 0.96,
        length=lengths.mean(),
        next_number=n_tokens + 1,
        k1=K1,
        b=B,
    )
    rows = [words.weights(tokens, len(tokens)) for tokens in texts]
    found = SparseModel(words, model.scores["indptr"], len(PASSAGES))
    return MilvusBm25(found, analyser, Rankable(in_milvus(tools, name, **{name: rows}), ORDER, MASK), name)


def milvus_bm25(tools):
    return bm25_in_milvus(tools)


def milvus_context(tools):
    return bm25_in_milvus(tools, "context", context_windows([one.document_id for one in PASSAGES], 1))


def milvus_dense(tools):
    encoder = FakeEncoder()
    vectors = encoder.encode(TEXTS)
    passages = in_milvus(tools, "dense", dense=vectors)
    return DenseRetriever(MilvusVectors(passages, vectors.shape[1], 0), Rankable(passages, ORDER, MASK), encoder)


NAMES = {
    bm25s: "bm25",
    rank_bm25: "bm25",
    context: "context",
    milvus_bm25: "bm25",
    milvus_context: "context",
    milvus_dense: "dense",
    dense: "dense",
    openai: "dense",
    voyage: "dense",
    document: "document",
    splade: "splade",
    late: "late",
    late_rescorer: "late",
}
RESCORERS = [document, late_rescorer]
_built: dict[Callable[[Tools], Retriever], Retriever] = {}


@pytest.fixture(scope="module")
def build(tmp_path_factory, request):
    """Each retriever is built once for the whole module, its server included."""
    opened, pauses = ExitStack(), pytest.MonkeyPatch()
    pauses.setattr(http_client, "_sleep", lambda seconds: None)

    def serve(*script):
        return opened.enter_context(EmbeddingServer(*script))

    def api(name, server):
        variable = f"{name.partition(':')[0].upper()}_BASE_URL"
        return opened.enter_context(closing(ApiEncoder(name, environ={variable: server.base_url})))

    def make(maker):
        if maker not in _built:
            folder = tmp_path_factory.mktemp(maker.__name__)
            model = lambda kind: str(request.getfixturevalue(f"{kind}_model"))  # noqa: E731
            _built[maker] = maker(Tools(folder, model, serve, api, lambda: request.getfixturevalue("milvus").uri))
        return _built[maker]

    yield make
    _built.clear()
    pauses.undo()
    opened.close()


@pytest.fixture(params=list(NAMES), ids=lambda maker: maker.__name__)
def retriever(request, build):
    return build(request.param)


@pytest.fixture(params=RESCORERS, ids=lambda maker: maker.__name__)
def rescorer(request, build):
    return build(request.param)


def assert_sound(found, name, top_k):
    keys = [(-hit.score, hit.passage.passage_id) for hit in found.hits]
    assert found.retriever == name
    assert len(found.hits) <= max(top_k, 0)
    assert keys == sorted(keys)
    assert len({passage_id for _, passage_id in keys}) == len(keys)
    assert HIDDEN not in {passage_id for _, passage_id in keys}
    assert all(type(hit.score) is float and math.isfinite(hit.score) for hit in found.hits)
    assert all(hit.passage in PASSAGES and hit.parts == () for hit in found.hits)


class TestEveryRetriever:
    @pytest.mark.parametrize("maker", list(NAMES), ids=lambda maker: maker.__name__)
    def test_name(self, maker, build):
        assert build(maker).name == NAMES[maker]

    @pytest.mark.parametrize("top_k", [-1, 0, 1, 2, 5, 8, 9, 10, 1000])
    def test_at_most_top_k_in_order_and_nothing_hidden(self, retriever, top_k):
        found = retriever.retrieve(QUESTION, top_k)
        assert_sound(found, retriever.name, top_k)
        assert bool(found.hits) == (top_k > 0)

    def test_a_shorter_ranking_is_the_beginning_of_a_longer_one(self, retriever):
        whole = retriever.retrieve(QUESTION, 100).hits
        for top_k in range(len(whole) + 1):
            assert retriever.retrieve(QUESTION, top_k).hits == whole[:top_k]

    def test_equal_texts_tie_and_go_by_id(self, retriever):
        score = {hit.passage.passage_id: hit.score for hit in retriever.retrieve(QUESTION, 100).hits}
        if retriever.name != "context":  # their neighbours differ
            assert score["2:8"] == score["2:9"]
        assert [name for name in score if name in {"2:8", "2:9"}] == ["2:8", "2:9"]

    @pytest.mark.parametrize("question", ["", " ", "\n\t \u2003"])
    def test_a_blank_question_finds_nothing(self, retriever, question):
        assert retriever.retrieve(question, 10).hits == ()

    def test_the_same_answer_twice(self, retriever):
        assert retriever.retrieve(QUESTION, 5) == retriever.retrieve(QUESTION, 5)

    def test_the_same_answer_from_eight_threads_at_once(self, retriever):
        questions = [QUESTION, *(f"{QUESTION} {n} records of loss" for n in range(7))]
        expected = [retriever.retrieve(question, 5) for question in questions]
        barrier = threading.Barrier(8)

        def work(first):
            barrier.wait()
            places = [(first + n) % 8 for n in range(8)]
            return {place: retriever.retrieve(questions[place], 5) for place in places}

        with ThreadPoolExecutor(8) as pool:
            for found in pool.map(work, range(8)):
                assert [found[place] for place in range(8)] == expected

    def test_hostile_questions(self, retriever):
        for question in hostile_texts(120):
            assert_sound(retriever.retrieve(question, 4), retriever.name, 4)

    @pytest.mark.parametrize("question", ["\ud800 money", "\x00money\x00", "money " * 20_000, "\u202emoney\u202c"])
    def test_text_that_no_keyboard_types(self, retriever, question):
        assert_sound(retriever.retrieve(question, 4), retriever.name, 4)


class TestRescorers:
    def test_only_they_rescore(self, build):
        assert [maker for maker in NAMES if isinstance(build(maker), Rescorer)] == RESCORERS

    @pytest.mark.parametrize("wanted", [["2:3"], ["1:1", "2:9", "2:8", "1:3"], ["2:2"]])
    def test_they_score_what_they_are_given_as_they_would_alone(self, rescorer, wanted):
        given = [one for one in PASSAGES if one.passage_id in wanted]
        alone = {hit.passage: hit.score for hit in rescorer.retrieve(QUESTION, 100).hits}
        found = rescorer.rescore(QUESTION, given)
        assert_sound(found, rescorer.name, len(given))
        assert not found.finds
        assert {hit.passage: hit.score for hit in found.hits} == pytest.approx({one: alone[one] for one in given})

    @pytest.mark.parametrize("question", ["", "  ", QUESTION])
    def test_nothing_given_or_asked(self, rescorer, question):
        found = rescorer.rescore(question, () if question == QUESTION else PASSAGES[:3])
        assert found.hits == ()
        assert not found.finds

    def test_ranking_with_others_they_score_what_those_found(self, rescorer, build):
        lexical, rescored = rank((build(bm25s), rescorer), "complaints", 2)
        assert [hit.passage.passage_id for hit in lexical.hits] == ["2:3"]
        assert {hit.passage.passage_id for hit in rescored.hits} == {"2:3"}

    def test_ranking_alone_they_rank(self, rescorer):
        (alone,) = rank((rescorer,), QUESTION, 3)
        assert alone.finds
        assert len(alone.hits) == 3


@pytest.mark.parametrize(("ours", "theirs"), [(bm25s, milvus_bm25), (context, milvus_context), (dense, milvus_dense)])
def test_an_engine_scores_as_the_files_do_whatever_was_updated(build, ours, theirs):
    for question in (QUESTION, "records records of complaints", "client assets", "The dealer must tell of losses"):
        one, other = (build(maker).retrieve(question, 20).hits for maker in (ours, theirs))
        assert [hit.passage for hit in one] == [hit.passage for hit in other]
        exact = pytest.approx([hit.score for hit in one], rel=1e-6) if ours is dense else [hit.score for hit in one]
        assert [hit.score for hit in other] == exact


def test_rank_keeps_the_order_of_the_retrievers(build):
    names = [found.retriever for found in rank([build(m) for m in (late_rescorer, bm25s, document)], QUESTION, 3)]
    assert names == ["late", "bm25", "document"]
    assert rank((), QUESTION, 3) == ()


def test_a_fake_keeps_no_other_contract():
    from tests.support.fakes import FakeRetriever

    fake = FakeRetriever(ranking("bm25", {"a": 2.0, "b": 1.0}))
    assert not isinstance(fake, Rescorer)
    assert rank((fake,), "q", 1)[0].hits == fake.result.hits[:1]
