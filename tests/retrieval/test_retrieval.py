"""BM25 by both libraries: tokens, formula written out, ties, contract."""

import math
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragqa.english.words import ANALYSERS, Analyser, analyser_named
from ragqa.errors import ConfigError, IndexMismatchError
from ragqa.retrieval import retrievers_for
from ragqa.retrieval.analysis import analysed_text, context_analyser, indexed_text, tokenise
from ragqa.retrieval.bm25 import BM25_FILES, Bm25sRetriever, RankBm25Retriever, load_bm25
from ragqa.retrieval.ranking import Rankable, best_positions
from ragqa.settings.config import RetrievalConfig
from ragqa.types import ModelInfo
from tests.support.fakes import FakeEncoder, passage
from tests.support.made import build_bm25, hidden_passages, save_bm25, tie_order

K1, B = 1.2, 0.75
PLAIN = Analyser()
PASSAGES = (
    passage("1:1", "A dealer must keep client money in a separate account."),
    passage("1:2", "Client money is money held for a client; client assets are not money."),
    passage("1:3", "Records must be kept for six years."),
    passage("2:1", "The dealer must tell the regulator at once about any loss of client assets, in writing."),
    passage("2:2", "of the and"),
    passage("2:3", "A record is kept in writing. Records of complaints are kept apart."),
)


def bm25s_of(passages, tmp_path=None):
    model = build_bm25([tokenise(p.text, PLAIN) for p in passages], K1, B)
    if tmp_path is not None:
        save_bm25(model, tmp_path / "bm25")
        model = load_bm25(tmp_path / "bm25")
    return Bm25sRetriever(model, PLAIN, Rankable(passages, tie_order(passages), np.zeros(len(passages), dtype=bool)))


def rank_bm25_of(passages, tmp_path=None):
    return RankBm25Retriever(PLAIN, Rankable(passages, tie_order(passages), np.zeros(len(passages), dtype=bool)), K1, B)


@pytest.fixture(params=[bm25s_of, rank_bm25_of], ids=["bm25s", "rank_bm25"])
def retriever_of(request, tmp_path):
    return lambda passages: request.param(passages, tmp_path)


def ids(ranking):
    return [hit.passage.passage_id for hit in ranking.hits]


class TestTokenise:
    def test_lower_case_stop_words_and_stems(self):
        assert tokenise("The Firm's REGULATORY obligations are binding", PLAIN) == [
            "firm",
            "regulatori",
            "oblig",
            "bind",
        ]

    def test_tokens_have_two_characters_and_digits_count(self):
        assert tokenise("a b 5 12 3.4.(1) COBS_3", PLAIN) == ["12", "cobs_3"]

    def test_repeats_and_order_stay(self):
        assert tokenise("money, Money; moneys", PLAIN) == ["money", "money", "money"]

    @pytest.mark.parametrize("text", ["", "   ", "\x00\x01", "the and of", "!?—…", "\u200e\u200f", "😀"])
    def test_nothing_to_index(self, text):
        assert tokenise(text, PLAIN) == []

    def test_other_scripts_and_invisible_marks(self):
        assert tokenise("Überweisung \u200e12.3 金融庁 \ud800rule", PLAIN) == ["überweisung", "12", "金融庁", "rule"]

    def test_threads_do_not_share_a_stemmer(self):
        texts = [
            " ".join(f"{word}ing{n}s {word}ations" for word in ("regulat", "obligat", "consider")) for n in range(40)
        ]
        expected = [tokenise(text, PLAIN) for text in texts]
        barrier = threading.Barrier(4)

        def work(_):
            barrier.wait()
            return [[tokenise(text, PLAIN) for text in texts] for _ in range(20)]

        with ThreadPoolExecutor(4) as pool:
            for result in pool.map(work, range(4)):
                assert all(run == expected for run in result)

    @pytest.mark.parametrize(
        ("change", "text", "expected"),
        [
            ({"dotted_numbers": True}, "Rule 4.3.1 and 12.5 and 7", ["rule", "4.3.1", "12.5"]),
            ({"bigrams": True}, "client money rules", ["client", "money", "rule", "client money", "money rule"]),
            ({"bigrams": True}, "money", ["money"]),
            ({"stop_words": False, "language": ""}, "of the Firms", ["of", "the", "firms"]),
            ({"language": "german"}, "Die Verpflichtungen", ["die", "verpflicht"]),
            ({"language": "", "character_ngrams": 4}, "stare mi", ["_sta", "star", "tare", "are_", "_mi_"]),
            ({"language": "", "folds_accents": True}, "Čiščenje kože", ["ciscenje", "koze"]),
            ({}, "It isn’t the firm's ＭＯＮＥＹ", ["firm", "money"]),
        ],
    )
    def test_what_each_setting_does(self, change, text, expected):
        assert tokenise(text, replace(PLAIN, **change)) == expected

    def test_fields_of_a_passage(self):
        rule = passage("1:2.1", "It is deep.", title="Lakes", section="Size", number="2.1")
        assert analysed_text(rule, PLAIN) == "It is deep."
        assert analysed_text(rule, replace(PLAIN, fields=("number", "section", "text"))) == "2.1. Size. It is deep."
        assert analysed_text(passage("1:2"), replace(PLAIN, fields=("title", "text"))) == "Text of 1:2."

    def test_headings_are_hidden_only_where_asked_and_never_all(self):
        texts = ("1. CLIENT MONEY", "A firm must keep client money apart.", "(b) and")
        rows = [passage(str(number), text) for number, text in enumerate(texts)]
        assert hidden_passages(rows, PLAIN).tolist() == [False] * 3
        assert hidden_passages(rows, replace(PLAIN, hides_headings=True)).tolist() == [True, False, True]
        assert hidden_passages(rows[:1], replace(PLAIN, hides_headings=True)).tolist() == [False]

    @pytest.mark.parametrize(
        ("change", "complaint"),
        [
            ({"language": "klingon"}, "one of"),
            ({"character_ngrams": 1}, "2 to 8"),
            ({"fields": ("author",)}, "some of"),
        ],
    )
    def test_an_impossible_analyser_is_refused(self, change, complaint):
        with pytest.raises(ConfigError, match=complaint):
            Analyser(**change)

    def test_analysers_by_name_and_by_format(self):
        assert analyser_named("", "obliqa") == ANALYSERS["regulation"]
        assert analyser_named("", "text") == ANALYSERS["english"]
        assert analyser_named("characters", "obliqa") == ANALYSERS["characters"]
        assert str(ANALYSERS["regulation"]) == "regulation: dotted_numbers, bigrams, hides_headings"
        with pytest.raises(ConfigError, match="got 'klingon'"):
            analyser_named("klingon")

    def test_headed_rules_are_read_with_what_stands_above_them_and_their_neighbours_without_it(self):
        item = passage("d:1", "its issue size is at least 220 million;", title="Liquidity", section="2A › bonds which:")
        assert analysed_text(item, ANALYSERS["headed"]) == f"Liquidity. 2A › bonds which:. {item.text}"
        assert analysed_text(item, context_analyser(ANALYSERS["headed"])) == item.text
        assert context_analyser(ANALYSERS["english"]).fields == ANALYSERS["english"].fields

    def test_indexed_text_leaves_out_what_is_empty(self):
        chunk = passage("a:1", "It is deep.", title="Lake Baikal", section="Size")
        assert indexed_text(chunk, "text") == "It is deep."
        assert indexed_text(chunk, "title-section-text") == "Lake Baikal. Size. It is deep."
        assert indexed_text(passage("a:1", "It is deep."), "title-section-text") == "It is deep."


class TestBestPositions:
    def test_ties_at_the_cut_go_by_id(self):
        passages = [passage(name) for name in ("d", "b", "c", "a")]
        order = tie_order(passages)
        assert order.tolist() == [3, 1, 2, 0]
        scores = np.array([1.0, 1.0, 2.0, 1.0])
        everything = np.arange(4)
        assert best_positions(everything, scores, order, 2).tolist() == [2, 3]  # c, then a before b and d
        assert best_positions(everything, scores, order, 9).tolist() == [2, 3, 1, 0]

    @pytest.mark.parametrize("top_k", [0, -1, 5])
    def test_nothing_asked_or_nothing_there(self, top_k):
        nothing = np.array([], dtype=np.int64)
        assert best_positions(nothing, np.array([]), nothing, top_k).tolist() == []

    def test_none_wanted(self):
        assert best_positions(np.arange(2), np.array([1.0, 2.0]), np.arange(2), 0).tolist() == []

    @given(st.lists(st.sampled_from([0.5, 1.0, 1.5]), min_size=1, max_size=30), st.integers(1, 40))
    def test_as_a_plain_sort(self, scores, top_k):
        order = np.arange(len(scores))[::-1].copy()
        expected = sorted(range(len(scores)), key=lambda i: (-scores[i], order[i]))[:top_k]
        assert best_positions(np.arange(len(scores)), np.array(scores), order, top_k).tolist() == expected


class TestBothLibraries:
    def test_lucene_formula_written_out(self, retriever_of):
        passages = [passage("p", "gold gold silver"), passage("q", "silver copper"), passage("r", "iron")]
        hits = retriever_of(passages).retrieve("gold silver?", 10).hits
        idf_gold, idf_silver = math.log(1 + (3 - 1 + 0.5) / (1 + 0.5)), math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
        norm_p, norm_q = K1 * (1 - B + B * 3 / 2), K1 * (1 - B + B * 2 / 2)
        assert [hit.passage.passage_id for hit in hits] == ["p", "q"]
        assert hits[0].score == pytest.approx(idf_gold * 2 / (2 + norm_p) + idf_silver * 1 / (1 + norm_p), abs=1e-6)
        assert hits[1].score == pytest.approx(idf_silver * 1 / (1 + norm_q), abs=1e-6)

    def test_name_and_parts(self, retriever_of):
        ranking = retriever_of(PASSAGES).retrieve("client money", 3)
        assert ranking.retriever == "bm25"
        assert all(hit.parts == () and type(hit.score) is float for hit in ranking.hits)

    def test_a_word_said_twice_counts_twice(self, retriever_of):
        retriever = retriever_of(PASSAGES)
        once, twice = retriever.retrieve("complaints", 1).hits[0], retriever.retrieve("complaints complaint", 1).hits[0]
        assert twice.score == pytest.approx(2 * once.score, abs=1e-6)

    def test_ties_go_by_passage_id_also_at_the_cut(self, retriever_of):
        passages = [passage(name, "same words here") for name in ("z", "b", "y", "a")] + [passage("0", "other")]
        retriever = retriever_of(passages)
        assert ids(retriever.retrieve("words", 10)) == ["a", "b", "y", "z"]
        assert ids(retriever.retrieve("words", 2)) == ["a", "b"]

    @pytest.mark.parametrize("question", ["", "  \n", "the of and", "zebra", "?!", "😀", "\x00", "\ud800"])
    def test_nothing_known_in_the_question(self, retriever_of, question):
        assert retriever_of(PASSAGES).retrieve(question, 10).hits == ()

    def test_a_word_in_every_passage_still_scores(self, retriever_of):
        passages = [passage("a", "rule one"), passage("b", "rule two two")]
        hits = retriever_of(passages).retrieve("rule", 10).hits
        assert [hit.passage.passage_id for hit in hits] == ["a", "b"]
        assert all(hit.score > 0 for hit in hits)

    def test_a_corpus_without_words(self, retriever_of):
        assert retriever_of([passage("a", "the of"), passage("b", "?")]).retrieve("the rule", 10).hits == ()

    def test_one_passage(self, retriever_of):
        assert ids(retriever_of([passage("a", "one rule")]).retrieve("rules", 10)) == ["a"]

    def test_a_question_of_100_kb(self, retriever_of):
        assert ids(retriever_of(PASSAGES).retrieve("complaints " * 9000, 10)) == ["2:3"]


def assert_alike(passages, question):
    """Equal scores to 1e-4, and the same order wherever scores differ by more than that."""
    ours = bm25s_of(passages).retrieve(question, len(passages))
    theirs = rank_bm25_of(passages).retrieve(question, len(passages))
    score_of = {hit.passage.passage_id: hit.score for hit in theirs.hits}
    assert {hit.passage.passage_id: pytest.approx(hit.score, abs=1e-4) for hit in ours.hits} == score_of
    in_their_scores = [score_of[passage_id] for passage_id in ids(ours)]
    assert all(better > worse - 1e-4 for better, worse in pairwise(in_their_scores))


WORDS = st.sampled_from(["gold", "silver", "copper", "iron", "tin", "lead", "zinc", "the"])


class TestContract:
    @pytest.mark.parametrize("question", ["client money", "records kept in writing", "What must a dealer tell?"])
    def test_same_ranking_and_scores(self, question):
        ours, theirs = (make(PASSAGES).retrieve(question, 10) for make in (bm25s_of, rank_bm25_of))
        assert ids(ours) == ids(theirs) != []
        assert [hit.score for hit in ours.hits] == pytest.approx([hit.score for hit in theirs.hits], abs=1e-4)

    @settings(max_examples=150, deadline=None)
    @given(st.lists(st.lists(WORDS, max_size=12), min_size=1, max_size=12), st.lists(WORDS, max_size=6))
    def test_on_random_corpora(self, texts, question):
        passages = [passage(f"{n:02}", " ".join(words) or "the") for n, words in enumerate(texts)]
        assert_alike(passages, " ".join(question))


class TestFiles:
    def test_five_files_without_pickle(self, tmp_path):
        save_bm25(build_bm25([tokenise(p.text, PLAIN) for p in PASSAGES], K1, B), tmp_path)
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted(BM25_FILES)
        for path in tmp_path.glob("*.npy"):
            np.load(path, allow_pickle=False)

    def test_loaded_arrays_are_mapped_not_read(self, tmp_path):
        save_bm25(build_bm25([["rule"], ["rule", "law"]], K1, B), tmp_path)
        model = load_bm25(tmp_path)
        assert all(isinstance(model.scores[key].base, np.memmap) for key in ("data", "indices", "indptr"))
        with pytest.raises(ValueError, match="read-only"):
            model.scores["data"][0] = 1.0

    def test_equal_input_gives_equal_files(self, tmp_path):
        for folder in ("one", "two"):
            save_bm25(build_bm25([tokenise(p.text, PLAIN) for p in PASSAGES], K1, B), tmp_path / folder)
        for name in BM25_FILES:
            assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()

    @pytest.mark.parametrize("name", BM25_FILES)
    @pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[: len(data) // 2], lambda data: b"{}"])
    def test_damaged_file(self, tmp_path, name, damage):
        save_bm25(build_bm25([["rule"], ["rule", "law"]], K1, B), tmp_path)
        path = tmp_path / name
        path.write_bytes(damage(path.read_bytes()))
        with pytest.raises(IndexMismatchError, match="expected the files of a BM25 index"):
            load_bm25(tmp_path)

    def test_missing_folder(self, tmp_path):
        with pytest.raises(IndexMismatchError):
            load_bm25(tmp_path / "nowhere")


class TestRetrieversFor:
    def make_index(self):
        checked = []
        index = SimpleNamespace(
            passages=PASSAGES,
            order=tie_order(PASSAGES),
            hidden=np.zeros(len(PASSAGES), dtype=bool),
            bm25s="fast",
            rank_bm25="slow",
            context="around",
            citations=None,
            vectors="vectors",
            further={"document": lambda model: f"of {model}", "splade": lambda model: f"of {model.info.name}"},
        )
        index.check_encoder = checked.append
        index.check_models = checked.append
        return index, checked

    @pytest.mark.parametrize(("backend", "expected"), [("bm25s", "fast"), ("rank_bm25", "slow")])
    def test_library_and_names(self, backend, expected):
        index, checked = self.make_index()
        config, models = RetrievalConfig(bm25_backend=backend), {"splade": FakeEncoder()}
        lexical, context, dense, *further = retrievers_for(index, FakeEncoder(), config, models)
        assert lexical == expected
        assert context == "around"
        assert dense.name == "dense"
        assert further == ["of None", "of fake-encoder"]
        info = ModelInfo("fake-encoder", "0" * 64)
        assert checked == [info, {"splade": info}]
