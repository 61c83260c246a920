"""The page of gaps by Streamlit's own tester: rows judged one after another, filters, sheets, text that stays text."""

import csv
import json
import re
import threading
from dataclasses import replace
from functools import partial
from html import unescape
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from ragqa.index import build_index, open_index
from ragqa.infra.journal import held
from ragqa.library.case_items import ItemLooker
from ragqa.library.gap_rows import Correction, GapOpinion
from ragqa.library.gap_sheets import write_gaps
from ragqa.library.gaps import GapStore, Policies, gap_events
from ragqa.library.register_search import rule_name
from ragqa.library.register_store import up_to_date
from ragqa.records.case_store import CaseStore
from ragqa.records.store import RecordStore
from ragqa.settings.config import IndexingConfig
from ragqa.settings.paths import Paths
from ragqa.types.streams import returned
from ragqa.ui.html.cases import case_html
from ragqa.ui.html.gaps import row_html, standing_html
from ragqa.ui.html.library import plain_markdown
from ragqa.ui.state import resources
from tests.library.test_gaps import ByWords, Counting, scorer_of
from tests.support.fakes import FakeEncoder

pytestmark = pytest.mark.long
HOSTILE = "<img src=x onerror=alert(1)>"
RULES = {
    "1.1": f"A firm must keep a register, {HOSTILE}.",
    "1.2": "A firm must lock the vault.",
    "2.1": "A bank must fly a flag.",
}
POLICY = {
    "1.1": f"We keep a register {HOSTILE}.",
    "1.2": "The vault is never locked.",
    "1.3": "[Click](http://x.y) us.",
}


@pytest.fixture
def world(tmp_path, monkeypatch):
    """Rules and policies, indexed, and what reads the one against the other."""
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))
    monkeypatch.setenv("RAGQA_INDEXES", str(tmp_path / "indexes"))
    paths = Paths.from_env()
    for document, (name, texts) in enumerate((("rules", RULES), ("policies", POLICY)), start=1):
        (tmp_path / name).mkdir()
        rows = [
            {"ID": number, "DocumentID": document, "PassageID": number, "Passage": text}
            for number, text in texts.items()
        ]
        (tmp_path / name / f"{document}.json").write_text(json.dumps(rows))
        build_index(name, tmp_path / name, indexes=paths.indexes, config=IndexingConfig(), encoder=FakeEncoder())
    rules, policies = (open_index(name, paths.indexes) for name in ("rules", "policies"))
    found = up_to_date(paths.registers / "rules.jsonl", rules.passages, rules.manifest.corpus_sha256)
    return paths, found, Policies(policies.passages, Counting(policies.passages))


def read(world):
    """What a run over all rows comes to."""
    paths, found, policies = world
    folder = paths.home / "gaps" / "rules" / "policies"
    with held(folder, "reading gaps"):
        store = GapStore(folder)
        run = returned(gap_events(store, found, found.rows, policies, scorer_of(ByWords())))
        store.close()
    return folder, run


def page(**query):
    def script():
        from ragqa.ui.pages.gaps import gaps_page

        gaps_page()

    tester = AppTest.from_function(script, default_timeout=60)
    for name, value in {"corpus": "rules", "policies": "policies", **query}.items():
        tester.query_params[name] = value
    return tester.run()


def told(at):
    assert not at.exception
    return " ".join(element.proto.body for element in at.get("html") if hasattr(element.proto, "body"))


def test_rows_are_judged_one_after_another_and_what_is_said_stays(world):
    folder, _ = read(world)
    at = page()
    assert ">The vault is never locked.</mark>" in told(at)  # what conflicts comes first
    assert "Verifier's probability of contradiction" in unescape(told(at))
    at.text_input(key=next(one.key for one in at.text_input if one.label == "Comment")).set_value(HOSTILE).run()
    at.button(key="gaps_say_3").click().run()
    html = told(at)  # the next row
    assert "1 partly" in html
    assert HOSTILE not in html
    assert unescape(html).count(HOSTILE) >= 2  # in the rule and in the policy, as text
    assert "Verifier's probability of entailment: 0.90" in unescape(html)
    at.button(key="gaps_say_1").click().run()
    assert "The nearest passage" in told(at)
    assert list(GapStore(folder).corrections.values()) == [Correction("covered", HOSTILE), Correction("confirmed")]
    assert "People judged 2 results and found 1 right." in told(at)
    at.selectbox(key="gaps_result").set_value("covered").run()
    assert "Corrected by a person; the verifier’s label: conflicts" in told(at)
    at.selectbox(key="gaps_result").set_value(None)
    at.text_input(key="gaps_words").set_value("no such words").run()
    assert "No row matches" in [one.value for one in at.caption]


def test_a_run_goes_into_a_case_and_the_case_leads_back_to_it(world):
    read(world)
    at = page()
    at.text_input(key="case_title").set_value("Our *gaps*").run()
    at.text_input(key="case_name").set_value("Carl").run()
    at.button(key="case_add_to").click().run()
    (case,) = CaseStore(world[0].records).list()
    assert [one.ref for one in case.items] == ["gaps:rules/policies"]
    (said,) = (one.value for one in at.caption if "Added to" in one.value)
    assert f"records?case={case.case_id}" in said
    assert at.query_params["policies"] == "policies"  # the page stays
    looked = ItemLooker(RecordStore(world[0].records), world[0], partial(open_index, indexes=world[0].indexes))
    assert 'href="gaps?corpus=rules&amp;policies=policies"' in case_html(case, looked(["gaps:rules/policies"]))


def test_the_page_says_which_side_has_changed_since_it_was_read(world):
    folder, _ = read(world)
    now = {name: open_index(name, world[0].indexes).manifest.corpus_sha256 for name in ("rules", "policies")}
    for changed in ((), ("rules",), ("policies",)):
        (folder / "asked.json").write_text(json.dumps(now | dict.fromkeys(changed, "then")))
        captions = " ".join(one.value for one in page().caption)
        assert [name for name in now if f"The {name} have changed since they were read" in captions] == list(changed)
        assert ("Left to be read: none." in captions) is (changed == ("rules",))


def test_an_address_leads_to_the_rows_of_a_cell_and_statements_are_listed(world):
    read(world)
    at = page()
    at.segmented_control(key="gaps_view").set_value("Chapters and policies").run()
    assert "chapter=Document+1+2&policy=Document+2" in unescape(told(at))
    assert ">0 / 2<" in told(at)
    assert "1 conflicts, 1 partly" in told(at)
    at.segmented_control(key="gaps_view").set_value("Statements without a rule").run()
    html = told(at)
    assert "[Click](http://x.y) us." in html
    assert re.findall(r'target="_blank">([^<]*)</a></li>', html) == ["Document 2 1.3"]  # as a rule is cited, no id
    assert 'href="http://x.y"' not in html
    assert "result=conflicts" in html
    assert "Rows 1 to 1 of 1" in [one.value for one in page(result="conflicts").caption]
    at = page(chapter="Document 1 2", policy="Document 2")
    assert "Rows 1 to 1 of 1" in [one.value for one in at.caption]
    assert "fly a flag" in told(at)


def test_a_sheet_comes_back_and_its_conflict_is_said(world, tmp_path):
    folder, run = read(world)
    sheet = tmp_path / "edited.csv"
    write_gaps(sheet, run, ())
    lines = list(csv.reader(sheet.read_text(encoding="utf-8-sig").splitlines()))
    said = lines[0].index("said")
    lines[1][said], lines[2][said] = "partly", "confirmed"
    with sheet.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows(lines)
    at = page()
    at.button(key="gaps_say_1").click().run()
    at.button(key="gaps_say_3").click().run()
    at.file_uploader(key="gaps_in_0").set_value(("edited.csv", sheet.read_bytes(), "text/csv")).run()
    html = unescape(told(at))
    assert "edited.csv: 0 fields imported, 1 conflict, 0 unknown rows" in html
    row = GapStore(folder).standing(run.gaps, ()).gaps[0].row
    assert f"conflict in Document 1 1.1 ({row.obligation_id}), said: 'covered' stays, not 'partly'" in html
    assert [one.said for one in GapStore(folder).corrections.values()] == ["confirmed", "covered"]


def test_a_run_from_the_page_is_followed_stopped_and_goes_on(world, monkeypatch):
    paths, _, policies = world
    begun, go_on = threading.Event(), threading.Event()

    def search(text):
        begun.set()
        assert go_on.wait(60)
        return policies.search(text)

    index, models = open_index("policies", paths.indexes), SimpleNamespace(scorer=lambda _: scorer_of(ByWords()))
    monkeypatch.setattr(resources, "pipeline", lambda *_: SimpleNamespace(index=index, search=search, models=models))
    monkeypatch.setattr("ragqa.ui.pages.gaps.policy_scorer", lambda scorer, _paths: scorer)
    at = page()
    assert "No row has been read yet" in at.caption[-1].value
    at.text_input(key="gaps_chapters").set_value("1.1, 1.2").run()
    at.button(key="gaps_start").click().run()
    job = resources.library_jobs(paths).latest["rules/policies"]
    assert begun.wait(60), job.view
    at = page()
    assert "gaps_start" not in {one.key for one in at.button}
    at.button(key="library_stop").click().run()
    go_on.set()
    assert job.wait(60).stopped
    at = page()
    assert "Stopped. What was done stays" in told(at)
    assert at.button(key="gaps_on").label == "Go on: 1 row left"
    at.button(key="gaps_on").click().run()
    assert resources.library_jobs(paths).latest["rules/policies"].wait(60).phase == "Done"
    at = page()
    assert "1 partly" in told(at)
    assert "1 conflicts" in told(at)
    assert at.button(key="gaps_start").label == "Compare again what changed"


def test_an_opinion_of_a_language_model_is_named_on_the_row_and_what_it_says_is_text(world):
    _, run = read(world)
    opinion = GapOpinion("model-1", "partly", HOSTILE, is_one=True, tokens=1_200)
    gap = replace(run.gaps[0], label="covered", second=opinion)
    html = row_html(gap, replace(run, gaps=(gap,)), "rules", "policies", lambda _: None, "")
    assert "model-1, asked for a second opinion" in html
    assert "The verifier found: partly." in html
    assert HOSTILE not in html
    standing = standing_html(replace(run, gaps=(gap,)))
    assert "1,200 tokens" in standing
    assert (
        standing.index("Half of the conflicts are missed") < standing.index("<details") < standing.index("Measured on")
    )


def test_a_row_and_its_policy_are_named_with_their_documents(world):
    _, run = read(world)
    at = page()
    listed = next(one for one in at.radio if one.key == "gaps_row")
    assert all(plain_markdown(f"· {rule_name(row)} ") in " ".join(listed.options) for row in world[1].duties)
    assert "unchanged since" not in told(at)  # there is one version
    vault = replace(open_index("policies", world[0].indexes).passages[1], title="Vault Policy")
    clash = next(gap for gap in run.gaps if gap.label == "conflicts")
    html = row_html(clash, run, "rules", "policies", lambda _: vault, "")
    assert '<p class="rq-fine">Vault 1.2 <a' in html  # document and number of the policy's passage
