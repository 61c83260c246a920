"""Invented layouts of PDF pages whose numbers are known: in margins, in columns of their own, with hanging indents."""

import textwrap

import pytest

from ragqa.corpus.documents.pdf import parse_pdf
from tests.corpus.documents.test_makers import passages
from tests.support.document_files import write_pdf

SAID = (
    "A keeper counts every boat that lies in the port and every oar that lies in a boat, by day as well as by night",
    "A master writes the count into the book of the port before the evening bell and signs it with a name in full",
    "A pilot who brings a ship into the port reports the draught, the cargo and the crew to the master without delay",
    "A ferry leaves only when the bell has been rung twice, the rope has been taken in and the lamp at the bow is lit",
    "A barge that carries oil lies at the outer quay, away from other boats, and shows a red lamp from dusk to dawn",
    "A tug waits for a ship at the mouth of the port where the wind is strong or where the master of the ship asks",
)
ITEMS = (
    "the name of the boat, of its keeper and of the port in which the boat was built",
    "its length and its draught",
)


class Sheet:
    """Pages of 600 by 800 points, on which texts are set in lines of 13 points."""

    def __init__(self, top=90, bottom=700):
        self.pages, self.y, self.top, self.bottom = [[]], top, top, bottom
        self.lines = [[]]  # heights of the lines of text of each page

    def set(self, text, left, first=None, label="", at=0, size=10, width=480, gap=9):
        """Sets a paragraph from ``left``, its first line from ``first``, with a label at ``at``."""
        for n, line in enumerate(textwrap.wrap(text, int((width - left + 60) / (0.5 * size)))):
            if self.y > self.bottom:
                self.pages.append([])
                self.lines.append([])
                self.y = self.top
            if label and not n:
                self.pages[-1].append((at, self.y, size, label))
            self.pages[-1].append((left if n or first is None else first, self.y, size, line))
            self.lines[-1].append(self.y)
            self.y += 13
        self.y += gap


def margin_numbers():
    """Numbers of paragraphs far out in the left margin, items with hanging indents."""
    sheet, gold = Sheet(), {}
    for n, text in enumerate(SAID * 3, start=1):
        sheet.set(f"{text}:" if n % 3 == 0 else f"{text}.", 130, label=f"{n}.", at=40)
        gold[f"{n}."] = f"{text}:" if n % 3 == 0 else f"{text}."
        for mark, item in zip("ab", ITEMS, strict=True) if n % 3 == 0 else ():
            ends = "; and" if mark == "a" else "."
            sheet.set(item + ends, 160, label=f"({mark})", at=135)
            gold[f"{n}.({mark})"] = item + ends
    return sheet.pages, gold


def line_numbers():
    """Numbers of lines in the left margin of a bill, in the size of the text, from 1 on each page."""
    sheet, gold = Sheet(), {}
    for n, text in enumerate(SAID * 3, start=1):
        sheet.set(f"{n}. {text}.", 90, first=110)
        gold[f"{n}."] = f"{text}."
    for page, heights in zip(sheet.pages, sheet.lines, strict=True):
        page += [(56 if n > 9 else 61, y, 10, str(n)) for n, y in enumerate(heights, start=1)]
    return sheet.pages, gold


def number_column():
    """Dotted numbers in a column of their own, aligned right, drawn before the texts; a heading above each chapter."""
    sheet, gold = Sheet(), {}
    for n, text in enumerate(SAID * 3):
        chapter, rule = n // 6 + 1, n % 6 + 1
        if rule == 1:
            sheet.set(f"Part {chapter} of the port", 140, label=f"{chapter}", at=112, size=14)
        label = f"{chapter}.{rule}"
        sheet.set(f"{text}.", 140, label=label, at=120 - 5 * len(label))
        gold[label] = f"{text}."
    return [sorted(page) for page in sheet.pages], gold


def hanging_indents():
    """Items whose labels stand where the lines of the text above them begin; items of items likewise."""
    sheet, gold = Sheet(), {}
    for n, text in enumerate(SAID, start=1):
        sheet.set(f"{text}, and the book says:", 85, label=f"{n}.", at=60)
        gold[f"{n}."] = f"{text}, and the book says:"
        sheet.set(f"{ITEMS[0]}, namely:", 110, label="(a)", at=85)
        gold[f"{n}.(a)"] = f"{ITEMS[0]}, namely:"
        for mark, item in (("i", f"{ITEMS[0]};"), ("ii", f"{ITEMS[1]}; and")):
            sheet.set(item, 135, label=f"({mark})", at=110)
            gold[f"{n}.(a).({mark})"] = item
        sheet.set(f"{ITEMS[1]}.", 110, label="(b)", at=85)
        gold[f"{n}.(b)"] = f"{ITEMS[1]}."
    return sheet.pages, gold


def fifth_lines():
    """Numbers of every fifth line in the right margin, in small print; sections with bare numbers and items."""
    sheet, gold = Sheet(), {}
    for n, text in enumerate(SAID * 2, start=1):
        sheet.set(f"{text}:", 84, label=f"{n}.", at=60)
        gold[f"{n}."] = f"{text}:"
        for mark, item in zip("ab", ITEMS, strict=True):
            ends = "; and" if mark == "a" else "."
            sheet.set(item + ends, 110, label=f"({mark})", at=84)
            gold[f"{n}.({mark})"] = item + ends
    for page, heights in zip(sheet.pages, sheet.lines, strict=True):
        page += [(562, y, 7, str(n)) for n, y in enumerate(heights, start=1) if n % 5 == 0]
    return sheet.pages, gold


def recovered(path, pages, gold):
    """The share of the gold numbers whose text is right; the text of items is left out of that of their rule."""
    write_pdf(path, pages)
    found = {}
    for one in passages(parse_pdf(path)):
        found.setdefault(one.number, one.text.split("\n")[0])
        for number, text in one.places():
            found.setdefault(number, text.split("\n")[0])
    return [number for number, text in gold.items() if found.get(number) != text]


@pytest.mark.parametrize("layout", [margin_numbers, line_numbers, number_column, hanging_indents, fifth_lines])
def test_numbers_and_texts_come_back(tmp_path, layout):
    assert recovered(tmp_path / "a.pdf", *layout()) == []
