"""Analyses the numbers of a whole document: words that number its parts, restarted lists and doubtful numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise, zip_longest
from typing import Final

from ragqa.corpus.documents.catalogue import CODE, ID, codes_of
from ragqa.corpus.documents.labels import (
    DOTTED,
    GUIDANCE,
    HYPHENED,
    LATIN,
    LEARNED,
    MARKED,
    ORDINALS,
    RANKS,
    SPELLED,
    Step,
    Value,
    component,
    follows,
    from_roman,
    is_later,
    opens,
    opens_list,
    parted,
    rank_word,
    read_label,
)
from ragqa.corpus.documents.model import BOLD_LEVEL, TOLERANCE, VERBS, Block, Unit, words_of

_COUNTED: Final = re.compile(  # "Artikel 12", "Principle 3: Title", "Subpart B—Title", "Sec. 4", "Q 3.2", "R1."
    rf"([^\W\d_]{{3,}}\.? |[A-Z]\.? ?(?=\d))(\d{{1,3}}(?:\s?(?:{LATIN})\b|[a-z])?(?:\.\d{{1,3}})*|[IVXLC]+|[A-Z])[°º]?"
    r"(?:[.:]?$|[.:]?\s+(?:[–—-]\s+)?|\s?[–—:]\s?)(?![a-z])"
)
_BARE: Final = re.compile(r"(?:(\d{1,3})|\[(\d{1,3})\]) (?=[A-Z“‘\"])")
_DASHED: Final = re.compile(r"(\d{1,3}|[IVXLC]{1,6})()\s[–—-]\s+(?=\S)")  # "II - the oil"
_TITLE: Final = re.compile(r"[A-Z][^.;:]{2,100}\.\s")  # before a text, behind a number with hyphens
_LOWER: Final = re.compile(r"(\d{1,3})\.()\s+(?=[a-z])")  # "1. the oil", no part of a sentence if "2. …" comes
_ORDINALS: Final = [  # "FIRST: the oil", apart from "First, the oil" within it
    re.compile(rf"({'|'.join(map(form, ORDINALS))})()[:.,]\s+(?=\S)") for form in (str.upper, str.capitalize)
]
_BULLET: Final = re.compile(r"[•◦▪●○■·]\s+(?=[(\d])")
_INSERTED: Final = re.compile(r"\d{0,3}\[\s?(?=\(\w{1,4}\)\s)")  # "3[(ga) …]": an editor's note and bracket
_CITES: Final = re.compile(r"\b(?:[a-z]{1,3}\.|(?:18|19|20)\d\d\b)|§")  # abbreviations and years in a source
_NAMED_SOURCE: Final = re.compile(r"[A-Z][a-z]+(?: [a-z]+)?(?:\.\s?[–—-]+|:)\s?")  # "History.—s. 1, ch. 7-383"
_TAIL: Final = re.compile(r"(?:[.;:]|(?<!\d),) ((?:18|19|20)\d\d, [^.]{1,8}\.[^“”]{3,200}|\[[^\[\]]{3,200}\])$")
_WORD: Final = re.compile(r"[a-z]{4,}(?![a-z.])")  # no abbreviation, such as "Sched."
_CITING: Final = 0.3  # share of words with a digit from which a text only cites
_LONGEST_SOURCE: Final = 600  # characters
ITEM_WORDS: Final = 25  # most words of a numbered text that may be a heading
MAX_TITLE: Final = 15  # most words of a numbered text that is a title by its look
MAX_TITLE_WORDS: Final = 40
NO_HEADING_ENDS: Final = (".", ";", ",", ":", "—", "–", "-", " and", " or")


def read_block(block: Block) -> tuple[tuple[Step, ...], str]:
    """The steps of a block's number and its text without them."""
    is_heading = block.kind == "heading"
    if block.label:
        if HYPHENED.fullmatch(block.label):
            return (parted(block.label, block.label),), block.text
        if code := CODE.fullmatch(block.label):
            return (Step(code[1], ID, ((0, code[1]),)),), block.text
        steps, rest = read_label(block.label, bare=True)
        if block.place.startswith("sheet=") and block.level:
            return (Step(block.label, ID, ((0, block.label),)),), block.text
        if not steps or rest or (steps[0].style in RANKS and block.text[:1].islower()):  # "Section 5 of the Act …"
            return (), f"{block.label} {block.text}".strip()
        further, text = read_label(re.sub(r"^[–—]\s?(?=\()", "", block.text))  # "26." beside "—(1) A keeper …"
        begins = bool(further) and further[0].style.startswith("(") and opens_list(further[0])
        joins = begins and not steps[-1].style.startswith("(")
        return ((*steps, *further), text) if joins else (steps, block.text)
    text = _BULLET.sub("", block.text)  # before a number that is typed
    if inserted := _INSERTED.match(text):
        steps, rest = read_label(text[inserted.end() :])
        return (steps, f"{inserted[0]}{rest}") if steps else ((), block.text)
    steps, rest = read_label(text, bare=is_heading)
    if not steps:
        return (), block.text
    style = steps[0].style
    if style in RANKS and not is_heading and rest:
        few = len(rest.split()) <= ITEM_WORDS and not rest.endswith(NO_HEADING_ENDS)
        return (steps, rest) if rest[0].isupper() and (few or text[0] == "§") else ((), block.text)
    is_sentence = style == "1." and len(steps) == 1 and rest[:1].islower()
    return ((), block.text) if is_sentence else (steps, rest)


def is_title(step: Step, text: str) -> bool:
    """Whether a numbered text is the name of the text after it, and not a statement, an item or text with a source."""
    is_item = step.style.startswith("(") or step.style in {"1)", "a)", "i)"}
    has_source = text.endswith("]") and step.style not in RANKS
    few = 0 < len(text.split()) <= MAX_TITLE
    return few and not (is_item or has_source or text.endswith(NO_HEADING_ENDS) or text[:1].islower())


def completes(block: Block) -> bool:
    """Whether a text begins a list with a small letter, and so goes on with the sentence before: "(a) keep oil"."""
    steps, text = read_block(block)
    return bool(steps) and opens_list(steps[0]) and text[:1].islower()


def numbered_levels(blocks: Iterable[Block]) -> set[int]:
    """The levels of marked headings of which most begin with a bare number, so that any number may be the first."""
    every, bare = Counter[int](), Counter[int]()
    for block in blocks:
        if block.kind == "heading" and block.level and not is_of_page(block):
            every[block.level] += 1
            bare[block.level] += block.text[:1].isdigit() and bool(read_label(block.text, bare=True)[0])
    return {level for level, times in bare.items() if times > 1 and times * 2 > every[level]}


def is_source(block: Block) -> bool:
    """Whether a paragraph only cites where the text before it comes from: "[85 FR 43304, as amended, 2022]"."""
    text = block.text
    if block.kind != "text" or block.label or len(text) > _LONGEST_SOURCE or not _CITES.search(text):
        return False
    words = text.split()
    if sum(any(map(str.isdigit, word)) for word in words) < _CITING * len(words):
        return False
    if text[0] in {"(", "["}:
        depths = accumulate((char in "([") - (char in ")]") for char in text)
        return not any(char.isalnum() for char, depth in zip(text, depths, strict=True) if not depth)
    named = _NAMED_SOURCE.match(text)
    return len(_CITES.findall(text)) > 1 and not _WORD.search(text, named.end() if named else 0)


def sources_apart(blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks; a source at the end of a text, in brackets or behind several, "… 2004, c. 3.", is set apart."""
    blocks = list(blocks)
    tails = {
        n: found[1] for n, block in enumerate(blocks) if block.kind == "text" and (found := _TAIL.search(block.text))
    }
    tails = {n: tail for n, tail in tails.items() if is_source(Block(tail))}
    for n, block in enumerate(blocks):
        if n not in tails or (len(tails) < MARKED and tails[n][0] != "["):
            yield block
            continue
        yield replace(block, text=block.text.removesuffix(tails[n]).rstrip())
        yield replace(block, text=tails[n], label="", title="")


def names_origin(block: Block) -> bool:
    """Whether a paragraph may name the provision that a schedule serves: "Regulation 7", "[see section 3]"."""
    return block.text[:1] + block.text[-1:] in {"()", "[]"} or bool(read_block(block)[0])


def numbers_a_part(block: Block) -> bool:
    """Whether the number is that of a part, chapter or rule, not of an item."""
    steps, _ = read_block(block)
    return bool(steps) and steps[0].style in {"1.", DOTTED, *RANKS}


def is_of_page(block: Block) -> bool:
    """Whether the block comes from a PDF."""
    return block.place.startswith("page=")


def ends_text_of(unit: Unit, heading: Block) -> bool:
    """Whether a heading without a number ends this unit, which has text, by the level in its source."""
    as_high = 0 < heading.level <= unit.level - (unit.style in RANKS)
    says_levels = heading.place.startswith("paragraph=") or is_of_page(heading)
    is_marked = heading.place.startswith("line=") and heading.level < BOLD_LEVEL
    return as_high and len(unit.parts) > 1 and (says_levels or is_marked)


def counted_on(blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks, with consecutive numbers at the beginning of texts as labels: "1 Keepers …", "[2] …", "II - oil".

    Numbers with hyphens count before a title in a text ("12-41. Oil. A keeper …"), and in headings if there are several
    that begin alike, and they rise. Codes count if there are several (`codes_of`); later headings with the same code
    are below it.
    """
    blocks = list(blocks)
    labels = codes_of(blocks)  # with the place where the text begins
    numbered = {*_run_of(blocks, _BARE, MARKED), *_run_of(blocks, _LOWER, 2)}
    labels |= {
        n: (f"{found[1]}.", found.end())
        for pattern in (_DASHED, *_ORDINALS)
        for n in _run_of(blocks, pattern, 2)
        if (found := pattern.match(blocks[n].text))
    }
    numbered.update(n for n, (block, after) in enumerate(pairwise(blocks)) if _opens_part(block, after))
    for n in numbered:
        label, _, _ = blocks[n].text.partition(" ")
        labels[n] = label.strip("[]"), len(label) + 1
    alike: dict[str, list[tuple[Value, int, re.Match[str]]]] = {}
    for n, block in enumerate(blocks):
        match = HYPHENED.match(block.text) if block.kind in {"heading", "text"} and not block.label else None
        named = match and match[0].rstrip()[-1] == "." and _TITLE.match(block.text, match.end())
        if match and (block.kind == "heading" or (named and not VERBS.search(named[0]))):
            value = parted("", match[2]).value
            alike.setdefault(match[2].partition("-")[0], []).append((value, n, match))
    first = next((n for n, block in enumerate(blocks) if block.kind == "heading"), None)  # of a page with one section
    several = (
        held for held in alike.values() if len(held) > 1 or held[0][1] == first or blocks[held[0][1]].kind == "text"
    )
    rising = (held for held in several if all(a[0] < b[0] for a, b in pairwise(held)))
    labels.update((n, (match[2], match.end())) for held in rising for _, n, match in held if not match[1])
    for n, block in enumerate(blocks):
        label, at = labels.get(n, ("", 0))
        yield replace(block, label=label, text=block.text[at:]) if label else block


def _opens_part(block: Block, after: Block) -> bool:
    """Whether a few words behind a bare number are the title of what the next number counts: "5 Lamps", "5.1 …"."""
    found = _BARE.match(block.text) if block.kind == "text" and not block.label else None
    if not found or not block.text[-1:].isalnum() or len(block.text.split()) > MAX_TITLE:
        return False
    return f"{after.label} {after.text}".lstrip().startswith((f"{found[1]}.1 ", f"{found[1]}.01 "))


def _run_of(blocks: Sequence[Block], pattern: re.Pattern[str], least: int) -> Iterator[int]:
    """The places of texts that begin with 1, 2, 3 and so on in this form, at least so many."""
    run: list[int] = []
    for n, block in enumerate(blocks):
        found = pattern.match(block.text) if block.kind == "text" and not block.label else None
        printed = (found[1] or found[2]) if found else "0"
        number = int(printed) if printed.isdigit() else from_roman(printed) or SPELLED.get(printed.lower(), 0)
        if number and number in {1, len(run) + 1}:
            run = [*run, n] if number > 1 else [n]
            yield from run if len(run) >= least else ()


def counting_words(blocks: Sequence[Block]) -> dict[str, str]:
    """The words that number parts like "Article" does, in any language, and the style of each.

    Their numbers rise or restart. Such a word and its number are alone, or in a heading that the source marks, or in
    most headings of the same look, unlike captions of figures. Known words of parts and single letters may also come
    before a sentence, other words before a title in capitals. A word that with its number is the title of what is
    numbered otherwise ("1.3.4 Category 3B") numbers no parts.
    """
    looks = Counter(block.level for block in blocks if block.kind == "heading" and not _is_marked(block))
    unmarked = Counter[tuple[str, int]]()
    by_word: dict[str, list[tuple[int, Value]]] = {}
    tables = Counter[str]()  # how many headings with the word are above a table: such a word numbers tables
    numbered = (text for steps, text in map(read_block, blocks) if steps)
    titles = Counter(titled[1].strip(" .") for text in numbered if (titled := _COUNTED.fullmatch(text)))
    for block, after in zip_longest(blocks, blocks[1:]):
        if found := counted(block):
            word = re.split(r"[\W\d]", found[0].printed)[0]
            by_word.setdefault(word, []).append((block.level, found[0].value))
            unmarked[word, block.level] += bool(found[1]) and block.kind == "heading" and not _is_marked(block)
            tables[word] += after is not None and after.kind == "table"
    words = {
        word: min(level for level, _ in held)
        for word, held in by_word.items()
        if len({value for _, value in held}) >= MARKED
        and tables[word] * 2 < len(held)
        and titles[word] * 2 < len(held)
        and (
            len(word) == 1
            or rank_word(word)
            or all(unmarked[word, level] * 2 >= looks[level] for level, _ in held if unmarked[word, level])
        )
        and all(one < other or other == held[0][1] for (_, one), (_, other) in pairwise(held))
    }
    deepest = max(words.values(), default=0)
    return {word: rank_word(word) or LEARNED[level == deepest] for word, level in words.items()}


def _is_marked(block: Block) -> bool:
    """Whether the source itself, and not only the look, marks a heading and its level."""
    return 0 < block.level < BOLD_LEVEL and not is_of_page(block)


def counted(block: Block, styles: Mapping[str, str] | None = None) -> tuple[Step, str] | None:
    """The step of a block that begins with a word and a number, and the text after it; None if it may be a sentence."""
    found = _COUNTED.match(block.text)
    word = found[1].strip(" .") if found else ""
    if not found or block.label or (styles and word not in styles):
        return None
    text = block.text[found.end() :]
    if not text.isupper() and text and block.kind != "heading" and len(word) > 1 and not rank_word(word):
        return None
    number = from_roman(found[2]) if found[2].isupper() else 0
    letter = word if len(word) == 1 else ""
    value = ((number, ""),) if number else tuple(map(component, (letter + found[2]).split(".")))
    return Step(found[0].strip(" .:–—-"), (styles or {}).get(word, ""), value), text


def read_counted(block: Block, styles: Mapping[str, str]) -> tuple[tuple[Step, ...], str]:
    """The steps of a block that begins with a counted word and its number, () if none, and its text without them."""
    found = counted(block, styles)
    if found is None:
        return (), block.text
    further, text = read_label(found[1])
    joins = bool(further) and further[0].style.startswith("(") and opens_list(further[0])  # "Article 2 (1) A keeper …"
    return ((found[0], *further), text) if joins else ((found[0],), found[1])


def exchanged_ranks(blocks: Iterable[Block], words: Mapping[str, str]) -> dict[str, str]:
    """The styles of articles and sections, exchanged where articles hold sections that count on."""
    read = (read_block(block)[0] or read_counted(block, words)[0] for block in blocks)
    found = [(steps[0].style, steps[0].value) for steps in read if steps and steps[0].style in {"article", "section"}]
    anew = [opens(value) for (one, _), (other, value) in pairwise(found) if (one, other) == ("article", "section")]
    rows = Counter(one for (one, value), (other, later) in pairwise(found) if one == other and follows(value, later))
    holds = len(anew) > 1 and sum(anew) * 10 >= len(anew) * 9 and rows["section"] > max(1, rows["article"])
    return {"article": "section", "section": "article"} if holds else {}


def whole_value(unit: Unit) -> Value:
    """A unit's value as a prefix of dotted numbers: (4, "") for "4.", "4.0" and "Principle 4", (0, "D") for "D."."""
    if unit.style == DOTTED and unit.is_heading and unit.value[-1] == (0, ""):
        return unit.value[:-1]
    rank = RANKS.get(unit.style, 0)  # "Part 3" is no part of "3.18", "Section 3" of "3.1" is
    own_word = rank >= RANKS["section"] or (rank > 0 and not rank_word(unit.label.split()[0].rstrip(".")))
    if unit.style in {DOTTED, "1."} or own_word:
        return unit.value
    return (component(unit.label.rstrip(".")),) if unit.style == "A." else ()


def number_under(step: Step, parent: Unit) -> str:
    """The full number of a step below this unit; the number of the unit if the step prints none."""
    if not step.printed:
        return parent.number
    if step.style == ID:
        return step.printed
    base: Unit | None = parent
    if step.style == DOTTED:
        while base is not None and (own := whole_value(base)) and step.value[: len(own)] == own:
            base = base.parent
    elif step.style in LEARNED and len(step.value) > 1:  # "Q 3.2" below "3 Licences"
        while base is not None and base.style in {DOTTED, "1."}:
            base = base.parent
    above = base.number.rstrip(".") if base is not None else ""
    return f"{above}.{step.printed}" if above else step.printed


def depth_above(stack: Sequence[Unit], indent: float) -> int:
    """The depth above a heading that opens a list: below no rule, nor in plain text below headings further right."""
    under = next(n for n in range(len(stack) - 1, -1, -1) if not stack[n].is_rule)
    set_in = [n for n in range(1, under + 1) if 0 < indent <= stack[n].indent and _is_of_lines(stack[n])]
    return set_in[0] - 1 if any(stack[n].indent > indent + TOLERANCE for n in set_in) else under


def _is_of_lines(unit: Unit) -> bool:
    """Whether this is a heading of a plain text, where indents are exact."""
    return unit.is_heading and any(text.place.startswith("line=") for text in unit.texts[:1])


def tell_apart(unit: Unit) -> None:
    """Adds a name to the numbers of several lists below one unit: the longest word that only its lead-in has.

    Lists in brackets get no name, as "1.2(1)" is cited without one.
    """
    lists: list[tuple[str, list[Unit]]] = []
    said = ""
    for part in unit.parts:
        if isinstance(part, Block) or not part.style:
            last = part if isinstance(part, Block) else part.texts[-1]
            said = last.text if last.kind == "heading" or last.text.endswith(":") else ""
        elif part.style not in {*RANKS, ID, GUIDANCE, DOTTED} and not part.style.startswith(
            "("
        ):  # "(1)" is cited without a name
            before = lists[-1][1][-1] if lists else None
            if before is None or (before.style == part.style and opens(part.value) and said):
                lists.append((said, []))
            lists[-1][1].append(part)
            said = ""
    words = [dict.fromkeys(words_of(text)) for text, _ in lists]
    for (_, below), own in zip(lists, words, strict=True):
        others = {word for other in words if other is not own for word in other}
        name = max((word for word in own if word not in others), key=len, default="")
        if len(lists) > 1 and name:
            for one in below:
                _renumber(one, len(unit.number.rstrip(".")), name)
    for one in unit.units:
        tell_apart(one)


def _renumber(unit: Unit, place: int, name: str) -> None:
    """Inserts a word into the numbers of a unit and the units below it, after ``place`` characters."""
    before = unit.number[:place]
    for one in (unit, *unit.walk()):
        if one.number.startswith(before):
            one.number = f"{before}.{name}.{one.number[place:].lstrip('.')}".lstrip(".")


def doubtful(root: Unit) -> list[str]:
    """The numbers that repeat or fall among siblings without a heading between them."""
    found = []
    for unit in (root, *root.walk()):
        last: dict[tuple[str, str, object, bool], Unit] = {}
        for below in unit.units:
            if below.style and below.style not in {ID, GUIDANCE}:
                base = below.number.removesuffix(below.label)
                before = last.get(kind := (below.style, base, below.captions, below.is_heading))
                in_order = before is None or (
                    before.value < below.value if below.style == DOTTED else is_later(before.value, below.value)
                )
                if not in_order:
                    found.append(below.number)
                last[kind] = below
    return found
