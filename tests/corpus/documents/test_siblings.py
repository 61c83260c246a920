"""What a number, a title or a note is, known by the numbers beside it, whatever its look."""

import pytest
from openpyxl import Workbook

from ragqa.corpus.documents.labels import read_label
from ragqa.corpus.documents.model import Block, Parsed
from ragqa.corpus.documents.passages import passages_of
from ragqa.corpus.documents.sheets import parse_xlsx
from ragqa.corpus.documents.structure import build
from ragqa.corpus.documents.titles import leave_out_contents
from tests.corpus.documents.test_web_laws import numbers, read

OIL = "A keeper must buy oil in autumn."
ROPES = "A rope must be cut in spring."


def found_in(*blocks):
    """(number, last heading, text) of the passages of these blocks; a text stands for a paragraph."""
    blocks = [Block(one) if isinstance(one, str) else one for one in blocks]
    found = passages_of(build(blocks), "d", "D", 128)
    return [(one.number, one.section.split(" › ")[-1], one.text) for one in found]


@pytest.mark.parametrize(
    "label", ["{}.", "Section {}.", "Sec. {}.", "Article {}", "Rule {}:", "§ {}", "2.{}", "§ 7-{}-1."]
)
def test_titles_in_the_lines_of_texts_are_known_by_the_numbers_that_count_on(label):
    one, two, three = (label.format(n) for n in (1, 2, 3))
    lists = (f"{two} Bells. (a) {OIL}", f"(b) {ROPES}", f"{three} Ropes.", f"(a) {OIL}")
    found = found_in(f"{one} Oil of lamps. {OIL}", *lists)
    texts = {f"Oil of lamps. {OIL}", OIL}  # as printed, or without the title if it is a heading of several rules
    assert next(section for _, section, text in found if text in texts).endswith("Oil of lamps")
    titles = [section.split()[-1] for number, section, _ in found if number[-3:] in {"(a)", "(b)"}]
    assert titles == ["Bells", "Bells", "Ropes"]


def test_a_title_in_the_line_of_a_text_is_part_of_it_and_what_follows_has_a_place_of_its_own():
    blocks = [
        Block(f"{n}. {title} of lamps. {text}")
        for n, title, text in ((1, "Oil", OIL), (2, "Rope", ROPES), (3, "Wax", OIL))
    ]
    first = passages_of(build(blocks), "d", "D", 128)[0]
    assert (first.text, [*first.places()]) == (f"Oil of lamps. {OIL}", [("1.", OIL)])


def test_names_in_a_list_and_few_sentences_among_others_are_no_titles():
    found = found_in("5.1 The register must state:", "1. Oil.", "2. Bells.", "3. Ropes.", "4. The day.")
    assert found[0][2].split("\n")[1:] == ["1.\tOil.", "2.\tBells.", "3.\tRopes.", "4.\tThe day."]
    found = found_in(
        "1. Lamps are lit. They burn.", "2. Oil. It burns.", "3. Ropes are cut. So are wicks.", "4. Bells ring."
    )
    assert [text for _, _, text in found][1] == "Oil. It burns."


def test_a_title_may_be_of_several_sentences_where_a_list_opens_behind_it():
    found = found_in(f"§ 3-4. Lamps kept. Use of oil and of ropes. (a) {OIL}", f"(b) {ROPES}")
    assert found[1:] == [
        ("§ 3-4.(a)", "§ 3-4 Lamps kept. Use of oil and of ropes", OIL),
        ("§ 3-4.(b)", "§ 3-4 Lamps kept. Use of oil and of ropes", ROPES),
    ]


def test_a_heading_at_the_end_of_a_rule_names_the_next():
    blocks = (Block("Part 1 Lamps", "heading", level=2), Block("Oil", "heading", level=4), f"§ 1 {OIL}")
    found = found_in(*blocks, Block("Ropes", "heading", level=4), f"§ 2 {ROPES}")
    assert found[2] == ("Part 1.§ 1", "Oil", OIL)
    assert found[3:] == [("Part 1", "Part 1 Lamps", "Ropes"), ("Part 1.§ 2", "Ropes", ROPES)]


def test_a_heading_behind_a_number_alone_is_its_title():
    bold = [Block(title, "heading", level=7) for title in ("Oil", "Ropes")]
    found = found_in("1.", bold[0], OIL, "2.", bold[1], f"(a) {ROPES}", f"(b) {OIL}")
    assert (found[0], found[-1]) == (("1.", "1. Oil", OIL), ("2.(b)", "2. Ropes", OIL))


def test_what_stands_behind_the_source_of_a_rule_is_no_part_of_its_last_item():
    source = "(1999, Act 4, S. 24; 2003, Act 7, S. 39.)"
    found = found_in(
        "1.1 Lamps", f"(a) {OIL}", f"(b) {ROPES}", source, "See section 4.", "Cited 12 C. 4.", f"1.2 {OIL}"
    )
    assert [(number, text) for number, _, text in found if number.startswith("1.1.")] == [
        ("1.1.(a)", OIL),
        ("1.1.(b)", ROPES),
    ]
    assert {"See section 4.", "Cited 12 C. 4."} <= {text for _, _, text in found}


def test_items_in_lower_case_in_the_line_of_a_rule_and_in_lines_of_a_paragraph_count_on(tmp_path):
    found = numbers(
        tmp_path,
        f"<p>4.1 The log must state:<br>&nbsp; 1. the oil;<br>&nbsp; 2. the rope; and<br>&nbsp; 3. the bell.</p>"
        f"<p>4.2 a. {OIL}</p><p>b. {ROPES}</p><p>4.3 Lamps<br>(a) {OIL}<br>(b) {ROPES}</p>",
    )
    assert (found["4.1.2."], found["4.2.a."], found["4.2.b."]) == ("the rope; and", OIL, ROPES)
    assert (found["4.3.(a)"], found["4.3.(b)"]) == (OIL, ROPES)


def test_a_form_around_the_text_is_read_without_its_controls(tmp_path):
    controls = "<label>Code</label><select><option>Oil code</option><option>Rope code</option></select>"
    parsed = read(tmp_path, f"<form>{controls}<h4>1624.</h4><p>(a) {OIL}</p></form><form>{controls}</form>")
    assert [block.text for block in parsed.blocks] == ["1624.", f"(a) {OIL}"]


def test_a_note_to_which_a_mark_links_needs_no_link_back(tmp_path):
    body = f'<p>4.1 {OIL}<a href="#n1">[1]</a></p><p>4.2 {ROPES}</p><hr><p id="n1">[1] Of good quality.</p>'
    blocks = read(tmp_path, body).blocks
    assert (blocks[-1].kind, blocks[-1].label, blocks[-1].text) == ("note", "(1)", "Of good quality.")


def test_entries_with_dots_to_their_pages_are_contents_even_without_the_headings():
    parsed = Parsed(blocks=[Block(f"{n} Lamps{'.' * 20}{n}") for n in (1, 2, 3)] + [Block(f"4 {OIL}")])
    leave_out_contents(parsed)
    assert [block.text for block in parsed.blocks] == [f"4 {OIL}"]


@pytest.mark.parametrize(
    ("label", "names"), [("Rule {}.1", True), ("LMP_10{}", True), ("{}.1.a", True), ("{} 2024", False)]
)
def test_identifiers_of_a_sheet_may_have_a_word_that_is_the_same_in_each_row(label, names, tmp_path):
    words = ("May", "June", "July") if "2024" in label else (1, 2, 3)
    rows = [
        ("Level", "Code", "Text"),
        *(("x", label.format(word), f"{OIL} {ROPES} {n}") for n, word in enumerate(words)),
    ]
    book = Workbook()
    for row in rows:
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    found = [one.number for one in passages_of(build(parse_xlsx(tmp_path / "a.xlsx").blocks), "d", "D", 128)]
    assert (label.format(words[1]) in found) is names


@pytest.mark.parametrize(
    ("text", "steps", "rest"),
    [
        ("3-B. A lamp", ["3-B."], "A lamp"),
        ("Section 21-A Lamps", ["Section 21-A"], "Lamps"),
        ("Sec. 4. Lamps", ["Sec. 4"], "Lamps"),
        ("Sec. 53a-24. Lamps", ["Sec. 53a-24"], "Lamps"),
        ("PART II*", ["PART II"], ""),
        ("2. a. A lamp", ["2.", "a."], "A lamp"),
        ("1624.", ["1624."], ""),
        ("1798.100. Lamps", ["1798.100"], "Lamps"),
        ("12.11.2022 Lamps", [], "12.11.2022 Lamps"),
    ],
)
def test_numbers_with_hyphens_words_cut_short_and_four_digits(text, steps, rest):
    found, left = read_label(text, bare=True)
    assert ([step.printed for step in found], left.lstrip(". ")) == (steps, rest)


def test_an_inserted_number_is_a_sibling():
    found = found_in(Block("§ 2 Words", "heading", level=3), f"3. {OIL}", f"3-A. {ROPES}", f"A. {OIL}", f"4. {ROPES}")
    assert [number for number, _, _ in found[1:]] == ["§ 2.3.", "§ 2.3-A.", "§ 2.3-A.A.", "§ 2.4."]


def heading(text, level=2):
    return Block(text, "heading", level=level)


def test_codes_before_titles_of_headings_are_their_numbers_if_they_rise():
    codes = (("LP-1", OIL), ("LP-2", ROPES), ("LP-2(1)", OIL), ("LP-10", ROPES))
    found = found_in(*(one for code, text in codes for one in (heading(f"{code} Care of lamps"), f"a. {text}")))
    numbers = [number for number, _, text in found if text in {OIL, ROPES}]
    assert numbers == [f"{code}.a." for code, _ in codes]
    found = found_in(*(heading(f"{code} Care of lamps") for code, _ in reversed(codes)), OIL)
    assert not any(number for number, *_ in found)


def test_titles_in_capitals_before_a_colon_name_what_follows_if_there_are_several():
    texts = [f"{name}: {text}" for name, text in (("SUMMARY", OIL), ("DATES", ROPES), ("FEES", OIL))]
    found = [(section, text) for _, section, text in found_in(*texts) if text in {OIL, ROPES}]
    assert found == [("SUMMARY", OIL), ("DATES", ROPES), ("FEES", OIL)]
    assert not any(section for _, section, _ in found_in(*texts[:2], texts[0]))


def test_what_an_unfinished_item_announces_in_lower_case_is_below_it():
    item, lead, *below, last = (
        Block(text, indent=indent)
        for text, indent in (
            ("(1) A keeper must pay by this formula:", 2.0),
            ("where:", 1.0),
            ("(a) A is the length of the boat, in feet; and", 2.0),
            ("(b) B is the number of its lamps.", 2.0),
            (f"(2) {OIL}", 2.0),
        )
    )
    formula = Block("F = A x B", indent=1.0)
    [first, second] = passages_of(build([heading("3.6A Fees"), item, formula, lead, *below, last]), "d", "D", 128)[1:]
    assert [name for name, _ in first.places()] == ["3.6A.(1).(a)", "3.6A.(1).(b)"]
    assert second.number == "3.6A.(2)"


def test_the_line_before_a_table_names_it():
    table = Block(f"Kind | Duty\nLamp | {OIL}\nBell | {ROPES}", "table")
    *_, found = passages_of(build([heading("4.1 Kinds"), Block("Table 3. Duties by kind"), table]), "d", "D", 128)
    assert ("Table 3.row Lamp", OIL) in found.places()
    assert found.section.endswith("Table 3. Duties by kind")


def test_rows_are_named_by_the_column_that_tells_them_apart():
    rows = "\n".join(f"Harbour | Lamp | {n} | {OIL}" for n in range(101, 104))
    [found] = passages_of(build([Block(f"Place | Kind | No. | Duty\n{rows}", "table")]), "d", "D", 128)
    assert ("row 102", OIL) in found.places()


def test_a_section_with_a_heading_completes_no_list_of_the_rule_above():
    heads = Block("2. Bodies", "heading", level=2), Block("2.1 Rules", "heading", level=3)
    found = found_in(heads[0], "A decision is taken by one of these:", "(a) the Keepers;", "(b) all.", heads[1], OIL)
    assert found == [
        ("2.", "2. Bodies", "A decision is taken by one of these:\n(a)\tthe Keepers;\n(b)\tall."),
        ("2.1", "2.1 Rules", OIL),
    ]


def test_a_letter_behind_the_decimals_of_a_number_with_hyphens_is_part_of_it():
    found = found_in(Block("Checks.", "heading", "7-1001.09a", 2), Block(OIL, label="(a)"))
    assert [number for number, _, _ in found] == ["7-1001.09a", "7-1001.09a.(a)"]


def test_a_day_before_a_year_is_no_end_of_a_text():
    lines = [f"Added by the Warden on May {n}, 2015, 69 Stat. {n}, ch. 8, § 9a" for n in (1, 2, 3)]
    assert [text for _, _, text in found_in(*lines)] == ["\n".join(lines)]
