"""Inputs that nobody should have to survive: `python -m tests.benchmarks.fuzz [--inputs 10000] [--only pdf record]`.

Every target of `tests.support.fuzzed` is met with changed copies of good inputs in two ways: hypothesis changes them by
the kinds of edits below, and atheris (libFuzzer) by which lines of ragqa they reach (`pip install 'ragqa[fuzz]'`; what
is written in C is not among these lines). Documents go through the reading process for hypothesis, through the same
code in the fuzzing process for atheris. A share of the inputs goes down the page's own websocket to a running
`app.py`: addresses, questions and files that are typed and dropped by nobody's browser.

A crash is whatever is neither a value nor a RagqaError, a process that dies, and 60 seconds without an end; counted
too are traces on a page or in the server's log, and files written outside of the folder given. Found inputs are kept
in ``--keep``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.configuration import set_hypothesis_home_dir

from ragqa.corpus.documents import Reader
from tests.support.fuzzed import READERS, TARGETS, emptied, met, writes_outside
from tests.support.hostile import hostile_texts
from tests.support.server import ROOT, running_app
from tests.support.visitor import Visitor

SECONDS = 60  # for one input
PAGES = ("", "ask", "check", "compare", "sweep", "library", "read", "records", "evaluate")
TOKENS = (
    *(
        b"\0",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\xed\xa0\x80",
        b"\r\n",
        b"{",
        b"[",
        b"]",
        b'"',
        b"\\ud800",
        b"\\u0000",
        b"null",
    ),
    *(
        b"true",
        b"-1",
        b"0",
        b"1e999",
        b"NaN",
        b"Infinity",
        b"99999999999999999999",
        b"9" * 5000,
        b"[" * 3000,
        b'{"a":' * 3000,
    ),
    *(
        b"<",
        b"</",
        b"]]>",
        b"<!--",
        b"<table>",
        b"<tr><td>",
        b"<p>" * 900,
        b"&#0;",
        b"&#xd800;",
        b"%PDF-",
        b"PK\x03\x04",
    ),
    *(
        b"../",
        b"/etc/passwd",
        b"=cmd|x",
        b"%00",
        b"\xe2\x80\xae",
        b"1.1.1.1.1.1",
        b"(iv)(z)",
        b"rowspan=99999",
        b"stream\n",
    ),
)


@st.composite
def changed(draw: Any, seeds: list[bytes]) -> bytes:
    """A good input after up to eight edits; one of three JSON texts gets another value in some place instead."""
    data = draw(st.sampled_from(seeds))
    if draw(st.integers(0, 2)) == 0 and (told := _with_other_value(draw, data)) is not None:
        return told
    for _ in range(draw(st.integers(0, 8))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.integers(0, 64)))
        kind = draw(st.integers(0, 6))
        other = draw(st.sampled_from(seeds))
        new = {
            0: draw(st.binary(max_size=16)) if kind == 0 else b"",
            1: draw(st.sampled_from(TOKENS)) if kind == 1 else b"",
            2: data[at:end] * 2,
            3: b"",
            4: draw(st.sampled_from(hostile_texts(60))).encode() if kind == 4 else b"",
            5: other[at : at + 200],
        }
        data = data[:at] + new.get(kind, b"") + (b"" if kind == 6 else data[end:])
    return data


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from(hostile_texts(60)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def _with_other_value(draw: Any, data: bytes) -> bytes | None:
    start = next((place for place in range(min(2, len(data))) if data[place : place + 1] in (b"{", b"[")), None)
    if start is None:
        return None
    try:
        whole = json.loads(data[start:])
    except ValueError:
        return None
    for _ in range(draw(st.integers(1, 2))):
        here: Any = whole
        while isinstance(here, (dict, list)) and here:
            key = draw(st.sampled_from(sorted(here) if isinstance(here, dict) else range(len(here))))
            if not isinstance(here[key], (dict, list)) or not here[key] or draw(st.integers(0, 3)) == 0:
                if draw(st.integers(0, 4)) == 0:
                    del here[key]
                else:
                    here[key] = draw(ANY_JSON)
                break
            here = here[key]
    return data[:start] + json.dumps(whole).encode()


class Found:
    """What went wrong, once for each place in the code."""

    def __init__(self, keep: Path) -> None:
        self.keep, self.outcomes, self.crashes, self.refused = keep, Counter[str](), {}, 0
        keep.mkdir(parents=True, exist_ok=True)

    def meet(self, name: str, data: bytes, folder: Path) -> None:
        try:
            self.outcomes[met(TARGETS[name], data, emptied(folder))] += 1
        except Exception as error:
            frames = [one for one in traceback.extract_tb(error.__traceback__) if "/ragqa/" in one.filename]
            place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "outside"
            self.add(f"{name}: {type(error).__name__} at {place}: {str(error)[:150]!r}", name, data)

    def add(self, words: str, name: str, data: bytes) -> None:
        self.outcomes["crash"] += 1
        key = re.sub(r"at (\S+): .*", r"at \1", words, flags=re.DOTALL)
        if key not in self.crashes:
            self.crashes[key] = words
            (self.keep / f"{name}-{len(self.crashes)}-{os.getpid()}").write_bytes(data)


def by_hypothesis(name: str, count: int, found: Found, folder: Path) -> None:
    """``count`` inputs, fewer only where hypothesis has no more different ones."""
    seeds = TARGETS[name].seeds(emptied(folder / "seeds"))

    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        derandomize=True,
    )
    @given(changed(seeds))
    def run(data: bytes) -> None:
        found.meet(name, data, folder / "input")

    for seed in seeds:
        found.meet(name, seed, folder / "input")
    run()


def guided(name: str, count: int, keep: Path, folder: Path) -> None:
    """The process that atheris runs in: as `by_hypothesis`, but its next inputs follow from the lines reached."""
    import atheris

    resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))
    found = Found(keep)
    corpus = emptied(folder / "corpus")
    for number, seed in enumerate(TARGETS[name].seeds(emptied(folder / "seeds"))):
        (corpus / str(number)).write_bytes(seed)
    with writes_outside((folder, keep, *(Path(p) for p in [tempfile.gettempdir()]))) as outside:

        def run(data: bytes) -> None:
            found.meet(name, data, folder / "input")
            n_met = found.outcomes.total()
            if n_met % 50 == 0 or n_met >= count:
                told = {"outcomes": found.outcomes, "crashes": found.crashes, "outside": sorted(outside)}
                (folder / "found.json").write_text(json.dumps(told))

        options = [f"-runs={count}", f"-timeout={SECONDS}", "-rss_limit_mb=5000", "-max_len=20000", "-seed=19"]
        options += ["-print_final_stats=0", "-verbosity=0", f"-artifact_prefix={keep}/{name}-"]
        atheris.Setup([sys.argv[0], *options, str(corpus)], run)
        atheris.Fuzz()


def by_atheris(name: str, count: int, found: Found, folder: Path) -> set[str]:
    """Runs `guided` in a process of its own, again after each death of it; the files written outside."""
    outside: set[str] = set()
    left = count
    while left > 0:
        command = [sys.executable, "-m", "tests.support.guided_entry", "--guided", name, "--inputs", str(left)]
        command += ["--keep", str(found.keep), "--folder", str(emptied(folder / name))]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        file = folder / name / "found.json"
        told = json.loads(file.read_text()) if file.exists() else {"outcomes": {}, "crashes": {}, "outside": []}
        n_met = sum(told["outcomes"].values())
        found.outcomes += Counter(told["outcomes"])
        found.crashes |= told["crashes"]
        outside |= set(told["outside"])
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if "ERROR" in line or "Error" in line]
            found.outcomes["crash"] += 1
            found.crashes[f"{name}: died {len(found.crashes)}"] = f"{name}: the process ended: {' '.join(lines)[-300:]}"
            n_met += 1
            if not told["outcomes"]:
                break
        left -= max(1, n_met)
    return outside


# The page -----------------------------------------------------------------------------------------------------------

NAMES = (
    *("q", "text", "corpus", "preset", "threshold", "max_drop", "top_k", "weight_bm25", "fusion", "generator", "mode"),
    *(
        "run",
        "record",
        "compare",
        "a",
        "b",
        "passage",
        "document",
        "from",
        "to",
        "find",
        "present",
        "reranker",
        "model",
    ),
)
VALUES = (
    "rulebook",
    "encyclopedia",
    "0.5",
    "1",
    "0",
    "-1",
    "rrf",
    "direct",
    "llm",
    "paper",
    "../../etc",
    "nan",
    "1e9",
    "yes",
)
HTTP = (
    "/healthz",
    "/metrics",
    "/readyz",
    "/media/{}",
    "/_stcore/{}",
    "/component/{}",
    "/app/static/{}",
    "/{}",
    "/ask?{}",
)


def by_page(count: int, found: Found, folder: Path) -> None:
    """Inputs of the page of a running server, a new session for every twenty."""
    chance, seeds = random.Random(19), hostile_texts(120)
    home = emptied(folder / "home")
    (folder / "servers-tmp").mkdir()
    before = files_below(ROOT, folder)
    with running_app(home, TMPDIR=str(folder / "servers-tmp"), RAGQA_LOG="json") as address:
        visitor, session = Visitor(address), None
        for number in range(count):
            page, data = chance.choice(PAGES), b""
            try:
                if session is None or number % 20 == 0:
                    session = renewed(session, visitor, page)
                kind = chance.choice(("address", "address", "widget", "widget", "file", "http"))
                data = json.dumps([kind, page, number]).encode()
                if kind == "file" or not session.kinds:
                    session = renewed(session, visitor, "library")
                data += tried(kind, session, visitor, chance, seeds)
                found.outcomes[kind] += 1
                if session.traces:  # an error that is drawn without them is told by the log
                    found.add(f"page: a trace after {data[:200]!r}", "page", data)
                    session = renewed(session, visitor, page)
            except Exception as error:
                found.add(f"page {number}: {type(error).__name__}: {str(error)[:150]} {data[:200]!r}", "page", data)
                session = renewed(session, visitor, page)
        renewed(session, visitor, "").__exit__()
        visitor.close()
    log = (home / "server.log").read_text(errors="replace")
    for trace in filter(None, (json.loads(line).get("trace") for line in log.splitlines() if line.startswith("{"))):
        is_theirs = re.search("in (deserialize|get_serialized)", trace) or "/ragqa/" not in trace
        if is_theirs:  # a value of another type than the widget's
            found.refused += 1
        else:
            place = re.findall(r'File ".*?/(ragqa/[^"]*)", line (\d+)', trace)
            found.add(f"page: log at {place[-1:]}: {trace[-500:]}", "page", trace.encode())
    new = files_below(ROOT, folder) - before
    new = {path for path in new if not path.is_relative_to(home) and not path.is_relative_to(folder / "servers-tmp")}
    if new:
        found.add(f"page: files outside: {sorted(map(str, new))[:5]}", "page", b"")


def renewed(session: Any, visitor: Visitor, page: str) -> Any:
    if session is not None:
        session.__exit__()
    return visitor.opened(page)


def tried(kind: str, session: Any, visitor: Visitor, chance: random.Random, seeds: list[str]) -> bytes:
    """One input; what was sent, for those who look for its crash."""
    text = chance.choice([*seeds, *VALUES, *VALUES])
    if kind == "address":
        query = {chance.choice(NAMES): chance.choice([text, *VALUES]) for _ in range(chance.randint(1, 5))}
        session.query = chance.choice([urlencode(query, errors="replace"), f"{chance.choice(NAMES)}=%ff%{text[:50]}"])
        session.run()
        return session.query.encode(errors="replace")
    if kind == "file":
        drops = [key for key in session.widgets if re.match("library_drop|corpus_drop|library_import", key)]
        target = chance.choice(["pdf", "docx", "html", "csv", "markdown", "zip"])
        suffix = {"markdown": "md"}.get(target, target)
        data = bytearray(chance.choice(TARGETS[target].seeds(emptied(Path(tempfile.mkdtemp())))))
        for _ in range(chance.randint(0, 20)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        name = chance.choice([f"a.{suffix}", f"../../{text[:40]}.{suffix}", f"{text[:60]}.{suffix}", "a.exe", ".zip"])
        session.drop(chance.choice(drops), name.replace("\0", ""), bytes(data)) if drops else session.run()
        return repr((name, bytes(data[:60]))).encode()
    if kind == "http":
        place = chance.choice(HTTP).format(
            quote(chance.choice([text, "../../../../etc/passwd", "..%2f..%2fetc%2fpasswd"])[:400])
        )
        came = visitor.http.get(place)
        assert came.status_code < 500 or place == "/readyz", (place, came.status_code)
        assert "root:x:" not in came.text
        assert "Traceback (most" not in came.text
        return place.encode()
    name = chance.choice(sorted(session.kinds))
    kind = session.kinds[name] if chance.random() < 0.8 else chance.choice(sorted(VALUES_OF))
    field, values = VALUES_OF.get(kind, VALUES_OF["text_area"])
    value = chance.choice([text, *values]) if field == "string_value" else chance.choice(values)
    session.run(**{name: (field, [text] if value == ["?"] else value)})
    return f"{name} {field} {value!r}"[:500].encode(errors="replace")


VALUES_OF = {  # by the kind of a widget: the field that its value comes in, and values that no browser would send
    "text_area": ("string_value", VALUES),
    "text_input": ("string_value", VALUES),
    "selectbox": ("string_value", VALUES),
    "button": ("trigger_value", [True]),
    "checkbox": ("bool_value", [True, False]),
    "slider": ("double_array_value", [[-1.0], [7.0], [float("nan")], [float("inf"), 0.0], [1e300], [0.55], []]),
    "number_input": ("double_value", [-1.0, 1e300, float("nan"), 3.0]),
    "multiselect": ("string_array_value", [["?"], [], ["../../etc"], ["rulebook", "rulebook"]]),
    "button_group": ("string_array_value", [["?"], [], ["paper"]]),
    "int": ("int_value", [-(2**40), 0, 1]),
    "json": ("json_value", ["[", '{"a": 1}', "null"]),
    "bytes": ("bytes_value", [b"\xff"]),
}


def files_below(*folders: Path) -> set[Path]:
    made = ("__pycache__", ".git", ".hypothesis", ".mypy_cache", ".ruff_cache", ".pytest_cache")
    return {path for folder in folders for path in folder.rglob("*") if not set(made) & set(path.parts)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=10_000, help="in all")
    parser.add_argument("--only", nargs="*", default=list(TARGETS), choices=list(TARGETS))
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "ragqa-fuzz-found")
    parser.add_argument("--page", type=int, default=600, help="of them, inputs of the page")
    parser.add_argument("--guided", default="", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.guided:
        guided(options.guided, options.inputs, options.keep, options.folder)
        return 0
    return campaign(options)


def campaign(options: argparse.Namespace) -> int:
    total, outside, crashes = Counter[str](), set[str](), dict[str, str]()
    each = (options.inputs - options.page) // len(options.only)
    with tempfile.TemporaryDirectory(prefix="ragqa-fuzz-") as name:
        folder = Path(name)
        tempfile.tempdir = str(emptied(folder / "tmp"))
        set_hypothesis_home_dir(folder / "hypothesis")
        os.environ.update(RAGQA_HOME=str(emptied(folder / "home")), TMPDIR=str(folder / "tmp"))
        for target in options.only:
            began, found = time.monotonic(), Found(options.keep)
            try:
                import atheris  # noqa: F401

                n_guided = each // 2
            except ImportError:
                n_guided = 0
            outside |= by_atheris(target, n_guided, found, folder / "guided") if n_guided else set()
            halfway = time.monotonic()
            with writes_outside((folder, options.keep)) as elsewhere, Reader(SECONDS) as READERS["process"]:
                by_hypothesis(target, each - n_guided, found, folder / "drawn")
            outside |= elsewhere
            total += found.outcomes
            crashes |= found.crashes
            seconds = f"{halfway - began:.0f} + {time.monotonic() - halfway:.0f} s"
            print(
                f"{target:>9}: {n_guided} guided, {found.outcomes.total()} in all, {dict(found.outcomes)}, {seconds}",
                flush=True,
            )
            for words in found.crashes.values():
                print(f"           {words}", flush=True)
        if options.page:
            began, found = time.monotonic(), Found(options.keep)
            by_page(options.page, found, emptied(folder / "page"))
            total += found.outcomes
            crashes |= found.crashes
            seconds = f"{found.refused} refused by Streamlit, {time.monotonic() - began:.0f} s"
            print(f"     page: {dict(found.outcomes)}, {seconds}", *found.crashes.values(), sep="\n" + " " * 11)
    print(f"inputs {total.total()}, crashes {total['crash']} of {len(crashes)} kinds")
    print(f"files outside: {len(outside)} {sorted(outside)[:5]}")
    return 1 if crashes or outside else 0


if __name__ == "__main__":
    sys.exit(main())
