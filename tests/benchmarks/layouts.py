"""Rules that are known, rendered as HTML, Word or PDF in three layouts, and read again: what of them comes back?

    python -m tests.benchmarks.layouts --documents ../shared/data/obliqa/documents --out FOLDER [--limit 5]

The folder holds JSON lists of {ID, DocumentID, PassageID, Passage}. A passage of ten words or more counts as recovered
where one of the same number has its words, in order, at a similarity of .98 or more (`difflib`); invisible marks,
white space and the marks of list items (which layouts print in their own way) are left aside. Layouts:

- ``plain``: labels typed before texts, headings as headings;
- ``counted``: list items numbered by Word or the browser, hanging indents, running headers, page numbers;
- ``table``: a column of labels, a column of texts, menus and banners around (never looked at while parsers were made).

Writes ``figures.json`` and, per file, what was missed. With ``--questions ObliQA_dev.json`` the documents are indexed
as they were read, and asked: gold passages are those that have the gold passage's number, else its words; beside it
stands the index of the JSON. Both lexical: the mean of BM25 and context BM25, each divided by its best.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

from ragqa.corpus.cleaning import clean_text
from ragqa.corpus.formats import load_corpus
from ragqa.index import Index, build_index, open_index
from ragqa.settings.config import IndexingConfig
from ragqa.types import Passage

LAYOUTS = "plain", "counted", "table"
FORMATS = "html", "docx", "pdf"
ENOUGH = 0.98


@dataclass(frozen=True)
class Line:
    """One paragraph of a rendered document: how deep it stands, its label and its text."""

    depth: int
    label: str
    text: str
    heading: bool
    rows: tuple[tuple[str, ...], ...] = ()  # of a table, after which there is no text


def lines_of(rows: list[dict[str, str]]) -> Iterator[Line]:
    """The paragraphs that a rulebook would print: of a number only what its parent's does not say already."""
    known: dict[str, int] = {}
    for row in rows:
        number, text = row["PassageID"].strip(), clean_text(row["Passage"]).strip()
        parent = max((held for held in known if is_below(number, held)), key=len, default="")
        label = label_below(number, parent)
        depth = known.get(parent, -1) + 1
        if (found := re.search(r"(?:^|[.])Guidance(?:[.](.+))?$", label)) and label != "Guidance":
            if found[1]:  # an item of guidance that has no row of its own
                yield Line(depth, "", "Guidance", heading=True)
                known[number[: number.rindex("Guidance") + 8]] = depth
                depth += 1
            label = found[1] or "Guidance"
        known[number] = depth
        heading = not re.match(r"[(]", label) and len(text.split()) < 10 and not text.endswith((".", ";", ":"))
        if table := re.search(r"(?s)/?Table Start(.*?)/?Table End", row["Passage"]):
            text = clean_text(row["Passage"][: table.start()]).strip()
        first, *further = [line.strip() for line in text.split("\n") if line.strip()] or [""]
        if (
            re.search("[a-z]{3}", label) and not heading and not label.startswith("(")
        ):  # "Guidance" stands above its text, as "Introduction" does
            yield Line(depth, "", label, heading=True)
            label = ""
        yield Line(depth, printed(label), first, heading)
        for line in further:
            item, tab, rest = line.partition("\t")
            marked = tab and re.fullmatch(r"[(]?[\dA-Za-z]{1,5}[).]?", item)
            yield Line(depth + 1, item if marked else "", rest if marked else line.replace("\t", " "), heading=False)
        if table:
            cells = [tuple(line.split("\t")) for line in clean_text(table[1]).split("\n") if line.strip()]
            yield Line(depth + 1, "", "", heading=False, rows=tuple(cells))
            for line in clean_text(row["Passage"][table.end() :]).split("\n"):
                if line.strip():
                    yield Line(depth, "", line.replace("\t", " ").strip(), heading=False)


def label_below(number: str, parent: str) -> str:
    """What is printed of a number below its parent: no ranks that have no row of their own, but 4.2.1 whole."""
    label = number[len(parent) :].strip(". ") or number.strip(". ")
    label = re.sub(r"^(?:(?:APP|Part|PART|Chapter|Schedule) ?\w+ ?[.])+(?=[\dA-Z])", "", label)
    above = re.search(r"(?:^|[.])([A-Z]{0,4}\d+[A-Z]?(?:[.]\d+[A-Z]?)*)[.]?$", parent)
    if above and label[:1].isdigit():
        label = f"{above[1]}.{label}"
    above = re.search(r"(?:^|[. ])(SECTION|PART|ANNEX|SCHEDULE|CHAPTER)$", parent)
    return f"{above[1]} {label}" if above else label  # "SECTION I", below a row "SECTION"


def is_below(number: str, above: str) -> bool:
    rest = number[len(above) :]
    return number.startswith(above) and bool(rest) and (above.endswith(".") or rest[0] in ".( ")


def printed(label: str) -> str:
    return f"{label}." if re.fullmatch(r"\d+[A-Z]?|[A-Za-z]", label) else label


# Files -----------------------------------------------------------------------------------------------------------


def as_html(lines: list[Line], title: str, layout: str) -> str:
    body = []
    for line in lines:
        label, text = escape(line.label), escape(line.text)
        if line.rows:
            cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in line.rows)
            body.append("<table border=1>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>")
            continue
        if layout == "table" and not line.heading:
            body.append(f'<table class="rule"><tr><td class="no">{label}</td><td>{text}</td></tr></table>')
        elif line.heading:
            level = min(line.depth + 1, 6)
            body.append(f"<h{level}>{label} {text}</h{level}>")
        elif layout == "counted" and re.fullmatch(r"\d+\.", line.label):
            start = line.label[:-1]
            body.append(f'<ol start="{start}" style="margin-left:{line.depth * 2}em"><li>{text}</li></ol>')
        else:
            body.append(f'<p style="margin-left:{line.depth * 2 + 3}em;text-indent:-3em">{label} {text}</p>')
    around = ('<nav><a href="/">Home</a> <a href="/r">Rulebooks</a></nav><div class="cookie-banner">We use cookies.'
              "<button>Accept</button></div>", "<footer>Privacy Terms of use</footer>")  # fmt: skip
    before, after = around if layout == "table" else ("", "")
    style = "body{font:11pt serif} td{vertical-align:top} td.no{width:5em}"
    return (
        f"<!doctype html><html><head><meta charset=utf-8><title>{escape(title)}</title><style>{style}</style></head>"
        f"<body>{before}<main>{''.join(body)}</main>{after}</body></html>"
    )


def write_docx(lines: list[Line], title: str, layout: str, path: Path) -> None:
    import docx
    from docx.oxml import OxmlElement
    from docx.oxml.ns import qn
    from docx.shared import Pt

    document = docx.Document()
    document.core_properties.title = title
    if layout == "counted":
        document.sections[0].header.paragraphs[0].text = title
        numbering = document.part.numbering_part.element
    count = 100
    for line in lines:
        if line.rows:
            table = document.add_table(rows=0, cols=max(map(len, line.rows)))
            for row in line.rows:
                for cell, value in zip(table.add_row().cells, row, strict=False):
                    cell.text = value
            continue
        if line.heading:
            document.add_heading(f"{line.label} {line.text}".strip(), min(line.depth + 1, 9))
            continue
        if layout == "table":
            pair = document.add_table(rows=1, cols=2).rows[0].cells
            pair[0].text, pair[1].text = line.label, line.text
            continue
        paragraph = document.add_paragraph()
        paragraph.paragraph_format.left_indent = Pt(24 * line.depth + 36)
        paragraph.paragraph_format.first_line_indent = Pt(-36)
        match = re.fullmatch(r"([(]?)(\d+|[a-z]|[ivx]+)([).]?)", line.label)
        if layout == "counted" and match:
            before, value, after = match.groups()
            style, start = counted(value)
            count += 1
            abstract = _element(OxmlElement, qn, "w:abstractNum", {"w:abstractNumId": str(count)})
            level = _element(OxmlElement, qn, "w:lvl", {"w:ilvl": "0"})
            for name, held in (("w:start", str(start)), ("w:numFmt", style), ("w:lvlText", f"{before}%1{after}")):
                level.append(_element(OxmlElement, qn, name, {"w:val": held}))
            abstract.append(level)
            first = numbering.find(qn("w:num"))
            first.addprevious(abstract) if first is not None else numbering.append(abstract)
            number = _element(OxmlElement, qn, "w:num", {"w:numId": str(count)})
            number.append(_element(OxmlElement, qn, "w:abstractNumId", {"w:val": str(count)}))
            numbering.append(number)
            properties = paragraph._p.get_or_add_pPr().get_or_add_numPr()
            properties.get_or_add_ilvl().val, properties.get_or_add_numId().val = 0, count
            paragraph.add_run(line.text)
        else:
            paragraph.add_run(f"{line.label}\t{line.text}" if line.label else line.text)
    document.save(path)


def counted(value: str) -> tuple[str, int]:
    """Word's name of a numbering style, and the number that it would count."""
    roman = {"i": 1, "ii": 2, "iii": 3, "iv": 4, "v": 5, "vi": 6, "vii": 7, "viii": 8, "ix": 9, "x": 10}
    if value.isdigit():
        return "decimal", int(value)
    if len(value) > 1 and value in roman:
        return "lowerRoman", roman[value]
    if len(value) > 1:
        return "lowerRoman", 11
    return "lowerLetter", ord(value) - 96


def _element(make, qn, name: str, values: dict[str, str]):
    element = make(name)
    for key, value in values.items():
        element.set(qn(key), value)
    return element


def render(documents: Path, out: Path, limit: int) -> dict[str, dict[str, str]]:
    """Writes all files; returns per document the texts of its numbers, ten words and more."""
    from playwright.sync_api import sync_playwright

    expected = {}
    chromium = next(p for p in ("/usr/bin/chromium", "/usr/bin/google-chrome") if Path(p).exists())
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        for source in sorted(documents.glob("*.json"))[:limit]:
            rows = json.loads(source.read_text(encoding="utf-8"))
            lines = list(lines_of(rows))
            texts = {}
            for row in rows:
                text = clean_text(row["Passage"])
                if len(text.split()) >= 10:
                    texts.setdefault(row["PassageID"].strip(), text)
            expected[source.stem] = texts
            for layout in LAYOUTS:
                for kind in FORMATS:
                    (out / layout / kind).mkdir(parents=True, exist_ok=True)
                path = out / layout / "html" / f"{source.stem}.html"
                path.write_text(as_html(lines, source.stem, layout), encoding="utf-8")
                write_docx(lines, source.stem, layout, out / layout / "docx" / f"{source.stem}.docx")
                page.goto(path.resolve().as_uri())
                head = '<div style="font-size:8px;margin-left:50px">Rulebook of the market, version 7</div>'
                foot = '<div style="font-size:8px;margin-left:50px">Page <span class="pageNumber"></span></div>'
                page.pdf(path=out / layout / "pdf" / f"{source.stem}.pdf", format="A4", header_template=head,
                         footer_template=foot, display_header_footer=layout != "plain",
                         margin={"top": "20mm", "bottom": "20mm", "left": "20mm", "right": "20mm"})  # fmt: skip
        browser.close()
    return expected


# Reading again ---------------------------------------------------------------------------------------------------


def words(text: str) -> list[str]:
    bare = re.sub(r"(?m)^\s*(?:[(]?[\dA-Za-z]{1,5}[).]|•|-)\s+", "", clean_text(text))
    return re.findall(r"\w+", bare)


def same(given: str, found: str) -> float:
    first, second = words(given), words(found)
    if first == second:
        return 1.0
    return difflib.SequenceMatcher(None, first, second, autojunk=False).ratio() if len(first) < 3000 else 0.0


def number_key(number: str) -> str:
    return re.sub(r"[\s.:]", "", re.sub(r"Guidance [^.]*", "Guidance", number)).casefold()


def compare(expected: dict[str, dict[str, str]], folder: Path) -> dict[str, object]:
    started = time.perf_counter()
    read: dict[str, dict[str, list[str]]] = {}
    for passage in load_corpus(folder, "documents").passages:
        numbered = read.setdefault(passage.document_id, {})
        numbered.setdefault(number_key(passage.number), []).append(passage.text)
    seconds = time.perf_counter() - started
    total = numbered_right = both = anywhere = 0
    missed = []
    for name, texts in expected.items():
        found = read.get(name, {})
        everything = {" ".join(words(text)) for held in found.values() for text in held}
        for number, text in texts.items():
            total += 1
            held = found.get(number_key(number), [])
            numbered_right += bool(held)
            best = max((same(text, one) for one in (*held, "\n".join(held))), default=0.0)
            both += best >= ENOUGH
            anywhere += best >= ENOUGH or " ".join(words(text)) in everything
            if best < ENOUGH:
                missed.append([name, number, round(best, 2)])
    (folder / "missed.json").write_text(json.dumps(missed, indent=0), encoding="utf-8")
    share = {"number and text": both / total, "number": numbered_right / total, "text anywhere": anywhere / total}
    return {"passages": total, **{key: round(value, 3) for key, value in share.items()}, "seconds": round(seconds, 1)}


def retrieval(index: Index, gold: list[tuple[str, frozenset[str]]]) -> dict[str, float]:
    """R@10 and MAP@10 of BM25 and context BM25 together."""
    from ragqa.evaluation.measures import means, measure_run

    run = []
    for question, _ in gold:
        scores: Counter[str] = Counter()
        for retriever in (index.bm25s, index.context):
            hits = retriever.retrieve(question, 100).hits if retriever else ()
            for hit in hits:
                scores[hit.passage.passage_id] += hit.score / hits[0].score
        run.append([name for name, _ in sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:10]])
    found = means(measure_run([ids for _, ids in gold], run, ("R@10", "AP@10")))
    return {name: round(value, 4) for name, value in found.items()}


def mapped(documents: dict[str, list[Passage]], document: str, number: str, text: str) -> set[str]:
    """The passages that are this one: of its number, best with its words; else those that hold or share its words."""
    held = documents.get(document, [])
    numbered = [one for one in held if number_key(one.number) == number_key(number)]
    if numbered:
        return {one.passage_id for one in numbered}
    wanted = " ".join(words(text))
    return {one.passage_id for one in held if wanted and wanted in " ".join(words(one.text))} or {
        one.passage_id for one in held if len(one.text.split()) > 5 and " ".join(words(one.text)) in wanted
    }


def ask(questions: Path, documents: Path, folder: Path, indexes: Path) -> dict[str, object]:
    asked = json.loads(questions.read_text(encoding="utf-8"))
    figures: dict[str, object] = {"questions": len(asked)}
    for name, source, format in (("json", documents, "obliqa"), ("read", folder, "documents")):
        config = IndexingConfig(encoder="none", analyser="regulation")
        build_index(name, source, indexes=indexes, config=config, encoder=None, format=format)
        index = open_index(name, indexes)
        known: dict[str, list[Passage]] = {}
        for passage in index.passages:
            known.setdefault(passage.document_id, []).append(passage)
        gold, lost = [], 0
        for one in asked:
            ids: set[str] = set()
            for row in one["Passages"]:
                found = mapped(known, str(row["DocumentID"]), row["PassageID"], row["Passage"])
                lost += not found
                ids |= found or {f"lost:{row['DocumentID']}:{row['PassageID']}"}
            gold.append((one["Question"], frozenset(ids)))
        figures[name] = {**retrieval(index, gold), "gold without a passage": lost, "passages": len(index.passages)}
        print(name, figures[name], flush=True)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=10**6)
    parser.add_argument("--layouts", nargs="*", default=LAYOUTS, choices=LAYOUTS)
    parser.add_argument("--formats", nargs="*", default=FORMATS, choices=FORMATS)
    parser.add_argument("--questions", type=Path)
    options = parser.parse_args()
    known = options.out / "expected.json"
    if known.is_file():
        expected = json.loads(known.read_text(encoding="utf-8"))
    else:
        expected = render(options.documents, options.out, options.limit)
        known.write_text(json.dumps(expected), encoding="utf-8")
    figures = {}
    for layout in options.layouts:
        for kind in options.formats:
            figures[f"{layout} {kind}"] = compare(expected, options.out / layout / kind)
            print(layout, kind, figures[f"{layout} {kind}"], flush=True)
            if options.questions:
                asked = ask(options.questions, options.documents, options.out / layout / kind, options.out / "indexes")
                figures[f"{layout} {kind} asked"] = asked
    (options.out / "figures.json").write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
