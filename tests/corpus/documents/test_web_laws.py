"""How web pages of laws and word processors set numbers, headings, terms and notes: each read by structure."""

from ragqa.corpus.documents.html import parse_html
from ragqa.corpus.documents.model import Block, Parsed
from ragqa.corpus.documents.passages import passages_of
from ragqa.corpus.documents.structure import build
from ragqa.corpus.documents.titles import leave_out_contents
from tests.corpus.documents.test_makers import passages


def read(tmp_path, body, head=""):
    path = tmp_path / "a.html"
    path.write_text(f"<html><head>{head}</head><body>{body}</body></html>", encoding="utf-8")
    return parse_html(path)


def numbers(tmp_path, body, head=""):
    """Number -> text of a page's passages, and of what has a number within them."""
    found = passages(read(tmp_path, body, head))
    return {name: text for one in found for name, text in (*one.places(), (one.number, one.text))}


def built(*blocks):
    found = passages_of(build(blocks), "d", "D", 128)
    return {name: text for one in found for name, text in (*one.places(), (one.number, one.text))}


def test_numbers_that_a_style_sheet_counts_are_read_as_shown(tmp_path):
    style = (
        "<style>ol{list-style-type:none}.a>li{counter-increment:a}.b>li{counter-increment:b}.c>li{counter-increment:c}"
        "ol.a.start{counter-reset:a 0}ol.b.start{counter-reset:b 0}ol.c.start{counter-reset:c 0}.t{font-weight:700}"
        '.a>li:before{content:"" counter(a,decimal) ". "}.c>li:before{content:"(" counter(c,lower-latin) ") "}'
        '.b>li:before{content:counter(a) "." counter(b,decimal) ". "}</style>'
    )
    found = numbers(
        tmp_path,
        "<ol class='a start'><li><h1>Boats</h1></li></ol><ol class='b start'><li>A keeper counts every boat.</li>"
        "<li>A boat is sold only if:</li></ol><ol class='c start'><li>it floats; or</li><li>it is paid for.</li></ol>"
        "<ol class='b'><li>A boat has a name.</li></ol><p><span class='t'>Lamps</span></p><p>Lamps burn.</p>",
        style,
    )
    assert (found["1.2.(b)"], found["1.3"]) == ("it is paid for.", "A boat has a name.")


def test_classes_say_headings_with_numbers_and_words_before_each(tmp_path):
    names = ("Boats at sea", "Lamps of keepers", "Bells on buoys")
    found = read(
        tmp_path,
        "".join(
            f"<p class='note'><span class='x'>In the margin:</span>{name}</p><p class='sec'><b>{n}</b> (1) A keeper "
            f"has {n} oars.</p>"
            for n, name in zip((7, 9, 14), names, strict=True)
        )
        + "<p class='note'><span class='x'>In the margin:</span>More oars</p><p class='sec'>(2) A pilot has none.</p>",
    )
    one = {passage.number: passage for passage in passages(found)}
    assert one["14.(2)"].text == "A pilot has none."
    assert "More oars" in one["14.(2)"].section
    assert "In the margin" not in one["14.(1)"].section


def test_sentences_set_as_a_heading_are_a_notice_and_title_nothing(tmp_path):
    notice = "The version of these lamp rules that is shown here is in force from May. Older versions are kept below."
    found = read(tmp_path, f"<h2>{notice}</h2><h3>4 Keepers</h3><p>4.3 A keeper trims the lamp.</p>")
    (rule,) = (passage for passage in passages(found) if passage.number == "4.3")
    assert "Keepers" in rule.section
    assert "Older versions" not in rule.section


def test_comments_in_a_sheet_say_nothing_and_the_first_class_counts_first(tmp_path):
    style = (
        "<style>p.reset { /* anew; } */ counter-reset: c } p.num { /* count */ counter-increment: c }"
        " p.num::before { content: counter(c) '. ' }</style>"
    )
    found = read(
        tmp_path,
        f"{style}<h1>Lamps</h1><p class='reset num'>A keeper trims a lamp.</p><p class='num'>A pilot has a bell.</p>"
        "<p class='num'>A ferry has a horn.</p>",
    )
    assert [(one.number, one.text) for one in passages(found) if one.number] == [
        ("1.", "A keeper trims a lamp."),
        ("2.", "A pilot has a bell."),
        ("3.", "A ferry has a horn."),
    ]


def test_headings_of_a_level_may_begin_with_any_bare_number(tmp_path):
    found = numbers(tmp_path, "<h5>5 Boats</h5><p>(1) Boats float.</p><h5>6A Lamps</h5><p>(1) Lamps burn.</p>")
    assert (found["5.(1)"], found["6A.(1)"]) == ("Boats float.", "Lamps burn.")


def test_what_a_provision_comes_from_is_no_part_of_it(tmp_path):
    found = numbers(
        tmp_path,
        "<h3>§ 4 Boats</h3><p>(a) Boats float.</p><p>(Act of May 3, 1901, ch. 12, §6, 20 Stat. 859.)</p>"
        "<h3>§ 5 Lamps</h3><p>(a) Lamps burn.</p><ul><li>1985, c. 24, s. 45</li></ul>",
    )
    assert (found["§ 4.(a)"], found["§ 5.(a)"]) == ("Boats float.", "Lamps burn.")
    assert found["§ 5"] == "1985, c. 24, s. 45"


def test_a_note_in_a_box_is_known_by_the_links_between_it_and_its_mark(tmp_path):
    found = numbers(
        tmp_path,
        "<p>1. Boats <a id='r1' href='#k1'>F1</a> float.</p><div><p>Changes</p><div id='k1'><p><span><a href='#r1'>F1"
        "</a></span><span>Words inserted by the Lamps Act.</span></p></div></div><p>2. Lamps burn.</p>",
    )
    assert found["1.note F1"] == "Words inserted by the Lamps Act."
    assert found["2."] == "Lamps burn."


def test_a_list_that_the_last_item_announces_begins_below_it():
    texts = ("(a) boats of—", "(i) keepers who either—", "(aa) row; or", "(bb) sail;", "(b) lamps.")
    found = built(Block("1. A licence is needed for—"), *map(Block, texts))
    assert found["1.(a).(i).(bb)"] == "sail;"
    assert found["1.(b)"] == "lamps."


def test_the_provision_that_a_schedule_serves_is_no_number():
    found = built(
        Block("Schedule 2", "heading", level=2),
        Block("Section 13"),
        Block("Boats", "heading", level=2),
        Block("1. Boats float."),
    )
    assert found["Schedule 2.1."] == "Boats float."


def test_entries_that_recur_as_headings_are_a_table_of_contents():
    parsed = Parsed()
    entries = ("Part 1—Boats 1", "1 Names of boats 1", "2 Keepers 2")  # with pages
    for text in (*entries, "Part 1—Boats", "1 Names of boats", "A boat has a name.", "2 Keepers", "A keeper rows."):
        parsed.add(Block(text, "heading" if text[-1] != "." else "text", level=2))
    leave_out_contents(parsed)
    assert [block.text for block in parsed.blocks][:2] == ["Part 1—Boats", "1 Names of boats"]
    assert parsed.dropped == {"table of contents": 3}


def test_a_heading_that_links_to_its_own_section_is_no_list_of_links(tmp_path):
    found = numbers(
        tmp_path,
        "".join(
            f"<article id='art_{n}'><h6 class='h'><a href='#art_{n}'><b>Art. {n}</b></a> <a href='#art_{n}'>{name}</a>"
            f"</h6><p><sup>1</sup> {name} float.</p><p><sup>1bis</sup> {name} burn.</p></article>"
            for n, name in enumerate(("Boats", "Lamps", "Bells"), start=1)
        ),
    )
    assert (found["Art. 2.1"], found["Art. 3.1bis"]) == ("Lamps float.", "Bells burn.")


def test_spans_that_a_style_sets_as_paragraphs_are_paragraphs(tmp_path):
    found = numbers(
        tmp_path,
        "<section><h3>5. Boats</h3><span class='c'><span class='l'>One may –</span><span class='i'><span class='n'>"
        "(a)</span><span class='p'>row;</span></span><span class='i'><span class='n'>(b)</span> <span class='p'>sail."
        "</span></span></span></section><section><h3>6. Terms</h3><span class='p'>In this part:</span><span class='p'>"
        "“boat” means what floats.</span><span class='p'>“oil” includes wax.</span></section>",
    )
    assert (found["5.(a)"], found["5.(b)"]) == ("row;", "sail.")
    assert found["6.boat"] == "“boat” means what floats."


def test_terms_name_their_definitions_and_titles_are_no_part_of_items(tmp_path):
    found = numbers(
        tmp_path,
        "<h2>2. Terms</h2><p>In here:</p><dl><dt>Boat</dt><dd>What floats.</dd><dt>Lamp</dt><dd>Lamp means oil.</dd>"
        "</dl><h3>3. Fees</h3><p>Paid are—</p><h4>(1) Oars</h4><p>Two coins each.</p><h4>(2) Oil</h4><p>One coin.</p>",
    )
    assert (found["2.Boat"], found["2.Lamp"]) == ("What floats.", "Lamp means oil.")
    assert found["3.(1)"] == "Two coins each."


def test_a_bare_number_before_the_first_item_and_a_bullet_before_a_number():
    found = built(Block("24 (1) Every boat floats."), Block("• (2) Every lamp burns."))
    assert (found["24.(1)"], found["24.(2)"]) == ("Every boat floats.", "Every lamp burns.")


def test_notes_outside_the_main_text_and_captions_of_tables_are_kept(tmp_path):
    parsed = read(
        tmp_path,
        "<div id='content'><h2>1. Boats</h2><p>Boats float<sup><a href='#n1'>1</a></sup> on water, as all know.</p>"
        "<table><caption>Table 1. Oars</caption><tr><th>Boat</th><th>Oars</th></tr><tr><td>Skiff</td><td>two</td></tr>"
        "</table></div><div id='notes'><div id='n1'><a href='#m1'>1</a>. Except when they sink.</div></div>",
    )
    assert [(block.kind, block.text) for block in parsed.blocks if block.kind in {"note", "heading"}][1:] == [
        ("heading", "Table 1. Oars"),
        ("note", "Except when they sink."),
    ]


def test_a_line_below_the_text_of_an_article_is_not_its_title():
    found = built(Block("Article 9"), Block("These rules begin on 3 May 2031."), Block("In the name of the Harbour"))
    assert found["Article 9"] == "These rules begin on 3 May 2031.\nIn the name of the Harbour"
    origin, title = Block("[see sections 3 and 4]"), Block("RIGHTS OF PILOTS")
    assert build([Block("SCHEDULE 1"), origin, title, Block("1. Boats float.")]).units[0].heading == (
        "SCHEDULE 1 RIGHTS OF PILOTS"
    )


def test_notes_in_the_text_of_a_rule_end_its_text_and_notes_elsewhere_stand_apart(tmp_path):
    def row(number, text):
        return f"<div><div><p>{number}</p></div><div>{text}</div></div>"

    def notes(number, text):
        return f"<div><h4>Footnotes</h4><ul><li class='x-footnote'><b>{number}.</b> <i>{text}</i></li></ul></div>"

    one = f"<p>A keeper<sup>4</sup> counts:</p><p>every boat; and</p><p>every oar.</p>{notes(4, 'Of any port.')}"
    two = f"<p>A keeper must:</p><ol><li>(a) wait; and</li><li>(b) watch.</li></ol>{notes(5, 'By day.')}"
    body = row("2.1", one) + row("2.2", two) + row("2.3", "<p>A boat has a name.</p>")
    found = numbers(tmp_path, f"{body}<h4>Notes</h4><p class='footnote'>6. At the end.</p>")
    assert found["2.1"] == "A keeper4 counts:\nevery boat; and\nevery oar.\nFootnotes\n4.\tOf any port."
    assert (found["2.1.note 4"], found["2.1.second paragraph"]) == ("Of any port.", "every boat; and")
    assert found["2.2"] == "A keeper must:\n(a)\twait; and\n(b)\twatch.\nFootnotes\n5.\tBy day."
    assert (found["2.3"], found["2.3.note 6"]) == ("A boat has a name.", "At the end.")


def test_what_an_item_announces_is_part_of_it_wherever_it_stands(tmp_path):
    share = "<ol><li>(1) The share is:</li></ol><p>[a = b]</p><ol><li>where: <ol><li>(a) a is one.</li></ol></li></ol>"
    found = numbers(tmp_path, f"<p>1. Shares</p>{share}<ol><li>(2) It is paid.</li></ol>")
    assert found["1.(1)"] == "The share is:\n[a = b]\nwhere:\n(a)\ta is one."
    assert found["1.(2)"] == "It is paid."


def test_an_article_with_a_text_of_its_own_is_a_rule_and_numbers_restart_below_it():
    def head(label, text, level):
        return Block(text, "heading", label, level, 1.0)

    found = built(
        head("4", "Lights", 3),
        head("Article 6", "Lamps", 3),
        Block("A lamp is lit:"),
        Block("(a) at night; and"),
        Block("(b) in fog."),
        head("Article 7", "Oil", 3),
        *(Block(f"{n}. A keeper buys oil of sort {n}.") for n in (1, 2, 3)),
        Block("Stores", "heading", "", 4),
        Block("4. Oil is stored."),
        Block("[Note: of old.]", "heading", "", 7),
        Block("5. It is sold."),
        head("Annex A", "Forms", 4),
        Block("A form is green."),
        head("5", "Ropes", 3),
        Block("Hemp", "heading", "", 4),
        *(Block(f"{n}. A rope is of sort {n}.") for n in (1, 2)),
        Block("Tar", "heading", "", 4),
        Block("3. A rope is tarred."),
    )
    assert found["4.Article 6"] == "A lamp is lit:\n(a)\tat night; and\n(b)\tin fog."
    assert found["4.Article 7.5."] == "It is sold."
    assert found["4.Annex A"] == "A form is green."
    assert found["5.3."] == "A rope is tarred."


def test_a_bold_number_and_title_before_a_text_are_its_heading(tmp_path):
    found = numbers(
        tmp_path,
        "<p><b><span>  7.005\nLamps; oil.</span></b><span> (1) A keeper lights it if:</span></p><p>(a) it is dark;</p>"
        "<p>(b) it rains.</p><p>(2) Oil is bought.</p><p><b>7.010</b> <b>Bells.</b> A bell is rung.</p>"
        "<p><b>7.015 Oars and ropes.</b></p><p>1. An oar floats.</p><p><b>7.020 A keeper must row.</b> It is fun.</p>",
    )
    assert (found["7.005.(1).(b)"], found["7.005.(2)"]) == ("it rains.", "Oil is bought.")
    assert (found["7.010"], found["7.015.1."]) == ("A bell is rung.", "An oar floats.")
    assert found["7.020"].startswith("A keeper must row. It is")


def test_numbers_inserted_with_a_point_and_with_a_latin_word(tmp_path):
    found = numbers(
        tmp_path,
        "<h2>Article 8 bis</h2><p>Bells ring.</p><h2>Article 9</h2><p>(1) A boat floats.</p><h3>Sails</h3><p>(1.1) It "
        "sails.</p><h3>Names</h3><p>(3) A boat has a name.</p><p>(0.5) is half a mark.</p>",
    )
    assert found["Article 8 bis"] == "Bells ring."
    assert found["Article 9.(1.1)"] == "It sails."
    assert found["Article 9.(3)"].startswith("A boat has a name.\n(0.5) is half")


def test_a_text_behind_a_list_is_no_part_of_its_last_item(tmp_path):
    found = numbers(
        tmp_path,
        "<h2>2.3 Ropes</h2><p>A rope is cut when all of the following hold:</p><ol><li><p>it is old;</p></li><li><p>it "
        "is wet.</p></li></ol><p>Thus a dry rope is kept.</p>",
    )
    assert found["2.3.2."] == "it is wet."


def test_each_term_of_a_list_of_notes_is_a_note(tmp_path):
    notes = "".join(f"<dt><a href='#m{n}'>{n}</a></dt><dd><p>Note on {n} oars.</p></dd>" for n in (1, 2))
    found = numbers(tmp_path, f"<h2>1 Oars</h2><p>Oars float.</p><dl class='footnote brackets'>{notes}</dl>")
    assert (found["1.note 1"], found["1.note 2"]) == ("Note on 1 oars.", "Note on 2 oars.")


def test_a_row_of_one_cell_is_a_heading_or_a_text_and_printed_once(tmp_path):
    rows = "<tr><td colspan=2><h4>Keep the lamp</h4></td></tr><tr><td colspan=2>A lamp is kept lit at night.</td></tr>"
    found = read(
        tmp_path,
        f"<h1>Lamps</h1><table>{rows}<tr><td>Reason:</td><td>Boats see it.</td></tr><tr><td colspan=2>By day</td></tr>"
        "<tr><td>Weight:</td><td>Four pounds of brass.</td></tr></table>",
    )
    assert [(block.kind, block.text) for block in found.blocks[1:]] == [
        ("heading", "Keep the lamp"),
        ("text", "A lamp is kept lit at night."),
        ("table", "Reason: | Boats see it.\nBy day\nWeight: | Four pounds of brass."),
    ]


def test_a_list_of_links_into_the_page_is_its_contents(tmp_path):
    entries = "".join(f"<li><a href='#{name}'>{name.title()} and more</a></li>" for name in ("lamps", "bells", "oars"))
    texts = "".join(
        f"<h3 id='{name}'>{name.title()}, more</h3><p>Of {name}.</p>" for name in ("lamps", "bells", "oars")
    )
    found = read(tmp_path, f"<div class='all'><h2>In this book</h2><ol>{entries}</ol>{texts}</div>")
    assert [block.text for block in found.blocks if block.kind == "heading"] == [
        "In this book",
        "Lamps, more",
        "Bells, more",
        "Oars, more",
    ]
    assert sum(block.kind == "text" for block in found.blocks) == 3
    for others in (texts.replace("more", "few").replace("Of", "On"), texts.replace("id=", "class="), ""):
        listed = entries if others else entries.replace("#", "#top").replace("#toplamps", "#")
        found = read(tmp_path, f"<div class='all'><h2>In this book</h2><ol>{listed}</ol>{others}</div><p>A text.</p>")
        assert "Lamps and more" in " ".join(block.text for block in found.blocks)


def test_words_at_the_head_of_each_sheet_and_links_to_the_pages_beside_are_furniture(tmp_path):
    sheets = "".join(
        f"<div class='s'><p>{n}</p><p>Book of the lamps</p><p>{n}. A keeper has {n} oars{' and one more' * 20}.</p>"
        f"<p>{n} rows.</p></div>"
        for n in range(7, 11)
    )
    found = read(tmp_path, sheets)
    assert [block.text.replace(" and one more", "") for block in found.blocks][:3] == [
        "7. A keeper has 7 oars.",
        "7 rows.",
        "8. A keeper has 8 oars.",
    ]
    rules = "".join(
        f"<section><p>{n}</p><p>Status: In force</p><p>A keeper has {n} oars{' and one more' * words}.</p>"
        "<p>Applies to all harbours.</p></section>"
        for n, words in zip((12, 13, 14, 15), (1, 40, 1, 60), strict=True)
    )
    found = read(tmp_path, f"<main>{rules}</main>")
    assert "12" in found.blocks[0].text + found.blocks[0].label
    assert [block.text for block in found.blocks].count("Applies to all harbours.") == 4
    assert [block.text for block in found.blocks].count("Status: In force") == 4
    links = "<table><tr><th>Of bells</th></tr><tr><td><a href='1.html'>Back</a> 1. Of oars</td></tr></table>"
    head = "<title>Of bells</title><link rel='prev' href='1.html' title='1. Of oars'>"
    found = read(tmp_path, f"{links}<h1>Of bells</h1><p>A bell rings. See <a href='1.html'>oars</a>.</p>", head)
    assert [block.text for block in found.blocks] == ["Of bells", "A bell rings. See oars."]


def test_an_article_whose_title_no_mark_shows_is_titled(tmp_path):
    found = passages(read(tmp_path, "<p>Article 13\nUse of bells</p><p>A bell is rung at night.</p>"))
    assert [(one.text, one.section) for one in found] == [("A bell is rung at night.", "Article 13 Use of bells")]


def test_numbers_in_elements_side_by_side_and_numbers_with_hyphens(tmp_path):
    found = numbers(
        tmp_path,
        "<p><i>7</i><i>(1)</i><i>A keeper must keep a lamp if—</i></p><p><i>(a)</i><i>it is dark.</i></p>"
        "<p><i>(2)</i><i>Oil is bought.</i></p><p><b>Sec. 12-41-10. Bells.</b> (1) A bell is rung.</p><p>(2) It is.</p>"
        "<p><b>12-41-0020<br>Oars</b></p><p>(1) An oar floats.</p><h3>§ 9.2 α-lamps at sea</h3><p>A lamp burns.</p>"
        "<h3>12 LAW § 9.4 - Masts</h3><p>A mast is oiled.</p><p><b>26.</b><i>—(1) A sail is white.</i></p>",
    )
    assert (found["7.(1).(a)"], found["7.(2)"]) == ("it is dark.", "Oil is bought.")
    assert (found["Sec. 12-41-10.(2)"], found["12-41-0020.(1)"]) == ("It is.", "An oar floats.")
    assert (found["§ 9.2"], found["§ 9.4"], found["§ 9.4.26.(1)"]) == (
        "A lamp burns.",
        "A mast is oiled.",
        "A sail is white.",
    )


def test_lines_of_parts_above_a_rule_number_it_and_a_list_of_a_page_has_no_headings(tmp_path):
    found = numbers(
        tmp_path,
        "<p><b>Book of lamps<br>Title 5. Lamps<br>Section 14 - Keeping</b></p><p>A. It counts:</p><dl><dt>1.</dt>"
        "<dd>Seile aus Hanf und</dd><dt>2.</dt><dd>Glocken.</dd></dl><p>B. Oil is bought.</p>",
    )
    assert (found["Title 5.Section 14.A.1."], found["Title 5.Section 14.B."]) == (
        "Seile aus Hanf und",
        "Oil is bought.",
    )


def test_a_class_of_titles_may_end_with_an_abbreviation_and_notes_have_raised_marks(tmp_path):
    names = ("35 Boats, oars etc.", "36 Lamps of keepers", "39A Bells on buoys", "40 Ropes")
    body = "".join(
        f"<p class='h5'>{name}</p><p class='t'>Text of {name[:3]} runs here<sup>1</sup>.</p>" for name in names
    )
    found = numbers(tmp_path, f"{body}<hr><p><sup>1</sup> See the Act.</p>")
    assert list(found) == ["35", "36", "39A", "40", "40.note 1"]
    found = read(tmp_path, "<p><u>The keeper pays the pilot</u></p><p>They row.</p>")  # as bills set new text
    assert [block.kind for block in found.blocks] == ["text", "text"]


def test_brackets_around_what_a_rule_comes_from():
    for source in ("(Added to the Book by 1991, 905; A 1999, 3181)", "[51:19:1865; B § 956] — (A 1969, 312, 591)."):
        found = passages_of(build([Block("4.1 A lamp is lit."), Block(source)]), "d", "D", 128)
        assert [one.text for one in found] == ["A lamp is lit.", source]
    assert built(Block("4.1 A lamp is lit."), Block("(a) 5 lamps in 1999 (b) 6"))["4.1.(a)"].startswith("5 lamps")


def test_a_list_that_opens_in_the_line_of_its_title_begins_there():
    found = built(
        Block("§ 9.5 Lamps.", "heading", level=1),
        Block("(a) Keeping—(1) General. A keeper keeps a lamp."),
        Block("(2) Oil. Oil is bought."),
        Block("(b) Bells. (1) of the list is rung."),
        Block("(c) Ropes are cut."),
        Block("28A. Oars and boats. (1) An oar floats."),
        Block("(2) A boat does."),
    )
    assert found["§ 9.5.28A.(2)"] == "A boat does."
    assert (found["§ 9.5.(a).(1)"], found["§ 9.5.(a).(2)"]) == (
        "General. A keeper keeps a lamp.",
        "Oil. Oil is bought.",
    )
    assert found["§ 9.5.(b)"] == "Bells. (1) of the list is rung."


def test_rules_of_four_digits_coded_articles_and_items_that_count_on(tmp_path):
    found = numbers(
        tmp_path,
        "<h1>2210. Lamps of keepers</h1><p>A lamp is lit.</p><h2>Article L612-1</h2><p>Le phare brille.</p>"
        "<h2>Article L612-2</h2><p>La cloche sonne.</p><h2>Article R. 612-3</h2><p>Le mât tombe.</p>",
    )
    assert (found["2210."], found["Article L612-2"]) == ("A lamp is lit.", "La cloche sonne.")
    assert found["Article R. 612-3"] == "Le mât tombe."
    found = numbers(
        tmp_path, "<h2>3. Oars</h2><h3>3.2 Wicks</h3><ol start=12><li>It is cut.</li><li>It is dry.</li></ol>"
    )
    assert found["3.2.13."] == "It is dry."


def test_titles_of_a_class_with_rising_numbers_may_be_long_and_end_in_a_number(tmp_path):
    names = (
        "17 Lamps of keepers who have left the sea and of those who have not yet gone there",
        "18A Of 17",
        "20 Bells",
    )
    found = numbers(tmp_path, "".join(f"<p class='h'>{name}</p><p class='t'>(1) Text.</p>" for name in names))
    assert {"17.(1)", "18A.(1)", "20.(1)"} <= {*found}


def test_numbers_of_articles_in_brackets_in_bold_and_in_another_language(tmp_path):
    found = numbers(
        tmp_path,
        "<h4>Article (2)<br>Scope</h4><p>It applies to:</p><ol><li>Keepers.</li><li>Ferries.</li></ol>"
        "<p><b>Article 3</b> (1) The light is lit.</p><p>(2) It burns.</p><p><b>Article 4-2</b> The bell is rung.</p>",
    )
    assert (found["Article (2).2."], found["Article 3.(2)"]) == ("Ferries.", "It burns.")
    assert found["Article 4-2"] == "The bell is rung."
    titles = ("1. Objeto.", "2. Aceite.", "3 bis. Mar.")
    found = numbers(
        tmp_path, "".join(f"<h5>Artículo {one}</h5><p>1. Esta ley.</p><p>2. Ese mar.</p>" for one in titles)
    )
    assert found["Artículo 3 bis.2."] == "Ese mar."


def test_a_dash_after_a_title_labels_as_headings_and_colons_between_terms_and_meanings(tmp_path):
    found = numbers(
        tmp_path,
        "<p><b>12. Keeping of lamps.</b>—(1) A keeper has one that—</p><h5><i>(a)</i></h5><div><p>burns; and</p></div>"
        "<h5><i>(b)</i></h5><div><p>is lit.</p></div><p>(2) Oil is bought.</p>",
    )
    assert (found["12.(1).(b)"], found["12.(2)"]) == ("is lit.", "Oil is bought.")
    meanings = ("A light that burns oil and is kept at sea.", "A cord of hemp that a keeper cuts once a year.")
    rows = "".join(
        f"<tr><td>{term}</td><td>:</td><td>{text}</td></tr>" for term, text in zip("LR", meanings, strict=True)
    )
    found = numbers(tmp_path, f"<h2>1. Terms</h2><table>{rows}</table>")
    assert found["1.R"].endswith(meanings[1])


def test_a_colon_in_a_table_that_has_other_values_in_its_column_is_a_value(tmp_path):
    rows = "<tr><th>Sea<th>Old<th>New</tr><tr><td>A<td>:<td>5</tr><tr><td>B<td>6<td>:</tr>"
    (table,) = (block.text for block in read(tmp_path, f"<p>Boats.</p><table>{rows}</table>").blocks[1:])
    assert [line.count("|") for line in table.splitlines()] == [2, 2, 2]
    assert "A | : | 5" in table


def test_every_definition_of_a_list_of_notes_is_kept(tmp_path):
    notes = "<dt>1</dt><dd>One.</dd><dd>Again.</dd><dt>2</dt><dt>3</dt><dd>Three.</dd><dt>Four</dt>"
    found = read(tmp_path, f"<h2>1 Oars</h2><p>Oars float.</p><dl class='footnote'>{notes}</dl>")
    assert [(block.label, block.text) for block in found.blocks[2:] if block.kind == "note"] == [
        ("1", "One."),
        ("", "Again."),
        ("2", ""),
        ("3", "Three."),
        ("", "Four"),
    ]
    found = read(tmp_path, "<h2>1 Oars</h2><p>Oars float.</p><dl class='footnote'><dt>One oar</dt></dl>")
    assert found.blocks[-1].text == "One oar"


def test_a_raised_number_behind_a_unit_or_after_raised_numbers_of_paragraphs_is_no_note(tmp_path):
    for first in ("<p>The hut has 50 m<sup>2</sup>.</p>", "<p><sup>1</sup> A lamp<sup>2</sup> burns.</p>"):
        found = read(tmp_path, f"<h1>Huts</h1>{first}<p><sup>2</sup> The keeper must sign.</p>")
        assert "note" not in {block.kind for block in found.blocks}


def test_bold_cells_beside_numbers_are_headings_only_of_texts(tmp_path):
    rows = "<tr><td>1.<td><b>Lamps</b></tr><tr><td>2.<td>A keeper lights it.</tr><tr><td>3.<td><b>He must pay</b></tr>"
    found = read(tmp_path, f"<h1>Boats</h1><table>{rows}<tr><td>4.<td><b>Bells</b></tr></table>")
    assert [(block.kind, block.label) for block in found.blocks[1:]] == [
        ("heading", "1."),
        ("text", "2."),
        ("text", "3."),
        ("text", "4."),
    ]
    assert {"2.", "3."} <= {one.number for one in passages(found)}


def test_hyphens_number_only_headings_that_begin_alike_and_rise(tmp_path):
    for name in ("24-7 Support", "31-12-2023 Accounts", "2-3 Weeks of notice"):
        assert [*numbers(tmp_path, f"<h1>Lamps</h1><h2>{name}</h2><p>A lamp burns.</p>")] == [""]
    found = numbers(tmp_path, "<h2>12-4 Lamps</h2><p>A lamp burns.</p><h2>12-5 Oars</h2><p>An oar floats.</p>")
    assert found["12-5"] == "An oar floats."


def test_statements_of_a_class_with_rising_numbers_are_no_headings(tmp_path):
    body = "".join(
        f"<p class='r'>{n} Every keeper of a lamp shall light it</p><p class='t'>{text}</p>"
        for n, text in ((1, "When it is dark."), (2, "Until dawn."), (3, "With oil."))
    )
    assert "heading" not in {block.kind for block in read(tmp_path, body).blocks}
    names = ("Lamps", "Bells", "Oars")
    body = "".join(f"<p class='r'>{name} of keepers</p><p class='t'>are kept here</p>" for name in names)
    assert "heading" not in {block.kind for block in read(tmp_path, body).blocks}


def test_a_loss_in_brackets_is_no_item():
    found = built(
        Block("(1) The boats were sold."), Block("(2) The oars too."), Block("Sums", "heading"), Block("(4.5) Net loss")
    )
    assert [*found][:2] == ["(1)", "(2)"]
    assert not any("4.5" in number for number in found)


def test_bold_sentences_before_a_text_are_no_titles(tmp_path):
    found = read(tmp_path, "<p><b>5. The keeper is liable for any loss of oil.</b> A pilot pays.</p><p>6. Oars.</p>")
    assert "heading" not in {block.kind for block in found.blocks}


def test_headings_between_two_numbers_of_a_list_keep_their_order():
    found = build(
        [
            Block("Article 1", "heading", level=2),
            Block("3. A keeper has:"),
            Block("(1) A lamp."),
            Block("Oars", "heading", level=3),
            Block("Ropes", "heading", level=4),
            Block("(2) A bell."),
        ]
    )
    named = [text.text for unit in found.walk() if unit.kind == "heading" for text in unit.texts]
    assert named == ["Oars", "Ropes"]


def test_no_space_is_set_within_a_name_in_code(tmp_path):
    path = tmp_path / "page.html"
    path.write_text(
        "<h1>Lamps</h1><p>Keep <code><span>lamp</span><em><span>X</span></em><span>.</span><em>Y</em>-oil</code> and "
        "<span>oil1</span><b>Train</b>.</p>"
    )
    assert parse_html(path).blocks[1].text == "Keep lampX.Y-oil and oil1 Train."
