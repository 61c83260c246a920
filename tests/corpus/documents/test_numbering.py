"""Which number stands under which, and where passages are cut: legal numbering in general, without files."""

from ragqa.corpus.documents.counting import doubtful
from ragqa.corpus.documents.labels import read_label
from ragqa.corpus.documents.model import Block
from ragqa.corpus.documents.passages import passages_of
from ragqa.corpus.documents.structure import build
from ragqa.index.passages import itemised


def heading(text, level):
    return Block(text, "heading", level=level)


def numbers(*blocks):
    """Numbers and first lines of the passages; a plain text is a paragraph."""
    made = [block if isinstance(block, Block) else Block(block) for block in blocks]
    return [(one.number, one.text.split("\n")[0]) for one in passages_of(build(made), "d", "D", 128)]


def test_a_long_title_is_no_open_sentence_where_each_item_below_it_is_a_sentence():
    title = "32. Variation of a permission. Variation at the request of a keeper by the harbour master of the port"
    found = numbers(title, "(1) The master may vary a permission.", "(2) The keeper must be told of it.")
    assert [number for number, _ in found] == ["32.", "32.(1)", "32.(2)"]
    found = numbers("33. A keeper who holds a permission", "(a) must count boats; and", "(b) must log them.")
    assert [number for number, _ in found] == ["33."]


def test_what_follows_is_announced_by_a_sentence_with_a_full_stop_too():
    rule = "4.2.1 A keeper must meet the following requirements at all times."
    assert [number for number, _ in numbers(rule, "(a) boats are counted;", "(b) lights are lit.")] == ["4.2.1"]
    found = numbers(rule, "(a) Boats are counted each day.", "(b) Lights are lit each night.")
    assert [number for number, _ in found] == ["4.2.1", "4.2.1.(a)", "4.2.1.(b)"]


def test_rules_are_never_items_of_the_title_of_their_section():
    found = numbers("3.4 Part 3: counting boats and lights in categories 1, 2 and 3 of the harbour's own register",
                    "3.4.1 This section is for keepers.", "3.4.2 Count them.")  # fmt: skip
    assert [number for number, _ in found] == ["3.4", "3.4.1", "3.4.2"]


def test_a_list_goes_on_after_rules_that_were_quoted_between_its_items():
    found = numbers("15) The rule reads as follows.", "7.2.2 It is not needed where:", "(1) it is dark; or",
                    "(2) it rains.", "16) Its purpose is plain to all.")  # fmt: skip
    assert found[-1] == ("16)", "Its purpose is plain to all.")


def test_sections_count_on_through_chapters_and_do_not_leave_them():
    found = numbers(heading("Part 6 Offers", 1), heading("56. Purpose", 2), "It is plain.",
                    heading("Chapter 1 Boats", 2), heading("57. Scope", 3), "All boats.")  # fmt: skip
    assert found[-1][0] == "Part 6.Chapter 1.57."


def test_a_chapter_follows_an_inserted_one_whatever_its_rules_are_numbered():
    found = numbers(heading("13A. FUNDS", 1), heading("13A.7 Tests", 2), "13A.7.3 They are made.",
                    heading("14. OTHER FUNDS", 2), "14.1 They are few.")  # fmt: skip
    assert found[-1] == ("14.1", "They are few.")


def test_guidance_stands_under_the_item_that_its_level_says():
    rules = heading("3.1 Boats", 2), "3.1.1 A keeper has duties.", "(1) A keeper counts.", "(2) A keeper logs."
    below = numbers(*rules, heading("Guidance", 5), "1. Logs are kept.")
    assert below[-1] == ("3.1.1.(2).Guidance.1.", "Logs are kept.")
    assert numbers(*rules, heading("Guidance", 4), "1. Logs are kept.")[-1][0] == "3.1.1.Guidance.1."
    assert numbers(*rules, heading("Guidance", 0), "1. Logs are kept.")[-1][0] == "3.1.1.Guidance.1."


def test_guidance_may_have_a_title():
    steps, rest = read_label("Guidance Initial and ongoing counts", bare=True)
    assert ([step.style for step in steps], rest) == (["guidance"], "Initial and ongoing counts")
    assert read_label("Guidance is given by the master")[0] == ()


def test_a_rule_may_begin_in_lower_case_where_its_number_is_next():
    found = numbers("6. RESIDENCE", "6.1 with regard to boats, a log;", "6.2 with regard to lights, a lamp.")
    assert [number for number, _ in found] == ["6.", "6.1", "6.2"]
    assert numbers("6.1 Boats are counted under rule", "9.4 applies to lights.")[-1][0] == "6.1"


def test_an_item_within_a_provision_is_a_place_with_its_whole_number():
    rule = [Block("2. A keeper must:", indent=1.0), Block("count", label="(g)", indent=2.0),
            Block("light lamps where", label="(h)", indent=2.0), Block("it is dark;", label="(i)", indent=3.0),
            Block("it rains.", label="(ii)", indent=3.0), Block("Point (h) holds by day too.", indent=1.0)]  # fmt: skip
    [rule] = passages_of(build([heading("Article 5", 1), *rule]), "d", "D", 128)
    places = dict(rule.places())
    assert places["Article 5.2.(g)"] == "count"
    assert places["Article 5.2.(h).(ii)"] == "it rains."
    assert places["Article 5.2.(h)"].endswith("it rains.")
    assert rule.text.endswith("Point (h) holds by day too.")


def test_rows_of_a_table_are_places_named_by_their_first_cell():
    long = "a light that every boat shows between dusk and dawn"
    table = Block(f"Kind | Meaning\nLamp | {long}\nBell | {long}, by its sound", "table")
    [passage] = passages_of(build([heading("Annex 1 Words", 1), table]), "d", "D", 128)[1:]
    assert ("Annex 1.row Lamp", long) in passage.places()
    terms = Block(f"Lamp | {long}\nBell | {long}, by its sound", "table")
    [passage] = passages_of(build([heading("Annex 1 Words", 1), terms]), "d", "D", 128)[1:]
    assert ("Annex 1.Bell", f"Bell | {long}, by its sound") in passage.places()
    rows = [f"Word {n} | {long}" for n in range(60)]
    found = passages_of(build([heading("Annex 1 Words", 1), Block("\n".join(rows), "table")]), "d", "D", 128)[1:]
    assert len(found) > 1
    assert [row for passage in found for row in passage.text.split("\n")] == rows  # no row stands for heads
    assert all(("Annex 1.Word 59", rows[59]) in passage.places() for passage in found[-1:])


def test_a_lead_in_further_out_begins_a_list_of_its_own():
    blocks = [heading("3.1 Lamps", 1), Block("For keepers:", indent=1.0), Block("Light it.", label="1.", indent=36.0),
              Block("Log it.", label="2.", indent=36.0), Block("For guests:", indent=1.0),
              Block("Ask first.", label="1.", indent=36.0)]  # fmt: skip
    [passage] = passages_of(build(blocks), "d", "D", 128)
    assert ("3.1.keepers.1.", "Light it.") in passage.places()
    assert ("3.1.guests.1.", "Ask first.") in passage.places()
    assert doubtful(build(blocks)) == []


def test_a_rule_that_is_too_long_says_how_many_passages_it_was_cut_into():
    long = "lights the lamp that stands nearest to the boats at dusk, and not later " * 20
    items = [Block(f"{long}{n}", label=f"({n})", indent=2.0) for n in (1, 2, 3)]
    blocks = [heading("Article 5", 1), Block("2. A keeper:", indent=1.0), *items, Block("3. Oil is kept.", indent=1.0)]
    found = passages_of(build(blocks), "d", "D", 128)
    cut = [(one.number, span) for one in found for span in one.spans() if span[1] < 0]
    assert ("Article 5.2.", (0, -4, "Article 5.2.")) in cut
    assert [one.number for one in found if one.number.startswith("Article 5.2.")][:2] == [
        "Article 5.2.",
        "Article 5.2.(1)",
    ]
    whole = next(
        one for n in range(len(found)) for one in itemised(found, n) if one.passage_id == "d:Article 5.2.@Article 5.2."
    )
    assert whole.text == "A keeper:\n" + "\n".join(f"({n})\t{long}{n}" for n in (1, 2, 3))
    [article] = [
        one for n in range(len(found)) for one in itemised(found, n) if one.number in {"Article 5.", "Article 5"}
    ]
    assert article.text.endswith("3\tOil is kept.")


def test_a_chapter_is_no_rule_that_was_cut():
    blocks = [heading("Chapter 1 Lamps", 1), Block("1.1 Light it.", indent=1.0), Block("1.2 Log it.", indent=1.0)]
    assert not any(one.items for one in passages_of(build(blocks), "d", "D", 128))


def test_the_repeated_head_of_a_table_that_was_cut_stands_once_in_the_whole():
    rows = ["Kind | Meaning", *(f"Lamp {n} | a light that boat {n} shows between dusk and dawn" for n in range(80))]
    blocks = [Block("3.1 These are lights:", indent=1.0), Block("\n".join(rows), "table")]
    found = passages_of(build(blocks), "d", "D", 128)
    assert [one.text.startswith(rows[0]) for one in found] == [False, True, True, True]
    [whole] = [one for one in itemised(found, 0) if one.number == "3.1"]
    assert whole.text == "\n".join(["These are lights:", *rows])


def test_paragraphs_of_a_provision_are_places():
    [passage] = passages_of(build([heading("3.1 Lamps", 1), Block("Light it."), Block("Log it.")]), "d", "D", 128)
    assert passage.places() == (("3.1.first paragraph", "Light it."), ("3.1.second paragraph", "Log it."))


def test_a_roman_one_after_a_letter_begins_a_list_though_it_is_no_further_in():
    items = [Block(f"{label} {text}.", indent=2.0) for label, text in
             (("(a)", "lamps"), ("(b)", "bells, as:"), ("(i)", "small"), ("(ii)", "large"), ("(c)", "ropes"),
              ("(i)", "long"), ("(ii)", "short"), ("(d)", "boats"))]  # fmt: skip
    root = build([heading("Article 5", 1), Block("1. A keeper has", indent=1.0), *items])
    assert [unit.number for unit in root.walk()][-4:] == [
        "Article 5.1.(c)", "Article 5.1.(c).(i)", "Article 5.1.(c).(ii)", "Article 5.1.(d)"]  # fmt: skip
    assert doubtful(root) == []
    assert doubtful(build([heading("Article 5", 1), Block("1. A."), Block("3. C."), Block("3. C again.")])) == [
        "Article 5.3."
    ]


def test_a_word_that_counts_through_a_document_numbers_its_parts_in_any_language():
    blocks = [Block(text) for n in (1, 2, 4) for text in (f"Artikel {n}", "(1) Lampen brennen.", "(2) Glocken läuten.")]
    assert [one.number for one in passages_of(build(blocks), "d", "D", 128)][-1] == "Artikel 4.(2)"
    falls = [Block(f"Boot {n}") for n in (3, 1, 2)]
    assert {one.number for one in passages_of(build(falls), "d", "D", 128)} == {""}


def test_a_word_that_with_its_number_is_the_title_of_numbered_rules_numbers_no_parts():
    blocks = [heading("1. General", 1)]
    blocks += [Block(text) for n in (1, 2, 3) for text in (f"1.{n} Category {n}", f"Firms of sort {n} hold capital.")]
    blocks += [Block(text) for n in (2, 4, 5) for text in (f"Category {n}:", "Tests every year.")]
    blocks += [heading("2. Reports", 1), Block("2.1 Firms report every year.")]
    assert passages_of(build(blocks), "d", "D", 128)[-1].section == "2. Reports"


def test_a_heading_without_a_number_ends_the_numbered_one_that_stands_as_high():
    attachment = Block("Attachment", "heading", level=1, place="paragraph=9")  # of Word
    found = numbers(heading("I. Scope", 1), "All boats.", heading("II. Use", 1), "By night.",
                    attachment, heading("1. Purpose", 1), "To see.")  # fmt: skip
    assert found[-1] == ("1.", "To see.")


def test_a_number_behind_letters_and_a_space_numbers_a_regulation():
    assert numbers("Regulation HF 1: Lamps", "1. Light them.", "Regulation HF 2: Bells", "1. Ring them.")[-1] == (
        "Regulation HF 2.1.", "Ring them.")  # fmt: skip


def test_a_row_is_named_by_the_numbers_of_its_first_cells():
    table = Block("Sector | Part | Kind\n1. Light | (a) Oil | Lamps\n1. Light | (b) Wax | Candles", "table")
    [passage] = passages_of(build([heading("Annex 1 Words", 1), table]), "d", "D", 128)[1:]
    assert ("Annex 1.row 1.(b)", "1. Light | (b) Wax | Candles") in passage.places()


def test_bullets_count_on_where_a_list_is_cut():
    texts = [f"• A boat of kind {n} carries a lamp that burns all night and is seen from afar." for n in range(9)]
    passages = passages_of(build([Block("Duties", "heading"), *map(Block, texts)]), "d", "D", 60)
    assert len(passages) > 2
    assert dict(passages[-1].places())["ninth bullet"] == texts[8][2:]


def test_the_size_of_print_does_not_say_how_deep_guidance_stands():
    place = "page=1&box=1,1,2,2"
    blocks = [Block("1.1 Lamps", "heading", level=2, place=place), Block("1.1.1 A keeper must:", place=place),
              Block("(1) light them; and", place=place), Block("(2) clean them.", place=place),
              Block("Guidance", "heading", level=6, place=place), Block("1. Oil burns.", place=place)]  # fmt: skip
    assert passages_of(build(blocks), "d", "D", 128)[-1].number == "1.1.1.Guidance.1."
