"""The bundled parts: generators, rankings, encoders, rerankers, NLI models, corpus formats.

`ragqa.plugins.registry` adds the parts of other packages and creates them all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

GENERATORS: Final = "ragqa.generators"
RETRIEVERS: Final = "ragqa.retrievers"
ENCODERS: Final = "ragqa.encoders"
RERANKERS: Final = "ragqa.rerankers"
NLI_MODELS: Final = "ragqa.nli_models"
CORPUS_FORMATS: Final = "ragqa.corpus_formats"
BENCHMARKS: Final = "ragqa.benchmarks"  # `ragqa.evaluation` says what these are

LANGUAGE_MODEL: Final = "a language model"


@dataclass(frozen=True, slots=True)
class Part:
    """One part. Capitals in ``name`` are placeholders for the user's own name: ``splade:MODEL``, ``FOLDER``.

    ``maker`` is ``module:attribute``; empty if the part is created with its index. ``needs`` names a language model, an
    extra (``ragqa[late]``) or the variable of a key. ``options`` are the fields of
    `ragqa.settings.config.GenerationConfig` that it reads in addition to those of every language model. ``also``: it
    has files of its own and is added to an index by ``--also``. ``score`` is the name of a ranking's raw score in
    tables, ``package`` the package it comes from, empty for ragqa itself.
    """

    name: str
    label: str
    explanation: str
    maker: str | Callable[..., Any] = ""
    needs: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    also: bool = False
    score: str = ""
    package: str = ""

    @property
    def key(self) -> str:
        """The name without its placeholder: ``splade`` for ``splade:MODEL``."""
        return self.name.partition(":")[0]

    @property
    def is_name(self) -> bool:
        """Whether the name has no placeholder, so that it can be offered in a list."""
        return not re.search(r"\b[A-Z]{2,}\b", self.name)


_LLM: Final = (LANGUAGE_MODEL,)
OURS: Final[Mapping[str, tuple[Part, ...]]] = {
    GENERATORS: (
        Part(
            "direct",
            "direct, no language model",
            "Quotes the sentence that answers, then its evidence; or refuses.",
            "ragqa.generation.direct.generator:DirectGenerator",
            options=("quote_anyway",),
        ),
        Part(
            "concise",
            "concise, no language model",
            "The few sentences nearest to the question, quoted.",
            "ragqa.generation.concise:ConciseGenerator",
        ),
        Part(
            "extractive",
            "extractive, no language model",
            "The obligations in the passages, quoted.",
            "ragqa.generation.extractive:ExtractiveGenerator",
        ),
        Part(
            "baseline",
            "the kept passages, no language model",
            "Every sentence of every kept passage.",
            "ragqa.generation.baseline:BaselineGenerator",
        ),
        Part(
            "llm",
            "language model",
            "A language model answers from the passages; or the question is refused.",
            "ragqa.generation.direct.model:DirectLlmGenerator",
            _LLM,
            ("quote_anyway",),
        ),
        Part(
            "obligations",
            "language model, obligations only",
            "A language model reads only the obligations found in the passages.",
            "ragqa.generation.llm.generator:ObligationsGenerator",
            _LLM,
        ),
        Part(
            "loc",
            "LOC, obligation by obligation",
            "A language model answers each obligation until the answer covers it.",
            "ragqa.generation.loc:LocGenerator",
            _LLM,
            ("tries", "max_calls"),
        ),
        Part(
            "vrr",
            "VRR, verified and refined",
            "A language model writes candidates; the best by RePASs is refined.",
            "ragqa.generation.vrr:VrrGenerator",
            _LLM,
            ("candidates", "rounds", "max_calls"),
        ),
        Part(
            "fan-out",
            "fan-out, no language model",
            "Rules split the question; each part is searched for and answered by quotations.",
            "ragqa.generation.fanout.generator:fan_out_generator",
            options=("max_sub_questions",),
        ),
        Part(
            "fan-out-llm",
            "fan-out, language model",
            "A language model splits the question; each part is searched for and answered.",
            "ragqa.generation.fanout.model:FanOutLlmGenerator",
            _LLM,
            ("max_sub_questions", "depth", "max_calls"),
        ),
        Part("none", "none, passages only", "No answer is written: only the passages are shown."),
    ),
    RETRIEVERS: (
        Part("bm25", "BM25", "Weight of lexical retrieval (BM25); 0: off.", score="BM25"),
        Part("context", "Context", "BM25 over each passage together with its neighbours in the document."),
        Part("dense", "Dense", "Dense retrieval: cosine similarity of embeddings.", score="cosine"),
        Part("citations", "Citations", "Passages that the best passages cite, or that cite them.", score="linked"),
        Part("document", "Document", "BM25 over whole documents: a passage counts as much as its document.", also=True),
        Part(
            "splade:MODEL",
            "SPLADE",
            "Learned sparse retrieval: terms weighted and expanded by a model.",
            "ragqa.retrieval.splade:SpladeEncoder",
            also=True,
            score="SPLADE",
        ),
        Part(
            "late:MODEL",
            "Late interaction",
            "Late interaction: embeddings of tokens (ColBERT).",
            "ragqa.retrieval.late_interaction:LateEncoder",
            ("ragqa[late]",),
            also=True,
            score="MaxSim",
        ),
        Part("dense:ENCODER", "Dense", "Dense retrieval by a further encoder.", also=True),
    ),
    ENCODERS: (
        Part("all-MiniLM-L6-v2", "all-MiniLM-L6-v2", "384-dimensional, bundled."),
        Part("FOLDER", "a folder or hub name", "Any sentence-transformers model; +FOLDER after it: with an adapter."),
        Part("openai:MODEL", "OpenAI", "OpenAI's embeddings, or any server's.", "", ("OPENAI_API_KEY",)),
        Part("voyage:MODEL", "Voyage", "Voyage's embeddings.", "", ("VOYAGE_API_KEY",)),
        Part("none", "none", "No vectors: lexical retrieval only."),
    ),
    RERANKERS: (
        Part("ranker-regulation", "Learning to rank", "Learning to rank, trained on many rulebooks; fast, bundled."),
        Part(
            "ranker-adgm", "Learning to rank, one rulebook", "The same, trained on questions about one rulebook alone."
        ),
        Part(
            "ranker-adgm-large",
            "Learning to rank, one rulebook, large",
            "The same for indexes with the ranking of encoder-adgm.",
        ),
        Part("answers-minilm-l12", "Cross-encoder", "A cross-encoder for questions in English; slow, bundled."),
        Part("FOLDER", "a folder or hub name", "A cross-encoder, or a reranker trained by `ragqa train`."),
        Part("voyage:MODEL", "Voyage", "Voyage's rerankers, such as voyage:rerank-2.", "", ("VOYAGE_API_KEY",)),
        Part("openai:MODEL", "a server", "A server with /rerank, as vLLM's.", "", ("OPENAI_BASE_URL",)),
    ),
    NLI_MODELS: (
        Part("nli-minilm-l6", "nli-minilm-l6", "Six layers, trained for regulation; bundled."),
        Part("FOLDER", "a folder or hub name", "Any cross-encoder of three classes."),
    ),
    CORPUS_FORMATS: (
        Part("obliqa", "ObliQA", "JSON documents of ObliQA's schema."),
        Part(
            "documents", "documents", "A folder of PDF, Word, HTML, XML, Excel, CSV and text files, and ZIP of these."
        ),
        Part("pdf", "PDF", "Only the PDF files; scans are refused."),
        Part("docx", "Word", "Only the .docx and .docm files, with the numbers Word prints."),
        Part("html", "HTML", "Only saved web pages: their main text."),
        Part("sheets", "tables", "Only .xlsx, .xlsm, .csv and .tsv."),
        Part("text", "text", "Markdown and plain text: .md, .markdown, .txt."),
        Part("jsonl", "JSON lines", "JSON lines: a passage or a document on each."),
        Part("pandachat", "PandaChat", "PandaChat's set of articles and questions."),
        Part("dump", "Wikipedia dump", "A wiki's .xml, .xml.bz2 or .xml.gz."),
        Part("zim", "ZIM", "A ZIM file, as Kiwix distributes.", "", ("ragqa[zim]",)),
        Part("mediawiki", "MediaWiki", "Pages of a wiki's api.php, with --titles."),
        Part("kiwix", "Kiwix", "Pages of a Kiwix server, with --titles."),
    ),
}
