"""A register held against policies: labels, both sides' words, what is read again, kills, what people say, sheets."""

import json
import random
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from openpyxl import load_workbook

from ragqa.corpus.citing import short_names
from ragqa.corpus.demo import DEMOS
from ragqa.corpus.formats import load_corpus
from ragqa.errors import ConfigError, CorpusError
from ragqa.generation.llm.client import ChatClient
from ragqa.infra.journal import held
from ragqa.library import edits
from ragqa.library.edits import SheetRow
from ragqa.library.gap_memo import gap_memo
from ragqa.library.gap_opinions import GapOpinions
from ragqa.library.gap_rows import ALL, Correction, chapter_of
from ragqa.library.gap_runs import GapFolder, GapJob, GapRequest, read_so_far, rows_left
from ragqa.library.gap_search import WantedGaps, matching_gaps
from ragqa.library.gap_sheets import HEADS, cited_names, evidence, write_gaps
from ragqa.library.gaps import GapStore, Policies, gap_events, paragraphs_of, statements_of, unasked
from ragqa.library.jobs import Jobs
from ragqa.library.register import register
from ragqa.library.register_search import rule_name
from ragqa.library.register_store import Handling, Register
from ragqa.records.cases import CaseEvent, Seen, Signer, Step, case_of
from ragqa.records.memo_files import memo_bytes
from ragqa.records.sign_off import decided, sign_offs, submitted
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.settings.config import GenerationConfig, ScoringConfig
from ragqa.types import ModelInfo, Passage, Ranking, ScoredPassage
from ragqa.types.scores import NliProbabilities
from ragqa.types.streams import returned
from ragqa.ui.html.gaps import matrix_html, row_html, standing_html
from tests.support.fakes import FakeNli, FakeObligations
from tests.support.killed import in_a_process
from tests.support.openai_server import OpenAIServer, answer, status

RULES = (
    Passage("1:1.1", "1", "A firm must: (a) keep a register of gifts; and (b) train its staff.", "Rules", number="1.1"),
    Passage("1:1.2", "1", "A firm must lock the vault at night.", "Rules", number="1.2"),
    Passage("1:2.1", "1", "A firm must fly a flag at noon. A firm must feed the cat at dusk.", "Rules", number="2.1"),
)
POLICY = (
    Passage("a:1", "a", "We keep a register of gifts. The vault is never locked.", "Policy A", number="1"),
    Passage("a:2", "a", "Feed the cat\n\nThe garden is green. We train the staff.", "Policy A", number="2"),
    Passage("b:1", "b", "The vault is locked each night. Nobody waves.", "Policy B", number="1"),
)
ASKED = GapRequest(documents=("1",), policies="5" * 64)
LABELS = ["covered", "covered", "conflicts", "not found", "not found"]
YES, NO, NEITHER = (0.05, 0.9, 0.05), (0.9, 0.05, 0.05), (0.05, 0.05, 0.9)


class ByWords(FakeNli):
    """Entails what has the same word of these, contradicts what says never."""

    def _default(self, premise, hypothesis):
        shared = [word for word in ("register", "train", "vault", "flag", "cat") if word in hypothesis]
        if any(f"{word} is never" in premise for word in shared):
            return NliProbabilities(*NO)
        return NliProbabilities(*(YES if any(word in premise for word in shared) else NEITHER))


class Slow(ByWords):
    """Takes ten milliseconds a row, so that a kill falls between rows, too."""

    def predict(self, pairs):
        time.sleep(0.01)
        return super().predict(pairs)


class Counting:
    """A search that gives all passages, and counts how often it is asked."""

    def __init__(self, passages):
        self.passages, self.n_asked = tuple(passages), 0

    def __call__(self, text):
        self.n_asked += 1
        return Ranking.of("all", [ScoredPassage(one, 1.0 / (1 + n)) for n, one in enumerate(self.passages)])


def register_of(*passages, **statuses):
    rows = tuple(register(passages))
    return Register(
        rows, {row.obligation_id: Handling(status=statuses.get(row.number.replace(".", "_"), "")) for row in rows}
    )


def scorer_of(nli, encoder=None):
    return RepassScorer(FakeNli(), FakeNli(), FakeObligations(), ScoringConfig(), encoder, nli)


def run_of(folder, held_against=None, policies=POLICY, rows=None, search=None, nli=None, encoder=None, **how):
    """The run, the pairs that were read, the rows that were."""
    found = held_against or register_of(*RULES)
    nli = nli or ByWords()
    store, seen = GapStore(folder, **how), []
    given = Policies(policies, search or Counting(policies))
    run = returned(
        gap_events(store, found, found.rows if rows is None else rows, given, scorer_of(nli, encoder)), seen.append
    )
    store.close()
    return run, nli.pairs, [event.last.row.text for event in seen if event.is_read]


@pytest.fixture
def folder(tmp_path):
    with held(tmp_path / "gaps", "reading gaps"):
        yield tmp_path / "gaps"


def test_each_row_has_a_label_and_the_words_of_both_sides(folder):
    run, _, _ = run_of(folder)
    assert [gap.label for gap in run.gaps] == LABELS
    gifts, vault, flag = run.gaps[0], run.gaps[2], run.gaps[3]
    (reading,) = gifts.deciding
    assert [one.text for one in reading.statements] == ["We keep a register of gifts."]
    assert reading.title == "Policy A"
    texts = {passage.passage_id: passage.text for passage in POLICY}
    assert all(texts[one.passage_id][one.start : one.end] == one.text for one in reading.statements)
    assert [one.label for one in vault.readings] == ["conflicts", "covered"]
    assert [(one.text, vault.deciding[0].words) for one in vault.deciding[0].statements] == [
        ("The vault is never locked.", ("A firm must lock the vault at night",))
    ]
    assert flag.deciding == ()


class ByTopic:
    """Cosine 1 of texts that both speak of the vault or both do not, else 0."""

    info = ModelInfo("by-topic", "4" * 64)

    def encode(self, texts):
        return np.array([(1.0, 0.0) if "vault" in text else (0.0, 1.0) for text in texts], dtype=np.float32)


def test_a_policy_on_another_subject_is_not_read(folder):
    other = replace(POLICY[1], passage_id="c:1", document_id="c", text=POLICY[1].text.replace("green", "blue"))
    run, pairs, _ = run_of(folder, policies=(*POLICY, other), encoder=ByTopic())
    assert [gap.label for gap in run.gaps] == LABELS
    assert [one.label for one in run.gaps[2].readings] == ["conflicts", "covered", "not found"]
    assert [one.label for one in run.gaps[1].readings] == ["covered", "not found", "covered"]
    assert not [pair for pair in pairs if "vault" in "".join(pair) and "blue" in "".join(pair)]
    assert [pair for pair in pairs if "vault" in "".join(pair) and "green" in "".join(pair)]


def test_a_row_that_is_not_found_names_the_statement_on_its_subject_and_comes_first(folder):
    plain, _, _ = run_of(folder)
    assert [gap.nearest for gap in plain.gaps] == [None] * len(LABELS)  # without an encoder nothing is near
    run, _, _ = run_of(folder, encoder=ByTopic(), restart=True)
    flag = next(gap for gap in run.gaps if gap.label == "not found")
    assert flag.nearest.text == "We keep a register of gifts."
    assert {gap.nearest for gap in run.gaps if gap.label != "not found"} == {None}
    far = replace(flag, readings=tuple(replace(one, nearest=None) for one in flag.readings))
    mixed = replace(run, gaps=(replace(far, row=replace(far.row, number="9")), flag))
    assert [gap.row.number for gap in matching_gaps(mixed, WantedGaps())] == [flag.row.number, "9"]
    assert "with a statement on the same subject: 1, listed first" in standing_html(mixed)
    passages = {one.passage_id: one for one in POLICY}
    opened = row_html(flag, run, "rules", "policies", passages.get, "")
    assert "The marked statement is on the same subject" in opened
    assert "<mark" in opened
    assert evidence(flag)[1] == f"nearest: {flag.nearest.text}"


def test_a_heading_covers_nothing_and_states_nothing():
    assert [one.text for one in statements_of(POLICY[1])] == ["The garden is green.", "We train the staff."]
    listed = Passage("a:3", "a", "## Feed the cat\n\n- Keep the gate shut\n\n(a) Water the plants")
    assert [one.text for one in statements_of(listed)] == ["- Keep the gate shut", "(a) Water the plants"]


def test_what_no_rule_asks_for_is_listed(folder):
    run, _, _ = run_of(folder)
    assert [one.text for one in run.unasked] == ["The garden is green.", "Nobody waves."]


def test_what_a_person_calls_not_applicable_is_not_read(folder):
    run, pairs, _ = run_of(folder, register_of(*RULES, **{"2_1": "Not applicable", "1_2": "done"}))
    assert [gap.label for gap in run.gaps] == [*LABELS[:3], "not applicable", "not applicable"]
    assert not [pair for pair in pairs if "flag" in pair[1]]


def test_the_matrix_counts_by_chapter_and_policy(folder):
    run, _, _ = run_of(folder)
    assert chapter_of(run.gaps[0].row) == "Rules 1"
    assert run.matrix["Rules 1", "Policy A"] == {"covered": 2, "conflicts": 1}
    assert run.matrix["Rules 1", "Policy B"] == {"covered": 1, "not found": 2}
    assert run.matrix["Rules 2", ALL] == {"not found": 2}


def test_a_second_run_reads_nothing_and_a_change_only_what_it_touches(folder):
    run_of(folder)
    search = Counting(POLICY)
    again, pairs, read = run_of(folder, search=search)
    assert (pairs, read, search.n_asked) == ([], [], 0)
    assert [gap.label for gap in again.gaps] == LABELS

    class First(Counting):
        def __call__(self, text):
            ranking = super().__call__(text)
            return replace(
                ranking, hits=[hit for hit in ranking.hits if ("vault" in text) == ("vault" in hit.passage.text)]
            )

    run_of(folder, search=First(POLICY), restart=True)
    changed = (*POLICY[:2], replace(POLICY[2], text="The vault is never locked."))
    run, _, read = run_of(folder, policies=changed, search=First(changed))
    assert read == ["A firm must lock the vault at night."]
    assert run.gaps[2].label == "conflicts"
    _, _, read = run_of(folder, policies=changed, search=(last := First(changed)))
    assert (read, last.n_asked) == ([], 0)
    rules = (
        RULES[0],
        RULES[1],
        replace(RULES[2], text="A firm must fly a flag at noon. A firm must feed the cat at midnight."),
    )
    _, _, read = run_of(folder, register_of(*rules), policies=changed, search=First(changed))
    assert read == ["A firm must feed the cat at midnight."]


def test_another_verifier_reads_all_anew_and_a_part_leaves_the_rest(folder):
    run_of(folder)
    other = ByWords()
    other.info = replace(other.info, fingerprint="9" * 64)
    rows = register_of(*RULES).rows
    run, _, read = run_of(folder, nli=other, rows=rows[:2])
    assert len(run.gaps) == len(read) == 2
    assert run_of(folder, rows=rows[2:])[2] == []


def test_a_kill_at_any_moment_loses_at_most_one_row(tmp_path):
    folder, found = tmp_path / "gaps", register_of(*RULES)
    moments, read = random.Random(5), []

    def work(say):
        with held(folder, "reading gaps"):
            store = GapStore(folder)
            for event in gap_events(store, found, found.rows, Policies(POLICY, Counting(POLICY)), scorer_of(Slow())):
                if event.is_read:
                    say(event.last.row.obligation_id)

    for _ in range(5):
        ended = in_a_process(work, after=1, moments=moments)
        read += ended.said
        with held(folder, "reading gaps"):
            store = GapStore(folder)
            assert set(read) <= set(store.known)  # what was told is on disk
            store.close()
        if ended.changes is not None:
            break
    with held(folder, "reading gaps"):
        run, _, last = run_of(folder)
    assert [gap.label for gap in run.gaps] == LABELS
    assert len(read) == len(set(read))  # none was read twice
    assert len(read) + len(last) <= len(found.rows)


def test_a_rule_that_has_another_number_is_not_read_again(folder):
    run, _, _ = run_of(folder)
    moved = tuple(replace(one, number=f"9.{one.number}", passage_id=f"1:9.{one.number}") for one in RULES)
    found = register_of(*moved)
    assert not {row.obligation_id for row in found.rows} & {gap.row.obligation_id for gap in run.gaps}
    assert rows_left(GapStore(folder), found, GapRequest()) == []
    gaps, _ = read_so_far(GapStore(folder), found, POLICY)
    assert [(gap.row.number, gap.label) for gap in gaps] == [(f"9.{gap.row.number}", gap.label) for gap in run.gaps]
    again, pairs, read = run_of(folder, found)
    assert (pairs, read) == ([], [])
    assert [gap.label for gap in again.gaps] == LABELS


def test_a_judgement_follows_a_rule_to_its_other_number_and_a_newer_one_is_kept(folder):
    run, _, _ = run_of(folder)
    store = GapStore(folder)
    old = run.gaps[0].row
    store.take({old.obligation_id: SheetRow(Correction("covered"), Correction())}, [gap.row for gap in run.gaps])
    store.close()
    found = register_of(*(replace(one, number=f"9.{one.number}", passage_id=f"1:9.{one.number}") for one in RULES))
    store = GapStore(folder)
    shown = store.standing(*read_so_far(store, found, POLICY))
    new = shown.gaps[0].row.obligation_id
    assert shown.corrections == {new: Correction("covered")}
    assert shown.stale == frozenset()
    store.take({new: SheetRow(Correction("conflicts"), Correction("covered"))}, found.rows)
    store.close()
    again, _, _ = run_of(folder, found)
    assert again.corrections == {new: Correction("conflicts")}
    assert GapStore(folder).stale(again.gaps) == frozenset()


def test_what_people_say_survives_runs_and_new_versions(folder, tmp_path):
    run, _, _ = run_of(folder)
    gifts, flag = run.gaps[0].row, run.gaps[3].row
    sheet = {
        gifts.obligation_id: SheetRow(Correction("confirmed"), Correction()),
        flag.obligation_id: SheetRow(Correction("partly", "see the roof"), Correction()),
    }
    store = GapStore(folder)
    rows = [gap.row for gap in run.gaps]
    assert store.take(sheet, rows).n_taken == 3
    with pytest.raises(
        CorpusError, match=r"Rules 1.1.*: expected one of confirmed, conflicts.*nothing of this sheet is im"
    ):
        store.take({gifts.obligation_id: SheetRow(Correction("right"), Correction())}, rows)
    store.close()
    run, _, _ = run_of(folder)
    assert run.label(run.gaps[3]) == "partly"
    assert run.matrix["Rules 2", ALL] == {"not found": 1, "partly": 1}
    assert run.agreement == (1, 2)
    assert run.stale == frozenset()
    run, _, _ = run_of(folder, register_of(*RULES, **{"2_1": "not applicable"}))
    assert run.stale == frozenset()
    new = (
        *RULES[:2],
        replace(RULES[2], text="A firm must fly a large flag at noon. A firm must feed the cat at dusk."),
    )
    run, _, read = run_of(folder, register_of(*new))
    assert read == ["A firm must fly a large flag at noon."]
    assert run.correction(run.gaps[3]) == Correction("partly", "see the roof")
    assert run.stale == {run.gaps[3].row.obligation_id}
    assert run.agreement == (1, 1)


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_a_sheet_goes_out_and_what_people_say_comes_back(folder, tmp_path, suffix):
    evil = (*POLICY, Passage("c:1", "c", "=HYPERLINK(1) fly a flag.", "=Policy C", number="1"))
    run, _, _ = run_of(folder, policies=evil)
    file = tmp_path / f"gaps{suffix}"
    write_gaps(file, run, evil)
    sheet = edits.read_edits(file, Correction)
    assert {row.now for row in sheet.values()} == {Correction()}
    name = run.gaps[3].row.obligation_id
    sheet[name] = replace(sheet[name], now=Correction("confirmed", "=1+1"))
    store = GapStore(folder)
    taken = store.take(sheet, [gap.row for gap in run.gaps])
    store.close()
    assert (taken.n_taken, taken.conflicts, taken.unknown) == (2, (), ())
    run, _, _ = run_of(folder, policies=evil)
    write_gaps(file, run, evil)
    assert edits.read_edits(file, Correction)[name].now == Correction("confirmed", "=1+1")
    if suffix == ".xlsx":
        book = load_workbook(file)
        assert book.sheetnames == ["Gaps", "Matrix", "Statements without a rule"]
        assert [cell.value for cell in book["Gaps"][1]] == list(HEADS)
        cells = [cell for sheet in book.worksheets for row in sheet.iter_rows() for cell in row]
        assert "f" not in {cell.data_type for cell in cells}
        assert book["Matrix"]["C2"].data_type == "n"
        ids = {one.passage_id for one in evil}
        named = {cell.value for sheet, column in ((0, "H"), (2, "A")) for cell in book.worksheets[sheet][column][1:]}
        assert named - {None} <= set(short_names(evil))  # as a rule is cited
        assert not named & ids


def test_a_memo_has_what_is_not_covered_with_the_words_of_both_sides(folder):
    evil = (*POLICY, Passage("c:1", "c", "<b>Wave</b> the [flag](http://x.y) never.", "Policy C", number="1"))
    run, _, _ = run_of(folder, policies=evil)
    seen = {"gaps:rules/policies": Seen("gaps", {"results": "1"}, {}, ())}
    carl, ann = Signer("Carl", "c"), Signer("Ann", "a")
    events = [CaseEvent(Step.OPENED, carl, text="Ours"), CaseEvent(Step.ADDED, carl, ref="gaps:rules/policies")]
    events.append(submitted(case_of("1", events), 1, carl, seen))
    events.append(decided(case_of("1", events), Step.APPROVED, 1, ann, seen, "Agreed", 0))
    signed = tuple(sign_offs([case_of("1", events)], "gaps:rules/policies", seen))
    made = gap_memo(run, "The rules", "The policies", {"sha256 of the corpus": "5" * 64}, signed, cited_names(evil))
    text = memo_bytes(made, ".md").decode()
    assert "5" * 64 in text
    assert "approved by Ann" in text
    assert "# The policies held against The rules" in text
    assert "A firm must lock the vault at night" in text
    assert "The vault is never locked" in text
    assert "keep a register" not in text.split("Statements of the policies")[0]
    assert "<b>" not in text
    assert "Nobody waves. (Policy B 1)" in text.replace("\\", "")
    assert r"\[flag\](http\:" in text  # no link
    assert "Reviewed by" in text


def test_a_folder_that_holds_something_else_is_refused(folder):
    run_of(folder)
    (folder / "corrections.json").write_text('{"1": 2}')
    with pytest.raises(CorpusError, match="cannot be read as a gap run"):
        GapStore(folder)


def test_the_planted_gaps_name_rules_and_words_that_are_there(request):
    cases = [json.loads(line) for line in request.path.with_name("planted_gaps.jsonl").read_text().splitlines()]
    demo = DEMOS["rulebook"]
    rows = {row.obligation_id: row.text for row in register(load_corpus(demo.source, demo.format).passages)}
    policies = load_corpus(demo.source.with_name("policies"), "text").passages
    said = {one.document_id: "" for one in policies}
    for passage in policies:
        said[passage.document_id] += passage.text
    assert len(cases) == 60
    assert [one["sealed"] for one in cases] == [False, True] * 30
    for case in cases:
        where = said[case["policy"]] if case["label"] == "conflicts" else rows[case["obligation_id"]]
        assert all(words in where for words in case["words"].split(", "))


@pytest.mark.model
@pytest.mark.long
def test_the_command(tmp_path, monkeypatch, ended):
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))

    def run(*arguments):
        return ended(*arguments).out

    source = DEMOS["rulebook"].source.with_name("policies")
    run("index", "build", "policies", "--source", str(source), "--format", "text")
    part = ("gaps", "rulebook", "policies", "--document", "8", "--chapter", "3.4")
    said = json.loads(run(*part, "--json"))
    assert len(said["rows"]) == 4  # "may pass on … only if" restricts; "must object" and two more are duties
    assert {reading["document_id"] for row in said["rows"] for reading in row["readings"]} <= {
        one.stem for one in source.iterdir()
    }
    file = tmp_path / "gaps.xlsx"
    assert "4 rows are in" in run(*part, "--xlsx", str(file))
    book = load_workbook(file)
    book["Gaps"].cell(2, 1 + HEADS.index("said")).value = "confirmed"
    book.save(file)
    said = run(*part, "--take", str(file))
    assert "1 field imported, 0 conflicts" in said
    assert "People found 1 of 1 results right" in said
    refused = ended(*part, "--memo", str(tmp_path / "memo.odt"), "--restart", code=2)
    assert "found '.odt'; name another" in " ".join(refused.err.split())
    assert "Rows" not in refused.err  # at once
    refused = ended(*part, "--take", str(tmp_path / "gone.xlsx"), code=3)
    assert "(No such file or directory); expected .csv" in " ".join(refused.err.split())
    refused = ended("check", "gone.txt", code=2)
    assert "cannot read gone.txt: No such file or directory; give" in " ".join(refused.err.split())
    refused = ended(*part[:-1], "9", code=2)
    assert "expected a document or chapter with obligations, found '9'" in " ".join(refused.err.split())


def job_of(jobs, gaps, search=None, asked=ASKED, nli=None):
    def load():
        return register_of(*RULES), Policies(POLICY, search or Counting(POLICY)), scorer_of(nli or ByWords()), None

    return jobs.begin("rules/policies", lambda: GapJob("rules/policies", gaps.folder, asked, jobs, load))


def test_a_run_in_the_background_goes_on_after_a_stop_and_reads_no_row_twice(tmp_path):
    jobs, gaps, found = Jobs(tmp_path), GapFolder(tmp_path / "gaps"), register_of(*RULES)
    held_up, go_on = threading.Event(), threading.Event()

    class Held(Counting):
        def __call__(self, text):
            if self.n_asked == 2:
                held_up.set()
                assert go_on.wait(60)
            return super().__call__(text)

    job = job_of(jobs, gaps, search := Held(POLICY))
    assert held_up.wait(60)
    with pytest.raises(ConfigError, match="is being worked on"):
        job_of(jobs, gaps)
    name = found.rows[0].obligation_id
    sheet = {name: SheetRow(Correction("confirmed"), Correction())}
    assert gaps.take(sheet, found, job).n_taken == 1  # beside the reading
    assert len(rows_left(gaps.store(job), found, ASKED)) == 3
    job.stop()
    go_on.set()
    view = job.wait(60)
    assert (view.stopped, view.error, search.n_asked) == (True, "", 3)
    assert gaps.asked() == ASKED
    assert len(rows_left(gaps.store(None), found, ASKED)) == 2
    view = job_of(jobs, gaps, search).wait(60)
    assert (view.phase, search.n_asked) == ("Done", 5)
    run = gaps.store(None).standing(*read_so_far(gaps.store(None), found, POLICY))
    assert [gap.label for gap in run.gaps] == LABELS
    assert run.agreement == (1, 1)
    assert run.gaps[0].near == ("a:1", "a:2", "b:1")
    assert run.gaps[0].deciding[0].probability == pytest.approx(0.9)
    assert [one.text for one in run.unasked] == ["The garden is green.", "Nobody waves."]


def test_a_run_of_a_part_reads_that_and_says_why_it_cannot(tmp_path):
    jobs, gaps, found = Jobs(tmp_path), GapFolder(tmp_path / "gaps"), register_of(*RULES)
    assert gaps.asked() is None
    assert job_of(jobs, gaps, asked=GapRequest(chapters=("1.2",))).wait(60).phase == "Done"
    assert [gap.row.number for gap in read_so_far(gaps.store(None), found, POLICY)[0]] == ["1.2"]
    assert "found '9'" in job_of(jobs, gaps, asked=GapRequest(("9",))).wait(60).error


def test_a_conflict_gives_the_words_of_both_sides_and_each_paragraph_of_a_policy_is_read_by_itself(folder):
    rule = Passage("1:3", "1", "A firm must lock the vault within 5 minutes of closing.", "Rules", number="3")
    flags, vault = "The flag is blue. It flies at dawn.", "The vault is never locked within 9 minutes of closing."
    policy = Passage("a:1", "a", f"1. Flags\n{flags}\n\n2. Vault\n{vault}", "Policy A")
    run, pairs, _ = run_of(folder, register_of(rule), (policy,))
    (reading,) = run.gaps[0].readings
    assert (reading.label, reading.clashes) == ("conflicts", (("5 minutes", "9 minutes"),))
    assert [one.text for one in reading.statements] == [vault]
    assert not [premise for premise, _ in pairs if "flag" in premise]
    assert [one.text for one in run.unasked] == ["The flag is blue.", "It flies at dawn."]
    assert "“5 minutes” against “9 minutes”" in evidence(run.gaps[0])
    html = row_html(run.gaps[0], run, "rules", "policies", lambda _: None, "")
    assert html.index("Words that clash") < html.index("“5 minutes”") < html.index("“9 minutes”")


def test_items_of_a_list_belong_to_the_paragraph_before_them():
    text = "We keep two things.\n\n- a log;\n\n- a map.\n\nWe lock the vault."
    assert [[one.text for one in each] for each in paragraphs_of(Passage("a:1", "a", text))] == [
        ["We keep two things.", "- a log;", "- a map."],
        ["We lock the vault."],
    ]
    lines = "Staff must:\n1. know the plan;\n   a) share no password\n   b) lock the screen\n2. wave.\n* We audit."
    assert [[one.text for one in each] for each in paragraphs_of(Passage("a:1", "a", lines))] == [
        ["Staff must:", "1. know the plan;", "a) share no password", "b) lock the screen", "2. wave.", "* We audit."]
    ]


def test_an_item_of_a_list_is_read_after_its_lead_in_and_the_lead_in_alone_states_nothing():
    rules = Passage("a:1", "a", "Staff may not:\n1. delete logs;\n2. share keys.\n\nWe keep two things.\n\n- a log;")
    said = list(statements_of(rules))
    assert [one.whole for one in said] == [
        "Staff may not:",
        "Staff may not delete logs;",
        "Staff may not share keys.",
        "We keep two things.",
        "- a log;",
    ]
    assert all(rules.text[one.start : one.end] == one.text for one in said)
    assert [one.text for one in unasked([rules], [])] == ["1. delete logs;", "2. share keys.", said[3].text, "- a log;"]


def test_a_single_policy_is_one_column_of_the_map_and_counts_lead_to_their_rows(folder):
    run, _, _ = run_of(folder, policies=POLICY[:2])
    html = matrix_html(run, "{} {}".format)
    assert html.count('scope="col"') == 2
    assert "all policies" not in html
    counts = standing_html(run, "gaps?result={}".format)
    assert counts.index('href="gaps?result=conflicts"') < counts.index("result=not found") < counts.index("result=cov")
    assert matrix_html(run_of(folder)[0], "{} {}".format).count('scope="col"') == 4


def test_a_long_title_is_its_short_name_in_heading_map_and_memo_and_in_full_where_two_are_alike(folder):
    title = "RESERVES, THEIR KEEPING, AND OTHER MATTERS OF BANKS (RES)"
    rules = [replace(one, title=title, number=f"Part C.{one.number}") for one in RULES]
    run, _, _ = run_of(folder, register_of(*rules))
    named = rule_name(run.gaps[0].row)
    assert (named.startswith("RESERVES (RES) "), title in named) == (True, False)
    assert f"{named}</h2>" in row_html(run.gaps[0], run, "rules", "policies", lambda _: None, "")
    memo = memo_bytes(gap_memo(run, "Rules", "Policies", {}), ".md").decode().replace("\\", "")
    assert ("RESERVES (RES) Part C.1.2" in memo, title in memo) == (True, False)
    assert '<th scope="row">RESERVES (RES) Part C</th>' in matrix_html(run, "{} {}".format)
    other = replace(run.gaps[0], row=replace(run.gaps[0].row, title="RESERVES, OTHERWISE (RES)"))
    html = matrix_html(replace(run, gaps=(*run.gaps, other)), "{} {}".format)
    assert f'<th scope="row">{title} Part C</th>' in html


def test_recitals_are_not_read_but_what_was_said_of_one_stays(tmp_path):
    jobs, gaps, found = Jobs(tmp_path), GapFolder(tmp_path / "gaps"), register_of(*RULES)
    read = job_of(jobs, gaps, asked=GapRequest()).wait(60)
    assert read.phase == "Done"
    first, second = found.rows[:2]
    gaps.take({second.obligation_id: SheetRow(Correction("covered"), Correction())}, found, None)
    rows = tuple(replace(row, is_recital=row in (first, second)) for row in found.rows)
    found = replace(found, rows=rows)
    shown, _ = read_so_far(gaps.store(None), found, POLICY)
    assert [gap.row for gap in shown] == list(rows[1:])  # the first is no duty; the second has been judged
    assert rows_left(GapStore(tmp_path / "other"), found, GapRequest()) == list(rows[2:])


def test_rows_are_found_by_label_policy_chapter_party_strength_and_words(folder):
    run, _, _ = run_of(folder)

    def numbers(**wanted):
        return [gap.row.number for gap in matching_gaps(run, WantedGaps(**wanted))]

    assert numbers() == ["1.2", "2.1", "2.1", "1.1", "1.1"]  # in conflict, not found, covered
    assert numbers(label="conflicts") == ["1.2"]
    assert numbers(label="covered", policy="Policy B") == ["1.2"]
    assert numbers(policy="Policy C") == []
    assert numbers(chapter="Rules 2") == ["2.1", "2.1"]
    assert numbers(party="FIRM", strength="must not") == []
    assert numbers(words="vault never") == ["1.2"]
    assert numbers(words="flag", party="a firm", strength="must") == ["2.1"]


def says(verdict, sentences=(1,)):
    return answer(json.dumps({"verdict": verdict, "sentences": list(sentences), "reason": "<b>So</b> it says."}))


def test_a_language_model_is_asked_once_about_a_row_that_is_not_sure_and_named_there(folder):
    found, rows = register_of(RULES[1]), register_of(RULES[1]).rows
    failed = []

    def asked(*script, nli=None):
        with OpenAIServer(*script) as server:
            client = ChatClient(GenerationConfig(base_url=server.base_url, model="m", max_retries=0), "key")
            store = GapStore(folder)
            given = Policies(POLICY, Counting(POLICY))
            second = GapOpinions(client)
            run = returned(gap_events(store, found, rows, given, scorer_of(nli or Unsure()), second))
            store.close()
            failed.append(second.failed)
            return run.gaps[0], run.opinions, len([one for one in server.requests if one.body])

    class Unsure(ByWords):
        def _default(self, premise, hypothesis):
            return NliProbabilities(0.1, 0.2, 0.7) if "vault" in hypothesis else super()._default(premise, hypothesis)

    gap, words, n = asked(status(500))
    assert (gap.label, gap.second, words) == ("not found", None, "")
    assert failed[0].startswith("m was asked about no more rows; run again to ask about the rest. ")
    gap, words, n = asked(says("conflicts", (99,)))  # cites nothing that was shown: no opinion
    assert (gap.label, gap.second.is_one, n) == ("not found", False, 1)
    GapStore(folder, restart=True).close()
    shown = [one.text for passage in POLICY for one in statements_of(passage)]
    place = 1 + shown.index("The vault is never locked.")
    gap, words, n = asked(says("conflicts", (place,)))
    assert (gap.label, gap.second.before, gap.second.model, n) == ("conflicts", "not found", "m", 1)
    assert [one.text for one in gap.deciding[0].statements] == ["The vault is never locked."]
    assert words == "m was asked about 1 row that the verifier is not sure of, 120 tokens"
    again, _, n = asked(says("covered"))
    assert (again, n) == (gap, 0)  # kept on disk
    assert failed[1:] == [""] * 3
