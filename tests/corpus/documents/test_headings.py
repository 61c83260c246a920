"""Where the title of a rule stands on web pages of varied design: each with number and heading, with no word lost."""

import pytest

from ragqa.corpus.documents.conservation import lost_words
from ragqa.corpus.documents.html import parse_html
from ragqa.corpus.documents.passages import passages_of
from ragqa.corpus.documents.structure import build

DARK = "A master who lands after dark shows two lamps at the bow."
FIRST = "The keeper writes the name of each boat in the book of the quay."
NEXT = "The harbour office sends a copy of the book to the owner each month."
LAST = "A pilot who has not slept for six hours asks another to take the helm."
PAGES = {
    "codes in brackets before the entries of a list": (
        f"<h1>Quays</h1><h2>Lamps</h2><ul><li>[Q101] {DARK}</li><li>[Q104] {FIRST}</li></ul>"
        f"<h2>Crew</h2><ul><li>[Q203] {LAST}</li><li><p>[Q302] {NEXT}</p></li></ul>",
        {FIRST: ("Q104", "Lamps"), LAST: ("Q203", "Crew"), NEXT: ("Q302", "Crew")},
    ),
    "bold words before a colon in half of the items of a numbered list": (
        "<h2>Rules of the quay</h2><ol><li>The quay is open to all.</li>"
        f"<li><span style='font-weight: 700'>Landing after dark:</span> {DARK}</li>"
        f"<li><b>How books are kept</b>: {FIRST}</li></ol>",
        {DARK: ("2.", "Landing after dark"), FIRST: ("3.", "How books are kept")},
    ),
    "bold words with a stop in the paragraph of a numbered item": (
        "<h2>Article 3. Crew</h2><ol><li><p><strong>Masters.</strong> A master does the following:</p>"
        f"<p>(a) {DARK}<br />(b) {FIRST}</p></li>"
        f"<li><p><strong>Pilots.</strong></p><p>(a) {LAST}</p><p>(b) {NEXT}</p></li>"
        "<li>A crew is paid by the owner.</li></ol>",
        {DARK: ("Article 3.1.(a)", "Masters"), LAST: ("Article 3.2.(a)", "Pilots")},
    ),
    "bold words between boxes, no paragraph around them": (
        "<h2>Chapter 4. Quays</h2><b>§ 14.2-31. (Until next spring) Landing after dark; lamps.</b>"
        f"<section><p>A. {DARK}</p><p>B. {NEXT}</p></section>"
        f"<b>§ 14.2-32. Books of quays.</b><section><p>{FIRST}</p></section>",
        {
            DARK: ("Chapter 4.§ 14.2-31.A.", "Landing after dark; lamps"),
            FIRST: ("Chapter 4.§ 14.2-32", "Books of quays"),
        },
    ),
    "bold lines between breaks": (
        "<center><b>Rules of the Quay</b></center><div>For all masters.<br><br><b>Landing after dark</b><br>"
        f"{DARK}<br><br><b>Books</b><br><br>{FIRST}<br><br>{NEXT}</div>",
        {DARK: ("", "Landing after dark"), NEXT: ("second paragraph", "Books")},
    ),
    "one section in a page of its own, coloured and underlined": (
        "<p><font color=green>14-203.05</font>. <font color=blue><u>Landing after dark; lamps; fines</u></font></p>"
        f"<p>At night:</p><p>1. {DARK}</p><p>2. {NEXT}</p>",
        {DARK: ("14-203.05.1.", "Landing after dark; lamps; fines")},
    ),
    "one section whose list opens in the line of its bold title": (
        f"<div><b><a name=x></a>Sec. 14.20.305. Landing after dark.</b>&nbsp; (a) {DARK}<br>&nbsp; (b) {FIRST}<br>"
        "&nbsp; (c) In this section,<br>&nbsp; &nbsp; (1) “boat” means what floats;<br>"
        "&nbsp; &nbsp; (2) “lamp” means what burns.</div>",
        {
            DARK: ("Sec. 14.20.305.(a)", "Landing after dark"),
            FIRST: ("Sec. 14.20.305.(b)", "Landing after dark"),
            "“lamp” means what burns.": ("Sec. 14.20.305.(c).(2)", "Landing after dark"),
        },
    ),
    "a name before each number, the number behind its anchor, terms between lists": (
        "<h1>Quays Act</h1><p class=name>Books</p><p class=rule><a name=a></a><b>1 </b>The book of a quay has,</p>"
        "<p>(a) names; and</p><p>(b) days.</p><p class=name>Meaning of words</p>"
        "<p class=rule><a name=b></a><b>2 </b>In this Act,</p><p class=term>“boat” means what floats and has,</p>"
        "<p class=item>(a) a helm, or</p><p class=item>(b) an oar;</p><p class=term>“lamp” means what burns;</p>"
        "<p class=term>“quay” means a wall with,</p><p class=item>(a) rings, and</p><p class=item>(b) a lamp.</p>",
        {
            "days.": ("1.(b)", "Books"),
            "an oar;": ("2.(b)", "Meaning of words"),
            "“lamp” means what burns;": ("2.lamp", "Meaning of words"),
            "a lamp.": ("2.(b)", "Meaning of words"),
        },
    ),
    "catchlines with semicolons, sources behind the text": (
        f"<div><span>31.07&#8195;</span><span>Landing; lamps.</span><span>—</span><span>{DARK}</span>"
        "<div>History.—s. 4, ch. 31-7; s. 2, ch. 40-9.</div></div>"
        "<div><span>31.08&#8195;</span><span>Books; copies; names.</span><span>—</span>"
        f"<div>(1) {FIRST}</div><div>(2) {NEXT}</div><div>History.—s. 5, ch. 31-7; s. 3, ch. 40-9.</div></div>",
        {DARK: ("31.07", "Landing; lamps"), NEXT: ("31.08.(2)", "Books; copies; names")},
    ),
    "side notes in a column of their own": (
        f"<table><tr><td>Landing after dark</td><td><p>7. {DARK}</p></td></tr>"
        f"<tr><td>Books</td><td><p>8. (1) {FIRST}</p><p>(2) {NEXT}</p></td></tr>"
        f"<tr><td>Rest</td><td><p>9. {LAST}</p></td></tr></table>",
        {DARK: ("7.", "Landing after dark"), NEXT: ("8.(2)", "Books"), LAST: ("9.", "Rest")},
    ),
    "bold by the style of the element itself, centred": (
        f"<div style='text-align:center;font-weight:bold'>Landing after dark</div><div>{DARK}</div>"
        f"<p><span style='font-weight: 700'>Books</span></p><p>{FIRST}</p><p>{NEXT}</p>",
        {DARK: ("", "Landing after dark"), NEXT: ("second paragraph", "Books")},
    ),
    "boxes that open": (
        f"<h2>Quays</h2><details><summary>4. Landing after dark</summary><p>{DARK}</p></details>"
        f"<details><summary>5. Books</summary><p>(a) {FIRST}</p><p>(b) {NEXT}</p></details>",
        {DARK: ("4.", "Landing after dark"), NEXT: ("5.(b)", "Books")},
    ),
    "number and title on lines of their own, centred and in italics": (
        f"<p align=center>Rule 7</p><p align=center><i>Landing after dark</i></p><p>{DARK}</p>"
        f"<p align=center>Rule 8</p><p align=center><i>Books</i></p><p>(1) {FIRST}</p><p>(2) {NEXT}</p>",
        {DARK: ("Rule 7", "Landing after dark"), NEXT: ("Rule 8.(2)", "Books")},
    ),
    "titles that only the contents of the page show": (
        "<ul><li><a href=#a>Landing after dark</a></li><li><a href=#b>Books of the quay</a></li>"
        "<li><a href=#c>Rest</a></li></ul>"
        f"<p id=a>Landing after dark</p><p>{DARK}</p><p id=b>Books of the quay</p><p>{FIRST}</p>"
        f"<p>{NEXT}</p><p id=c>Rest</p><p>{LAST}</p>",
        {DARK: ("", "Landing after dark"), NEXT: ("second paragraph", "Books of the quay"), LAST: ("", "Rest")},
    ),
    "capitals and underlines": (
        f"<p><u>Landing after dark</u></p><p>1. {DARK}</p><p><u>Rest</u></p><p>2. {LAST}</p>"
        f"<p>BOOKS OF THE QUAY</p><p>{FIRST}</p>",
        {DARK: ("1.", "Landing after dark"), LAST: ("2.", "Rest"), FIRST: ("", "BOOKS OF THE QUAY")},
    ),
    "terms of a list as titles": (
        f"<dl><dt>Section 3. Landing after dark</dt><dd>{DARK}</dd><dt>Section 4. Books</dt><dd>"
        f"<p>(a) {FIRST}</p><p>(b) {NEXT}</p></dd></dl>",
        {DARK: ("Section 3", "Landing after dark"), NEXT: ("Section 4.(b)", "Books")},
    ),
    "one section whose title is in capitals in its line": (
        f"<p>CHAPTER 411. QUAYS</p><p>Sec. 411.001.  LANDING AFTER DARK.  (a)  {DARK}</p><p>(b)  {FIRST}</p>"
        "<p>Acts 1991, 72nd Leg., ch. 38, Sec. 1, eff. Sept. 1, 1991.</p>",
        {
            DARK: ("CHAPTER 411.Sec. 411.001.(a)", "LANDING AFTER DARK"),
            FIRST: ("CHAPTER 411.Sec. 411.001.(b)", "LANDING AFTER DARK"),
        },
    ),
    "sections that begin in the lines of a paragraph": (
        f"<p>(5 LQS 10/1-5) (from Ch. 12, par. 10)<br>Sec. 1-5. Landing after dark. <br>(a) {DARK} <br>(b) {FIRST}<br>"
        f"(Source: P.A. 97-1, eff. 8-1-97; 98-2, eff. 1-1-98.) </p><p>(5 LQS 10/1-10)<br>Sec. 1-10. Books. {NEXT}</p>",
        {FIRST: ("Sec. 1-5.(b)", "Landing after dark"), NEXT: ("Sec. 1-10", "Books")},
    ),
    "numbers with hyphens before bold titles, items in a table": (
        f"<div><b>53-3-102.   Landing after dark.</b><table><tr><td>(1)</td><td>{DARK}</td></tr>"
        f"<tr><td>(2)</td><td>{FIRST}</td></tr></table></div>",
        {FIRST: ("53-3-102.(2)", "Landing after dark")},
    ),
    "side notes that end with a stop, numbers with dashes": (
        f"<table><tr><td>Landing after dark.</td><td><p><b>3.</b>—(1) {DARK}</p><p>(2) {FIRST}</p></td></tr>"
        f"<tr><td>Books.</td><td><p><b>4.</b>—{NEXT}</p></td></tr></table>",
        {FIRST: ("3.(2)", "Landing after dark."), NEXT: ("4.", "Books.")},
    ),
    "titles in brackets before articles": (
        f"<p>(Landing after Dark)</p><p>Article 1　(1) {DARK}</p><p>(2) {FIRST}</p><p>(Books)</p>"
        f"<p>Article 2　{NEXT}</p><p>(Rest)</p><p>Article 3　{LAST}</p>",
        {FIRST: ("Article 1.(2)", "(Landing after Dark)"), LAST: ("Article 3", "(Rest)")},
    ),
    "titles in brackets behind articles": (
        f"<p>Article 1 (Landing after Dark) {DARK}</p><p>Article 2 (Books) (1) {FIRST}</p><p>(2) {NEXT}</p>",
        {DARK: ("Article 1", "(Landing after Dark)"), NEXT: ("Article 2.(2)", "(Books)")},
    ),
    "bold lines that end with a colon": (
        f"<p><strong>Landing after dark:</strong></p><p>{DARK}</p><p><strong>Books:</strong></p><p>{FIRST}</p>",
        {DARK: ("", "Landing after dark"), FIRST: ("", "Books")},
    ),
    "two boxes of one class": (
        f"<div class=t>Landing after dark</div><div class=b>{DARK}</div><div class=t>Books</div>"
        f"<div class=b>{FIRST}</div>",
        {DARK: ("", "Landing after dark"), FIRST: ("", "Books")},
    ),
    "numbers and titles in one line, their texts below": (
        f"<div><span>5.</span> <span>Landing after dark</span><p>(1) {DARK}</p><p>(2) {FIRST}</p></div>"
        f"<div><span style='display:block'>6. Books</span><span style='display:block'>{NEXT}</span></div>",
        {FIRST: ("5.(2)", "Landing after dark"), NEXT: ("6.second paragraph", "Books")},
    ),
    "chapters whose numbers only those of their rules confirm": (
        f"<p>5 Landing after dark</p><p>5.1 {DARK}</p><p>5.2 {FIRST}</p><p>6 Books</p><p>6.1 {NEXT}</p>",
        {FIRST: ("5.2", "Landing after dark"), NEXT: ("6.1", "Books")},
    ),
    "a code before numbers with hyphens": (
        f"<h1>LQC 246-101-010</h1><h3>Landing after dark.</h3><p>(1) {DARK}</p><p>(2) {FIRST}</p>",
        {FIRST: ("LQC 246-101-010.(2)", "Landing after dark")},
    ),
}


def read(tmp_path, body):
    path = tmp_path / "a.html"
    path.write_text(f"<html><head><title>Harbour</title></head><body>{body}</body></html>", encoding="utf-8")
    parsed = parse_html(path)
    found = passages_of(build(parsed.blocks), "d", "D", 128)
    assert not lost_words(parsed, found)
    return [(text, name, one.section) for one in found for name, text in ((one.number, one.text), *one.places())]


@pytest.mark.parametrize("design", PAGES)
def test_numbers_and_headings_of_every_design(tmp_path, design):
    body, wanted = PAGES[design]
    found = read(tmp_path, body)
    for text, (number, heading) in wanted.items():
        assert any(
            one == text and name == number and heading in " › ".join(section.split(" › ")[-2:])
            for one, name, section in found
        ), (text, found)


def test_the_same_bold_word_before_items_is_no_title(tmp_path):
    items = (DARK, FIRST, LAST)
    found = read(tmp_path, "<h2>Quays</h2><ol>" + "".join(f"<li><b>Note:</b> {text}</li>" for text in items) + "</ol>")
    assert [(text, name) for text, name, _ in found if name] == [
        (f"Note: {text}", f"{n}.") for n, text in enumerate(items, 1)
    ]
