"""An invented Wikipedia dump of any size: pages-articles XML with made-up words, the same bytes for the same seed.

    python -m tests.support.synthetic_dump FILE MEGABYTES [SEED]

The suffix decides: .xml, .xml.gz or .xml.bz2 (as multistream: 100 pages a stream). Words are made up and drawn as in
text (Zipf); of 20 pages one is a redirect and one a talk page, which a reader passes over. An article has an infobox,
sections, links, references, templates, and often lists and a table.
"""

from __future__ import annotations

import bz2
import gzip
import sys
from collections.abc import Iterator
from functools import cache
from itertools import accumulate
from pathlib import Path
from random import Random
from xml.sax.saxutils import escape

N_WORDS = 60_000
N_NAMES = 100_000
DRAWN_AT_ONCE = 100_000
PAGES_A_STREAM = 100
HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">
  <siteinfo>
    <sitename>Madeuppedia</sitename>
    <dbname>madeupwiki</dbname>
    <generator>MediaWiki 1.42.0-wmf.4</generator>
    <case>first-letter</case>
    <namespaces>
      <namespace key="0" case="first-letter" />
      <namespace key="1" case="first-letter">Talk</namespace>
    </namespaces>
  </siteinfo>
"""
TAIL = "</mediawiki>\n"


def write_dump(path: Path, megabytes: float, seed: int = 1) -> int:
    """Writes at least that much XML (1 MB = 1,000,000 bytes, before compression); the number of articles in it."""
    suffix = path.suffix
    written, n_articles = 0, 0
    with path.open("wb") as raw:
        file = gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=4, mtime=0) if suffix == ".gz" else raw
        batch: list[str] = []

        def flush() -> None:
            data = "".join(batch).encode()
            file.write(bz2.compress(data, 5) if suffix == ".bz2" else data)
            batch.clear()

        batch.append(HEAD)
        if suffix == ".bz2":
            flush()
        for xml, is_article in pages(seed):
            batch.append(xml)
            written += len(xml)  # ASCII but for a few letters
            n_articles += is_article
            if len(batch) >= PAGES_A_STREAM:
                flush()
            if written >= megabytes * 1e6:
                break
        if batch:
            flush()
        batch.append(TAIL)
        flush()
        if file is not raw:
            file.close()
    return n_articles


def pages(seed: int = 1) -> Iterator[tuple[str, bool]]:
    """Endless <page> elements, and whether each is an article."""
    random = Random(seed)
    writer = _Writer(random)
    page_id = 0
    while True:
        page_id += 1
        kind = random.random()
        title = f"{writer.name()} {page_id}"  # unique as titles are
        if kind < 0.05:
            target = writer.name()
            yield _page(page_id, title, 0, f"#REDIRECT [[{target}]]\n\n{{{{R from move}}}}", target), False
        elif kind < 0.1:
            yield _page(page_id, f"Talk:{title}", 1, f"== {writer.words(4)} ==\n{writer.paragraph()}"), False
        else:
            yield _page(page_id, title, 0, writer.article(title)), True


def _page(page_id: int, title: str, namespace: int, text: str, redirect: str = "") -> str:
    target = f'    <redirect title="{escape(redirect)}" />\n' if redirect else ""
    return (
        f"  <page>\n    <title>{escape(title)}</title>\n    <ns>{namespace}</ns>\n    <id>{page_id}</id>\n{target}"
        f"    <revision>\n      <id>{page_id * 7}</id>\n      <timestamp>2023-10-01T00:00:00Z</timestamp>\n"
        f"      <contributor>\n        <username>Nobody</username>\n        <id>1</id>\n      </contributor>\n"
        f"      <model>wikitext</model>\n      <format>text/x-wiki</format>\n"
        f'      <text bytes="{len(text)}" xml:space="preserve">{escape(text)}</text>\n'
        f"      <sha1>0</sha1>\n    </revision>\n  </page>\n"
    )


@cache
def _vocabulary() -> list[str]:
    """The same words for every seed: frequent ones are short."""
    random = Random(1)
    syllables = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "is", "or", "é")]
    words: dict[str, None] = {}
    while len(words) < N_WORDS:
        count = 1 + len(words) * 4 // N_WORDS
        words["".join(random.choice(syllables) for _ in range(count + random.randrange(2)))] = None
    return list(words)


class _Writer:
    """Invented words and what is written with them."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._vocabulary = _vocabulary()
        self._weights = list(accumulate(1 / (rank + 2.7) for rank in range(N_WORDS)))  # Zipf and Mandelbrot
        self._drawn: list[str] = []  # many at once are drawn six times as fast
        self._next = 0
        rare = [word.capitalize() for word in self._vocabulary[2_000:]]
        self._names = [f"{random.choice(rare)} {random.choice(rare)}" for _ in range(N_NAMES)]

    def words(self, count: int) -> str:
        if self._next + count > len(self._drawn):
            self._drawn = self._random.choices(self._vocabulary, cum_weights=self._weights, k=DRAWN_AT_ONCE)
            self._next = 0
        self._next += count
        return " ".join(self._drawn[self._next - count : self._next])

    def name(self) -> str:
        return self._names[int(self._random.random() * N_NAMES)]

    def sentence(self) -> str:
        random = self._random
        pieces = [self.words(4 + int(5 * random.random())).capitalize()]
        for _ in range(1 + int(3 * random.random())):
            kind = random.random()
            if kind < 0.35:
                pieces.append(f"[[{self.name()}]]")
            elif kind < 0.5:
                pieces.append(f"[[{self.name()} ({self.words(1)})|{self.words(2)}]]")
            elif kind < 0.58:
                pieces.append(f"''{self.words(2)}''")
            elif kind < 0.66:
                pieces.append(f"{{{{convert|{random.randrange(1, 900)}|km|mi|abbr=on}}}}")
            pieces.append(self.words(2 + int(6 * random.random())))
        text = " ".join(pieces) + "."
        if random.random() < 0.3:
            text += (
                f'<ref name="n{int(99 * random.random())}">{{{{cite web |url=https://example.org/{len(pieces)} '
                f"|title={self.words(5)} |date=2 May 2020 |publisher=[[{self.name()}]]}}}}</ref>"
            )
        return text

    def paragraph(self) -> str:
        return " ".join(self.sentence() for _ in range(self._random.randrange(2, 8)))

    def article(self, title: str) -> str:
        random = self._random
        parts = [
            f"{{{{Short description|{self.words(4)}}}}}\n{{{{Use dmy dates|date=May 2020}}}}",
            self.infobox(title),
            f"'''{title}''' &ndash; {self.paragraph()}",
            self.paragraph(),
        ]
        for _ in range(min(30, int(random.paretovariate(0.9)))):
            parts.append(f"== {self.words(2).capitalize()} ==")
            parts += [self.paragraph() for _ in range(random.randrange(1, 4))]
            if random.random() < 0.3:
                parts.append(
                    f"[[File:{self.name()}.jpg|thumb|right|upright=1.2|A [[{self.name()}]] of {self.words(3)}]]"
                )
            if random.random() < 0.4:
                parts += [f"=== {self.words(3).capitalize()} ===", self.paragraph()]
            if random.random() < 0.25:
                parts.append("\n".join(f"* [[{self.name()}]], {self.words(5)}" for _ in range(random.randrange(3, 9))))
            if random.random() < 0.15:
                parts.append(self.table())
        parts.append(f"== References ==\n{{{{Reflist|30em}}}}\n\n{{{{{self.name()} navbox}}}}")
        parts.append("\n".join(f"[[Category:{self.name()}]]" for _ in range(random.randrange(1, 6))))
        return "\n\n".join(parts)

    def infobox(self, title: str) -> str:
        rows = [f"| {self.words(1)}_{n} = {self.words(3)}" for n in range(self._random.randrange(3, 12))]
        rows.append(f"| location = [[{self.name()}]], {{{{flag|{self.name()}}}}}")
        return f"{{{{Infobox settlement\n| name = {title}\n" + "\n".join(rows) + "\n}}"

    def table(self) -> str:
        random = self._random
        width = random.randrange(2, 6)
        lines = ['{| class="wikitable sortable"', f"|+ {self.words(3)}", "|-"]
        lines.append("! " + " !! ".join(self.words(1) for _ in range(width)))
        for _ in range(random.randrange(2, 20)):
            lines += ["|-", "| " + " || ".join(self.words(2) for _ in range(width))]
        return "\n".join([*lines, "|}"])


if __name__ == "__main__":
    print(write_dump(Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1))
