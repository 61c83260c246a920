"""What a viewer of traces is told of a question, and that nobody is told of it where nobody asked for that."""

import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from ragqa.errors import ConfigError, GenerationError
from ragqa.types import Question
from tests.support.fakes import FakeGenerator
from tests.support.helpers import ANSWER, make_pipeline
from tests.support.server import ROOT

ASKED = """
import sys
from ragqa.types import Question
from tests.support.helpers import make_pipeline

list(make_pipeline().run(Question("Who must act?")))
print(*sys.modules)
"""
TEXTS = ("Who must act?", "A firm must act at once.", "The moon is green.")


@pytest.fixture
def spans(monkeypatch):
    """What a collector of this process gets, by name."""
    sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="the extra otel is not installed")
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from ragqa.records import traces

    exporter, provider = InMemorySpanExporter(), sdk.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(traces, "tracer", lambda: provider.get_tracer("ragqa"))
    return exporter.get_finished_spans


def asked(monkeypatch, switch, **parts):
    monkeypatch.setenv("RAGQA_TRACES", switch)
    return list(make_pipeline(**parts).run(Question("Who must act?")))


def tree(found):
    """The spans of one question as lines, in the order of their beginnings: kind, documents, evaluations."""
    (root,) = [one for one in found if one.parent is None]
    assert all(one.parent.span_id == root.context.span_id for one in found if one is not root)
    lines = []
    for one in (root, *(span for span in found if span is not root)):
        about = one.attributes
        documents = sum(name.endswith("document.id") for name in about)
        lines.append(f"{'  ' * (one is not root)}{one.name} {about['openinference.span.kind']} {documents}")
        lines += [f"    {event.name}" for event in one.events]
    return lines


def test_a_question_is_a_tree_of_its_stages_with_documents_and_verdicts(spans, monkeypatch):
    asked(monkeypatch, "on")
    found = spans()
    lines = tree(found)
    print("\n".join(lines))
    assert [line for line in lines if "evaluation" not in line] == [
        "ask CHAIN 0",
        "  retrieval bm25 RETRIEVER 3",
        "  retrieval dense RETRIEVER 3",
        "  fusion RETRIEVER 3",
        "  filtering RETRIEVER 2",
        "  generation CHAIN 0",
        "  scoring EVALUATOR 0",
    ]
    by_name = {one.name: one for one in found}
    best = by_name["retrieval bm25"].attributes
    assert (best["retrieval.documents.0.document.id"], best["retrieval.documents.0.document.score"]) == ("1:1.1", 9.0)
    told = [event.attributes for event in by_name["scoring"].events]
    assert {event.name for event in by_name["scoring"].events} == {"gen_ai.evaluation.result"}
    labels = [one["gen_ai.evaluation.score.label"] for one in told if one["gen_ai.evaluation.name"] == "verdict"]
    assert labels == ["supported", "unsupported"]
    assert "RePASs" in [one["gen_ai.evaluation.name"] for one in told]


@pytest.mark.parametrize(("switch", "has_texts"), [("on", False), ("texts", True)])
def test_texts_are_told_only_where_a_setting_says_so(spans, monkeypatch, switch, has_texts):
    asked(monkeypatch, switch)
    said = " ".join(one.to_json() for one in spans())
    assert [text in said for text in TEXTS] == [has_texts] * len(TEXTS)


def test_a_failure_is_told_by_its_kind(spans, monkeypatch):
    with pytest.raises(GenerationError):
        asked(monkeypatch, "on", generator=FakeGenerator(ANSWER, GenerationError("a secret word"), error_after=1))
    root = next(one for one in spans() if one.parent is None)
    assert (root.attributes["error.type"], root.status.is_ok) == ("GenerationError", False)
    assert "a secret word" not in root.to_json()


def test_another_word_is_refused(monkeypatch):
    with pytest.raises(ConfigError, match="expected on, texts or off, found 'yes'"):
        asked(monkeypatch, "yes")


@pytest.mark.long
@pytest.mark.enable_socket
@pytest.mark.parametrize(("switch", "comes"), [("", False), ("off", False), ("on", True)])
def test_a_collector_is_sent_something_only_where_it_is_switched_on(tmp_path, switch, comes):
    if comes:
        pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra otel is not installed")
    sent = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self):
            sent.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        place = f"http://127.0.0.1:{server.server_port}"
        told = {"RAGQA_TRACES": switch, "OTEL_EXPORTER_OTLP_ENDPOINT": place, "RAGQA_HOME": str(tmp_path)}
        environment = {"PATH": "", "PYTHONPATH": ":".join(filter(None, [str(ROOT), *sys.path])), **told}
        done = subprocess.run([sys.executable, "-c", ASKED], env=environment, cwd=ROOT, capture_output=True, text=True)
        server.shutdown()
    assert done.returncode == 0, done.stderr
    assert [path for path, _ in sent] == (["/v1/traces"] if comes else [])
    assert ("opentelemetry" in done.stdout) == comes
    assert not any(text.encode() in body for _, body in sent for text in TEXTS)
