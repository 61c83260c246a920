"""The two bundled corpora, with their example questions and texts to check."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from ragqa.corpus.formats import load_corpus
from ragqa.corpus.questions import GoldQuestion, load_questions, resolve_gold
from ragqa.types.scores import Verdict

_FOLDER = Path(__file__).parent / "demo"


@dataclass(frozen=True, slots=True)
class DemoCorpus:
    """A bundled corpus. Its index has the same ``name``; ``description`` is one line for the page.

    ``featured`` are the ids of the questions offered first, which show the most with the default settings.
    """

    name: str
    title: str
    description: str
    source: Path
    format: str
    featured: tuple[str, ...]

    @property
    def question_files(self) -> tuple[Path, ...]:
        """The files of its example questions, by name."""
        return tuple(sorted((_FOLDER / self.name).glob("questions*.json")))

    def questions(self) -> tuple[GoldQuestion, ...]:
        """The example questions, featured ones first, with the gold passages of the corpus in its default chunks."""
        return _questions(self)


@cache
def _questions(demo: DemoCorpus) -> tuple[GoldQuestion, ...]:
    questions = tuple(question for path in demo.question_files for question in load_questions(path))
    places = {question_id: place for place, question_id in enumerate(demo.featured)}
    questions = tuple(sorted(questions, key=lambda gold: places.get(gold.question.question_id, len(places))))
    if not any(question.evidence for question in questions):
        return questions
    corpus = load_corpus(demo.source, demo.format)
    return resolve_gold(questions, corpus.passages)


DEMOS: dict[str, DemoCorpus] = {
    demo.name: demo
    for demo in (
        DemoCorpus(
            name="rulebook",
            title="Rulebook of an invented regulator",
            description=(
                "The rules of the Harrowmere Financial Services Commission, a regulator invented for this "
                "demonstration: no such authority exists and none of these rules bind anybody."
            ),
            source=_FOLDER / "rulebook",
            format="obliqa",
            featured=("rulebook-22", "rulebook-20", "rulebook-12"),
        ),
        DemoCorpus(
            name="encyclopedia",
            title="Small encyclopedia",
            description="Short articles on lakes, mountains, planets, people and inventions, written for ragqa.",
            source=_FOLDER / "encyclopedia" / "articles",
            format="text",
            featured=("encyclopedia-25", "encyclopedia-04", "encyclopedia-05"),
        ),
    )
}


@dataclass(frozen=True, slots=True)
class CheckedExample:
    """A text to check, the question that it answers, and the verdict on its first sentence."""

    verdict: Verdict
    text: str
    question: str = ""


CHECKED_EXAMPLES: Final = {
    "rulebook": (
        CheckedExample(
            Verdict.SUPPORTED,
            "For each Critical Function we maintain a documented exit plan. The plan is tested at least every 24 "
            "months, and after each change of Service Provider.",
            "Is there an exit plan for outsourced functions?",
        ),
        CheckedExample(
            Verdict.CONTRADICTED,
            "We report a Data Breach to the Commission within 96 hours of becoming aware of it. If the breach is "
            "likely to cause a high risk, we tell the Data Subjects directly within five Business Days.",
            "How soon do you report a data breach?",
        ),
        CheckedExample(
            Verdict.UNSUPPORTED,
            "All of our vendors hold an international certificate for information security.",
        ),
    ),
    "encyclopedia": (
        CheckedExample(
            Verdict.SUPPORTED,
            "Lake Baikal is the deepest lake in the world, with a greatest depth of 1,642 metres. The only river that "
            "flows out of Lake Baikal is the Angara.",
        ),
        CheckedExample(
            Verdict.CONTRADICTED,
            "The Suez Canal opened on 17 November 1879. It has no locks, because it lies at sea level along its whole "
            "course.",
        ),
        CheckedExample(
            Verdict.UNSUPPORTED,
            "The Eiffel Tower is painted by hand every seven years. Its restaurant serves six hundred guests a day.",
        ),
    ),
}
