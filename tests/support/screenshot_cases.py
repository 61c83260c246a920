"""Six records that show the breakdown at its best and at its worst, one of a fan-out, and pictures of their pages.

``python -m tests.support.screenshot_cases FOLDER`` writes, for each record, its first screen and its whole page in two
sizes and two colour schemes. The texts are invented here; the scores come from the embedded models, but for the case
"verdicts", which has every verdict there is.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from ragqa.loading import Models, load_nli, load_obligations
from ragqa.pipeline import load_pipeline
from ragqa.records.store import RecordStore
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.settings.config import Config, FilteringConfig, GenerationConfig
from ragqa.settings.paths import Paths
from ragqa.types import Answer, Passage, Question, Ranking, ScoredPassage
from ragqa.types.events.pipeline import Recorded
from tests.support.fakes import FakeEncoder, FakeGenerator, FakeRetriever, answer, passage
from tests.support.helpers import make_pipeline
from tests.support.server import CHROMIUM, CHROMIUM_FLAGS, running_app
from tests.support.verdict_cases import ALL_VERDICTS, SOURCES, HandJudged

SIZES = {"wide": (1440, 900), "phone": (390, 844)}
SCHEMES = ("light", "dark")

REPORTING = (
    passage(
        "H:4.1",
        "A harbour operator must report an oil spill to the Harbour Office within two hours. The report must state the "
        "place, the time and the estimated volume. A report by telephone is sufficient if it is confirmed in writing "
        "within one day.",
        title="Harbour Rules",
        section="Part 4 › Spills",
        number="4.1",
    ),
    passage(
        "H:4.2",
        "The operator shall keep a record of every spill for six years. Records may be kept on paper or as files.",
        title="Harbour Rules",
        section="Part 4 › Spills",
        number="4.2",
    ),
    passage(
        "H:7.3",
        "No vessel may leave its berth while a spill is being contained. The Harbour Office may grant an exception to "
        "vessels that carry medical supplies.",
        title="Harbour Rules",
        section="Part 7 › Movements",
        number="7.3",
    ),
    passage(
        "H:9.1",
        "An operator must train its staff in containing spills at least once a year. New staff must be trained before "
        "they work on a quay.",
        title="Harbour Rules",
        section="Part 9 › Training",
        number="9.1",
    ),
)
DESCRIPTION = (
    passage(
        "G:1",
        "The old lighthouse stands on a rock of red granite. It is forty metres high and was built in 1871.",
        title="Harbour Guide",
        number="1",
    ),
    passage(
        "G:2",
        "The market square lies behind the quay. Fishing boats return in the early morning.",
        title="Harbour Guide",
        number="2",
    ),
)
GOOD = answer(
    "A harbour operator must report an oil spill to the Harbour Office within two hours.\n"
    "The report has to give the place, the time and the estimated volume.\n"
    "The operator must keep a record of each spill for six years.\n"
    "While a spill is being contained, no vessel may leave its berth.\n"
    "Staff must receive training in containing spills at least every year.",
    [(1,), (1,), (1,), (3,), (4,)],  # the third cites the wrong passage on purpose
)
CONTRADICTING = answer(
    "A harbour operator need not report an oil spill to the Harbour Office.\n"
    "The operator shall keep a record of every spill for two years.\n"
    "Vessels may leave their berth while a spill is being contained.\n"
    "Records may be kept as files.\n"
    "The Harbour Office is painted green.",
    [(1,), (2,), (3,), (2,), ()],
)
EMPTY = answer("", finish_reason="empty", note="The model wrote nothing. Ask again, or choose another generator.")
_TOPICS = ("cranes", "ropes", "ladders", "fenders", "lamps", "pumps", "gates", "hoses", "buoys", "signals")
_SENTENCES = (
    "The operator must inspect all {topic} every {n} months",
    "A record of each inspection of {topic} shall be kept for {n} years",
    "Damaged {topic} must be taken out of service at once",
    "The Harbour Office may ask for the inspection record of the {topic}",
)
EQUIPMENT = tuple(
    passage(
        f"E:{number}",
        " ".join(f"{text.format(topic=topic, n=number + 1)}." for text in _SENTENCES[:3]),
        title="Equipment Rules",
        section=f"Part {number}",
        number=f"{number}.1",
    )
    for number, topic in enumerate(_TOPICS[:6], start=1)
)
LONG = answer(
    "\n".join(
        text.format(topic=topic, n=number + (1 if position % 3 else 2)) + "."
        for position, (number, topic) in enumerate((n, t) for n, t in enumerate(_TOPICS, start=1))
        for text in _SENTENCES
    ),
    [((number % 6) + 1,) for number in range(40)],
)
CASES: dict[str, tuple[str, tuple[Passage, ...], Answer]] = {
    "good": ("What must an operator do after an oil spill?", REPORTING, GOOD),
    "contradicting": ("Must a spill be reported, and what about vessels?", REPORTING, CONTRADICTING),
    "empty": ("Who may enter the control tower?", REPORTING, EMPTY),
    "long": ("Which equipment must be inspected, and how often?", EQUIPMENT, LONG),
    "no-obligation": (
        "What does the harbour look like?",
        DESCRIPTION,
        answer("The lighthouse is forty metres high.\nIt was built in 1871 on red granite.", [(1,), (1,)]),
    ),
    "verdicts": ("When is a spill reported, and how long are records kept?", SOURCES, ALL_VERDICTS),
}


def make_records(home: Path) -> dict[str, str]:
    """Scores the cases with the embedded models and keeps them in ``home``; their record ids by case."""
    paths = Paths(home)
    config = Config(filtering=FilteringConfig(threshold=0.0, max_drop=1.0, top_k=10))
    nli, obligations = load_nli(config.scoring.entailment_model), load_obligations(config.scoring)
    scorer, store = RepassScorer(nli, nli, obligations, config.scoring), RecordStore(paths.records)
    made = {}
    for name, (question, passages, result) in CASES.items():
        hits = [ScoredPassage(found, 9.0 - number) for number, found in enumerate(passages)]
        pipeline = make_pipeline(
            config=config,
            retrievers=tuple(FakeRetriever(Ranking.of(retriever, hits)) for retriever in ("bm25", "dense")),
            generator=FakeGenerator(result),
            scorer=HandJudged() if name == "verdicts" else scorer,
            models=Models(FakeEncoder(), nli, nli, obligations),
            records=store,
        )
        last = list(pipeline.run(Question(question)))[-1]
        assert isinstance(last, Recorded)
        made[name] = last.record_id
    return made


FAN_OUT = "Which of the three mountains Denali, Aconcagua and Kilimanjaro was climbed first?"


def make_fan_out_record(home: Path) -> str:
    """Asks the demonstration encyclopedia a fan-out question, without a language model; the record's id."""
    config = Config(index="encyclopedia", generation=GenerationConfig(generator="fan-out"))
    last = list(load_pipeline(config, Paths(home)).run(Question(FAN_OUT)))[-1]
    assert isinstance(last, Recorded)
    return last.record_id


def open_record(page, address: str, record_id: str) -> None:
    """The record's page, once it is drawn to its last element."""
    page.goto(f"{address}/records?record={record_id}")
    page.locator(".rq-panes .rq-fine").last.wait_for(timeout=60_000)
    page.wait_for_timeout(700)  # charts draw after the page


def shoot_all(folder: Path) -> None:
    """Writes CASE-SIZE-SCHEME.png (the first screen) and …-full.png (the whole page) into ``folder``."""
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        records = {**make_records(Path(home)), "fan-out": make_fan_out_record(Path(home))}
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_FLAGS)
        with running_app(Path(home)) as address:
            for size, (width, height) in SIZES.items():
                for scheme in SCHEMES:
                    for name, record_id in records.items():
                        page = chromium.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
                        open_record(page, address, record_id)
                        _shoot(page, folder / f"{name}-{size}-{scheme}", width, height)
                        page.close()
        chromium.close()


def _shoot(page, stem: Path, width: int, height: int) -> None:
    """Streamlit scrolls inside the page, so for the whole of it the window is made as high as its content."""
    page.screenshot(path=f"{stem}.png")
    content = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
    page.set_viewport_size({"width": width, "height": max(height, content)})
    page.wait_for_timeout(300)
    page.screenshot(path=f"{stem}-full.png")
    page.set_viewport_size({"width": width, "height": height})


if __name__ == "__main__":
    shoot_all(Path(sys.argv[1]))
