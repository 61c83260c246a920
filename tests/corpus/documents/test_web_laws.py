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
