"""What anybody may send, as bytes, and what ragqa makes of it: the targets of `python -m tests.benchmarks.fuzz`.

A target is met with an input in a folder of its own. It gives a value or raises RagqaError; anything else is a crash.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from unittest import mock
from urllib.parse import parse_qsl, urlencode

from ragqa.conversation import Turn, rewrite
from ragqa.corpus.demo import DEMOS
from ragqa.corpus.documents import Reader, UnreadableError
from ragqa.corpus.documents.exported import ABOUT
from ragqa.corpus.documents.worker import answer
from ragqa.corpus.formats import load_corpus
from ragqa.errors import RagqaError
from ragqa.generation.llm.generator import LlmGenerator
from ragqa.index import build_index, open_index
from ragqa.infra import http as http_client
from ragqa.infra.cleaning import without_controls
from ragqa.library import parse_cache
from ragqa.library.collection import CATALOGUE, Collection, make_collection
from ragqa.library.transfer import import_corpus
from ragqa.library.update import MAX_TOKENS
from ragqa.library.upload import take
from ragqa.pipeline import assemble, clean_question
from ragqa.records.record import AnswerRecord
from ragqa.records.store import RecordStore
from ragqa.records.view import View, advance, from_record
from ragqa.retrieval.api_encoder import ApiEncoder
from ragqa.retrieval.api_reranker import ApiReranker
from ragqa.retrieval.ranking import rankings_for
from ragqa.server.access.policy import read_policy
from ragqa.server.queue import RunQueue
from ragqa.settings.config import Config, GenerationConfig, IndexingConfig
from ragqa.settings.preset_files import read_preset
from ragqa.settings.presets import PRESETS
from ragqa.types import Passage, Question
from ragqa.types.events.pipeline import Recorded
from ragqa.ui.html.answer import panes_of
from ragqa.ui.html.library import reading_html
from ragqa.ui.pages.evaluation.runs import view_from_json
from ragqa.ui.state.address import address_of, link_of, link_to, query_of
from tests.support.document_files import RULES, rules_pages, write_docx, write_html, write_pdf, write_xlsx
from tests.support.fakes import FakeEncoder, fake_models
from tests.support.helpers import make_pipeline
from tests.support.hostile import hostile_texts
from tests.support.openai_server import OpenAIServer

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
CANARY = "what-another-file-holds"


@dataclass(frozen=True)
class Target:
    """``seeds`` are good inputs, ``meet`` takes one, good or bad, and a folder that it may write to."""

    seeds: Callable[[Path], list[bytes]]
    meet: Callable[[bytes, Path], object]


def met(target: Target, data: bytes, folder: Path) -> str:
    """``value``, or the name of the RagqaError; whatever else is raised comes out."""
    try:
        target.meet(data, folder)
    except RagqaError as error:
        line = str(error)
        assert line.strip()
        assert "Traceback" not in line
        return type(error).__name__
    return "value"


@contextmanager
def writes_outside(allowed: tuple[Path, ...]):
    """What this process opens to write, makes or moves elsewhere: a set, filled while the block runs."""
    found: set[str] = set()
    roots, at_work = tuple(str(path.resolve()) for path in allowed), True
    places = {"os.mkdir": 1, "os.rename": 2, "os.symlink": 2, "os.link": 2, "os.truncate": 1}

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if not at_work or event not in {"open", *places}:
            return
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
            return
        for path in arguments[: places.get(event, 1)]:
            if isinstance(path, (str, bytes, os.PathLike)):
                real = os.path.realpath(os.fsdecode(path))
                if not real.startswith((*roots, "/dev/", "/proc/")) and "__pycache__" not in real:
                    found.add(f"{event} {real}")

    sys.addaudithook(hook)  # for good: it looks away after the block
    try:
        yield found
    finally:
        at_work = False


# Documents ----------------------------------------------------------------------------------------------------------


class Inside(Reader):
    """Reads in this process, so that what it goes through can be seen."""

    def _ask(self, request):
        told = json.loads(json.dumps(answer(request)))
        if "refused" in told:
            raise UnreadableError(told["refused"])
        return told


READERS = {"inside": Inside()}


def document(suffix: str) -> Callable[[bytes, Path], object]:
    """An upload of this kind, taken, read and shown as the page Library does it."""

    def meet(data: bytes, folder: Path) -> object:
        reader = READERS.get("process", READERS["inside"])
        collection = make_collection("drop", folder / "library")
        lines = take(collection, f"a{suffix}", io.BytesIO(data), reader)
        for one in collection.read().staged:
            assert collection.path_of(one).resolve().parent == (collection.folder / "staged").resolve()
            try:
                reading = parse_cache.read(collection, one, reader, MAX_TOKENS)
                shown = reading_html(reading)
                assert CANARY not in shown
                if suffix == ".pdf":
                    reader.picture(collection.path_of(one), 1, [(0.0, 0.0, 9.0, 9.0)])
            except UnreadableError as error:
                lines.append(str(error))
        assert all("\n" not in line and len(line) < 600 for line in lines), lines
        return lines

    return meet


def _made(write, *arguments, **options) -> Callable[[Path], bytes]:
    def made(folder: Path) -> bytes:
        path = folder / "made"
        write(path, *arguments, **options)
        return path.read_bytes()

    return made


PARTS = {
    ".docx": ("word/document.xml", "word/numbering.xml", "word/styles.xml"),
    ".xlsx": ("xl/worksheets/sheet1.xml", "xl/sharedStrings.xml", "xl/workbook.xml", "xl/styles.xml"),
}


def office(suffix: str, write) -> Target:
    """One part of an Office file: the first byte says which; so that what is changed is XML and not an archive."""

    @cache
    def whole() -> dict[str, bytes]:
        with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(io.BytesIO(_made(write)(Path(folder)))) as file:
            return {name: file.read(name) for name in file.namelist()}

    def seeds(_folder: Path) -> list[bytes]:
        outside = f'<!DOCTYPE x [<!ENTITY e SYSTEM "{canary()}">]>'.encode()
        found = [bytes([n]) + whole().get(part, b"<x/>") for n, part in enumerate(PARTS[suffix])]
        return [*found, found[0][:1] + outside + found[0][1:].replace(b"Ferry", b"&e;")]

    def meet(data: bytes, folder: Path) -> object:
        part = PARTS[suffix][(data[:1] or b"\0")[0] % len(PARTS[suffix])]
        return document(suffix)(zipped({**whole(), part: data[1:]}), folder)

    return Target(seeds, meet)


def zipped(members: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return target.getvalue()


@cache
def canary() -> str:
    path = Path(tempfile.gettempdir()) / "ragqa-fuzz-canary.txt"
    path.write_text(CANARY)
    return path.as_uri()


def _html(folder: Path) -> list[bytes]:
    outside = f'<!DOCTYPE html [<!ENTITY e SYSTEM "{canary()}">]><html><p>1.1 Firms &e; must act.</p>'
    frame = f'<html><body><p>1.1 Firms must act.</p><iframe src="{canary()}"></iframe><table><tr><td>a</table>'
    return [_made(write_html)(folder), outside.encode(), frame.encode()]


def _texts(_folder: Path) -> list[bytes]:
    demo = "\n".join(f"# {label} {text}\n\n- {text}\n" for label, text, _ in RULES)
    return [demo.encode(), b"\xff\xfe" + demo.encode("utf-16-le"), *(text.encode() for text in hostile_texts(45))]


def _tables(_folder: Path) -> list[bytes]:
    rows = "Island,Fee,Rule\n" + "\n".join(f'"{label}",{n},"{text}"' for n, (label, text, _) in enumerate(RULES))
    return [rows.encode(), rows.replace(",", ";").encode("cp1252"), rows.replace(",", "\t").encode("utf-16")]


def _archives(folder: Path) -> list[bytes]:
    members = {"rules/a.html": _made(write_html)(folder), "b.csv": _tables(folder)[0], "../c.txt": b"Firms must act."}
    return [zipped(members), zipped({"a.md": b"# 1 Rules\n\nFirms must act."}), zipped({})]


# Other formats ------------------------------------------------------------------------------------------------------


def _corpora(folder: Path) -> list[bytes]:
    rows = [
        {"ID": str(n), "DocumentID": 1, "PassageID": label, "Passage": text} for n, (label, text, _) in enumerate(RULES)
    ]
    lines = "\n".join(json.dumps({"id": n, "title": label, "text": text}) for n, (label, text, _) in enumerate(RULES))
    panda = [{"query": "Who?", "document": "Rules", "text_without_Q": RULES[2][2]}]
    return [b"\0" + json.dumps(rows).encode(), b"\1" + lines.encode(), b"\2" + json.dumps(panda).encode()]


def _corpus(data: bytes, folder: Path) -> object:
    """A corpus that somebody builds an index of: JSON of three kinds."""
    name, kind = (("1.json", "obliqa"), ("a.jsonl", "jsonl"), ("a.json", "pandachat"))[(data[:1] or b"\0")[0] % 3]
    (folder / name).write_bytes(data[1:])
    return load_corpus(folder, kind)


@cache
def _pipeline(home: Path):
    """Real rankings, the writer that quotes, and real rules, without the models that take seconds."""
    indexes, name = home / "indexes", "rulebook"
    config = IndexingConfig(encoder="none")
    demo = DEMOS[name]
    build_index(name, demo.source, indexes=indexes, config=config, encoder=None, format=demo.format)
    models = fake_models(sentences=FakeEncoder())
    return assemble(Config(index=name), open_index(name, indexes), models, RecordStore(home / "records.sqlite3"))


@cache
def _home() -> Path:
    return Path(tempfile.mkdtemp(prefix="ragqa-fuzz-home-"))


def _questions(_folder: Path) -> list[bytes]:
    asked = [gold.question.text for gold in DEMOS["rulebook"].questions()]
    short = [text for text in hostile_texts(60) if len(text) < 400]  # for the time it takes
    return [bytes([n % 3]) + text.encode() for n, text in enumerate([*asked, *short])]


def _question(data: bytes, _folder: Path) -> object:
    """A question, a text to check, or a further question, as far as its panes; its record reads back as it was."""
    text, kind = data[1:].decode("utf-8", "surrogateescape"), (data[:1] or b"\0")[0] % 3
    if kind == 2:
        before = [
            Turn("Which records must a firm keep?", "A firm must keep records of each transfer."),
            Turn(without_controls(text), without_controls(text)),  # of a record, which holds clean texts
        ]
        assert rewrite(text, before).rewritten.encode() is not None
    question = clean_question(Question("Must a firm act?" if kind == 1 else text, given=text if kind == 1 else ""))
    pipeline = _pipeline(_home())
    view = View(question, pipeline.config)
    for event in pipeline.run(question):
        view = advance(view, event)
        if isinstance(event, Recorded):
            record = pipeline.records.load(event.record_id)
            assert AnswerRecord.from_json(record.to_json()) == record
            _shown(from_record(record))
    return _shown(view)


def _shown(view: View) -> str:
    panes = panes_of(view, view.config, "x")
    html = "".join([panes.question, panes.answer, panes.scores, panes.notes, panes.status, *panes.cards.values()])
    assert "<script" not in html.lower()
    html.encode()  # as the protocol does
    return html


def _settings_seeds(_folder: Path) -> list[bytes]:
    presets = [path.read_bytes() for path in sorted((FIXTURES / "v0.1.0").glob("preset*.json"))]
    names = ("RAGQA_INDEX", "RAGQA_MODEL", "OPENAI_BASE_URL", "OPENAI_API_KEY", "RAGQA_MODE", "RAGQA_PRECISION")
    env = "\n".join([*(f"{name}=x" for name in names), "RAGQA_MAX_RUNS=3", "RAGQA_MAX_WAITING=0"])
    policy = 'default_role = "reader"\nsession_hours = 2\n[[people]]\nemail = "a@b"\nrole = "analyst"\ngroups = ["g"]\n'
    return [
        *(b"\0" + text for text in presets),
        b"\1" + env.encode(),
        b"\2" + policy.encode() + b'[corpora]\na = ["g"]\n',
    ]


def _settings(data: bytes, folder: Path) -> object:
    """A preset's file, the environment, or the file of who may do what."""
    kind, file = (data[:1] or b"\0")[0] % 3, folder / ("a.json", "env", "access.toml")[(data[:1] or b"\0")[0] % 3]
    file.write_bytes(data[1:])
    if kind == 0:
        return read_preset(file)
    if kind == 2:
        policy = read_policy(file)
        return policy.person({"iss": "i", "sub": "s", "email": "a@b", "email_verified": True, "iat": 1}, 2.0)
    lines = (line.partition("=") for line in data[1:].decode("utf-8", "surrogateescape").splitlines())
    env = {name: value for name, _, value in lines if name and "\0" not in name + value}
    with mock.patch.dict(os.environ, {name: value for name, value in env.items() if name.startswith("RAGQA_MAX_")}):
        RunQueue.from_env()
    return LlmGenerator(Config.from_env(env).generation, env.get("OPENAI_API_KEY")).close()


def _addresses(_folder: Path) -> list[bytes]:
    asked = link_to(Question("Must a firm act?"), Config(), PRESETS, Config(), rankings_for(("bm25", "dense")), "")
    texts = [urlencode(query_of(replace(asked, question=text))) for text in hostile_texts(40)]
    more = "q=a&corpus=rulebook&preset=x&threshold=0.5&max_drop=1&top_k=3&weight_bm25=0.5&fusion=rrf&mode=paper"
    return [
        address_of(asked).encode(),
        more.encode(),
        b"text=It+is.&q=&rerank_depth=3&quote_anyway=yes",
        *map(str.encode, texts),
    ]


def _address(data: bytes, _folder: Path) -> object:
    """The parameters of a page's address; what is understood comes back from the address made of it."""
    query = dict(parse_qsl(data.decode("utf-8", "replace").rpartition("?")[2], keep_blank_values=True))
    link = link_of(query)
    assert link_of(query_of(link)) == link
    return address_of(link)


def _records(_folder: Path) -> list[bytes]:
    found = [(FIXTURES / "v0.1.0" / f"record-{n}.json").read_bytes() for n in (1, 2)]
    with tempfile.TemporaryDirectory() as name:
        store = RecordStore(Path(name) / "r.sqlite3")
        for _ in make_pipeline(records=store).run(Question("Who must act?")):
            pass
        found.append(store.load(store.list()[0].record_id).to_json(indent=None).encode())
        collection = make_collection("drop", Path(name) / "library", "Drop")
        take(collection, "a.md", io.BytesIO(b"# 1 Rules\n\nFirms must act."), Inside())
        (one,) = collection.read().staged
        parse_cache.read(collection, one, Inside(), MAX_TOKENS)
        kept = next((collection.folder / "readings").glob("*.json")).read_bytes()
        catalogue = (collection.folder / CATALOGUE).read_bytes()
    about = {"ragqa": 1, "name": "a", "title": "A", "description": "", "documents": [{"id": "a", "file": "a.md"}]}
    view = b'{"benchmark": "answers", "settings": {}, "report": {}}'
    others = [catalogue, kept, json.dumps(about).encode(), view]
    archive = zipped({ABOUT: others[2], "files/a.md": b"# 1 Rules\n\nFirms must act."})
    return [*(b"\0" + one for one in found), *(bytes([n]) + one for n, one in enumerate([*others, archive], start=1))]


def _record(data: bytes, folder: Path) -> object:
    """A record, a corpus's catalogue, what was read of a file, an export of a corpus, an evaluation's view."""
    kind, told = (data[:1] or b"\0")[0] % 6, data[1:]
    if kind == 0:
        record = AnswerRecord.from_json(told)
        assert AnswerRecord.from_json(record.to_json()) == record or "nan" in record.to_json().lower()
        with suppress(KeyError):  # what a page of a record does; a body of another's making has no place in the store
            return _shown(from_record(record))
    if kind == 1:
        (folder / CATALOGUE).write_bytes(told)
        return Collection(folder).read()
    if kind == 2:
        collection = make_collection("drop", folder / "library")
        take(collection, "a.md", io.BytesIO(b"# 1 Rules\n\nFirms must act."), Inside())
        (one,) = collection.read().staged
        parse_cache.read(collection, one, Inside(), MAX_TOKENS)
        next((collection.folder / "readings").glob("*.json")).write_bytes(told)
        return parse_cache.read(collection, one, Inside(), MAX_TOKENS)
    if kind == 4:
        return view_from_json(told.decode("utf-8", "replace"), "view")
    if kind == 3:
        told = zipped({ABOUT: told, "files/a.md": b"# 1 Rules\n\nFirms must act."})
    collection = import_corpus(io.BytesIO(told), folder / "library", Inside())
    for one in collection.read().documents:
        assert collection.path_of(one).resolve().parent == (collection.folder / "files").resolve()
    return collection


# Servers ------------------------------------------------------------------------------------------------------------


PASSAGES = [Passage(f"p{number}", "d1", f"A Firm must do thing {number}.", "Conduct Rules") for number in (1, 2, 3)]


class Replying:
    """A server on this machine that sends whatever it is told to."""

    def __init__(self) -> None:
        self.code, self.body, self.kind = 200, b"", "application/json"
        self.server = OpenAIServer(self._send)
        self.server._list_models = lambda handler: self._listed(handler)
        self.server.__enter__()
        http_client._sleep = lambda seconds: None
        url = self.server.base_url
        self.environ = {
            f"{p}_{n}": v for p in ("OPENAI", "VOYAGE") for n, v in (("BASE_URL", url), ("API_KEY", "k-123"))
        }
        config = GenerationConfig(generator="llm", model="m", base_url=url, timeout_seconds=5.0, max_retries=0)
        self.generator = LlmGenerator(config, "k-123")
        self.encoder, self.reranker = (made("openai:m", environ=self.environ) for made in (ApiEncoder, ApiReranker))

    def _send(self, exchange) -> None:
        exchange.send(self.code, self.body, self.kind)

    def _listed(self, handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(self.body)))
        handler.end_headers()
        handler.wfile.write(self.body)


@cache
def _replying() -> Replying:
    return Replying()


def _replies(_folder: Path) -> list[bytes]:
    def chunk(**fields: object) -> bytes:
        told = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m", **fields}
        return f"data: {json.dumps(told)}\n\n".encode()

    said = [
        {"choices": [{"index": 0, "delta": {"content": "<think>x</think>A Firm must do thing 1 [1]. "}}]},
        {"choices": [{"index": 0, "delta": {"content": "It [2][9] is so."}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}},
    ]
    stream = b"".join(chunk(**one) for one in said) + b"data: [DONE]\n\n"
    error = json.dumps({"error": {"message": "no k-123", "type": "e", "param": "seed", "code": None}}).encode()
    listed = json.dumps({"object": "list", "data": [{"id": "m", "object": "model", "created": 0}]}).encode()
    vectors = json.dumps({"data": [{"index": n, "embedding": [0.5, 0.25 * n]} for n in range(2)]}).encode()
    scores = json.dumps({"results": [{"index": n, "relevance_score": 0.5 * n} for n in range(2)]}).encode()
    return [b"\0" + stream, b"\1" + error, b"\2" + listed, b"\3" + vectors, b"\4" + scores, b"\5" + stream]


def _reply(data: bytes, _folder: Path) -> object:
    """What a server of language models, vectors or rerankings sends back."""
    asked, kind = _replying(), (data[:1] or b"\0")[0] % 6
    asked.server.requests.clear()
    asked.code = (400, 429, 500, 200, 302, 503)[len(data) % 6] if kind == 1 else 200
    asked.body, asked.kind = data[1:], "text/event-stream" if kind in (0, 5) else "application/json"
    asked.generator.client._is_listed = kind != 2
    if kind == 3:
        return asked.encoder.encode(["a", "b"])
    if kind == 4:
        return asked.reranker.score("Who?", ["a", "b"])
    if kind == 2:
        return asked.generator.client.models()
    pipeline = make_pipeline(generator=asked.generator)
    view = View(Question("Who must act?"), pipeline.config)
    for event in pipeline.run(view.asked):
        view = advance(view, event)
    shown = _shown(view)
    assert "k-123" not in shown or b"k-123" in data.replace(b"\\", b"")
    return shown


TARGETS = {
    "pdf": Target(lambda folder: [_made(write_pdf, rules_pages())(folder)], document(".pdf")),
    "docx": office(".docx", write_docx),
    "xlsx": office(".xlsx", write_xlsx),
    "html": Target(_html, document(".html")),
    "csv": Target(_tables, document(".csv")),
    "markdown": Target(_texts, document(".md")),
    "zip": Target(_archives, document(".zip")),
    "json": Target(_corpora, _corpus),
    "question": Target(_questions, _question),
    "settings": Target(_settings_seeds, _settings),
    "address": Target(_addresses, _address),
    "record": Target(_records, _record),
    "reply": Target(_replies, _reply),
}


def emptied(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
