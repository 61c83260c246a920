"""`ragqa train verdicts`: weights fitted from what the judge knows of pairs, measured on documents not learnt from."""

from functools import partial

import pytest
from typer.testing import CliRunner

import ragqa.cli.train_verdicts as command
from ragqa.cli import app
from ragqa.errors import ConfigError
from ragqa.evaluation.benchmarks.verdicts.probes import OTHER, REMOVED, REWORDED, Expected, Probe
from ragqa.index import build_index, open_index
from ragqa.lab.training import verdicts
from ragqa.lab.training.verdicts import EDITED, Case, cases_of, fitted, out_of_fold, probes_of, rates
from ragqa.loading import Models
from ragqa.pipeline import assemble
from ragqa.scoring.repass.breakdown import source_premises
from ragqa.scoring.verdicts.belief import SUPPORT, features
from ragqa.scoring.verdicts.judge import Judge
from ragqa.settings.config import Config, GenerationConfig, IndexingConfig, ScoringConfig
from ragqa.types import Answer
from ragqa.types.scores import NliProbabilities, ScoringMode, Verdict
from ragqa.types.streams import returned
from tests.support.fakes import FakeEncoder, FakeNli, FakeObligations, passage
from tests.support.judging import sentence

pytestmark = pytest.mark.long

SOURCE = "Banks lend money to firms in spring."


TEXT = "In spring firms borrow from banks."


def case(
    kind: str, number: int, *, entailment: float, contradiction: float = 0.0, text: str = TEXT, cosine: float = 0.5
) -> Case:
    """A sentence of document ``number`` and one source sentence; the model says the same of both directions."""
    passages = [passage("a", SOURCE)]
    judge = partial(
        Judge,
        source_premises(passages, ScoringMode.PAPER),
        passages,
        ScoringConfig(),
        lambda _, others: [cosine] * len(others),
    )
    table = {(text, SOURCE): NliProbabilities(0.0, entailment, 1 - entailment)}
    return Case(kind, f"document {number}", sentence(text), ([entailment], [contradiction], table), judge)


def cases(n: int = 20) -> list[Case]:
    """Supported from .75 on, else at most .45; one removed sentence in ten looks supported."""
    found = [case(REWORDED, n_, entailment=0.75 + 0.01 * (n_ % 20)) for n_ in range(n)]
    found += [case(REMOVED, n_, entailment=0.9 if n_ % 10 == 9 else 0.02 * (n_ % 20)) for n_ in range(n)]
    return [*found, case(OTHER, 0, entailment=0.01)]


def test_the_weights_part_what_is_supported_from_what_is_not():
    weights = fitted(cases())
    assert set(weights) == set(SUPPORT) == {"bias", *features(cases(1)[0].evidence()[0])}
    assert weights["entailment"] > 0
    sure, unsure = (case(REWORDED, 0, entailment=value).verdict(weights) for value in (0.99, 0.05))
    assert (sure, unsure) == (Verdict.SUPPORTED, Verdict.UNSUPPORTED)


def test_at_most_one_in_twenty_without_its_source_is_supported():
    learnt = cases(40)  # 4 of 40 look supported, 2 may be
    weights = fitted(learnt)
    removed = [one.verdict(weights) for one in learnt if one.kind == REMOVED]
    assert removed.count(Verdict.SUPPORTED) <= 2


def test_what_another_rule_decides_is_not_learnt_from():
    quoted = case(REMOVED, 0, entailment=0.99, text=SOURCE)
    clear = case(REMOVED, 0, entailment=0.99, cosine=0.8)
    denied = case(
        REMOVED, 0, entailment=0.0, contradiction=0.99, cosine=0.8, text="Banks lend no money to firms in spring."
    )
    assert quoted.evidence() == clear.evidence() == denied.evidence() == []
    assert denied.verdict(SUPPORT) is Verdict.CONTRADICTED
    assert fitted([*cases(), quoted, clear, denied]) == fitted(cases())


@pytest.mark.parametrize("kind", [REWORDED, REMOVED])
def test_one_class_alone_is_refused(kind):
    with pytest.raises(ConfigError, match="expected cases that are supported and cases that are not, found"):
        fitted([one for one in cases() if one.kind == kind])


def test_no_document_is_learnt_from_and_tested_on(monkeypatch):
    seen = []

    def recording(some):
        seen.append({one.document for one in some})
        return fitted(some)

    monkeypatch.setattr(verdicts, "fitted", recording)
    found = out_of_fold(cases(), 5)
    everything = {one.document for one in cases()}
    tested = [everything - learnt for learnt in seen]
    assert len(tested) == 5
    assert all(tested)
    assert sum(map(len, tested)) == len(everything)  # each in one fold
    assert len(found) == len(cases())
    assert Verdict.SUPPORTED in found[:20]


def test_more_folds_than_documents_are_refused():
    with pytest.raises(ConfigError, match="at least 5 documents, found 3"):
        out_of_fold(cases(3), 5)


def test_rates_are_shares_of_each_kind():
    some = [case(kind, 0, entailment=0.5) for kind in (EDITED, REMOVED, EDITED)]
    first, second = rates(some, [Verdict.CONTRADICTED, Verdict.SUPPORTED, Verdict.SUPPORTED])
    assert (first.kind, first.n, first.supported, first.contradicted) == (REMOVED, 1, 1.0, 0.0)
    assert (second.kind, second.n, second.supported, second.contradicted) == (EDITED, 2, 0.5, 0.5)


# With a pipeline of fakes

TEXTS = {
    "rules.md": "# Rules\n\n## Records\n\nA firm must keep records for six years. The firm must report losses.\n",
    "lakes.md": "# Lakes\n\nThe deep lake lies in the south of Russia. It was first mapped in 1890 by a merchant.\n",
    "birds.md": "# Birds\n\nDucks swim on ponds and lakes in summer. Swans fly south in autumn every year.\n",
}


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    source, folder = tmp_path_factory.mktemp("corpus"), tmp_path_factory.mktemp("indexes")
    for name, text in TEXTS.items():
        (source / name).write_text(text)
    build_index("small", source, indexes=folder, config=IndexingConfig(), encoder=FakeEncoder())
    nli, encoder = FakeNli(), FakeEncoder()
    config = Config(index="small", generation=GenerationConfig(generator="none"))
    models = Models(encoder, nli, nli, FakeObligations(), sentences=encoder)
    return assemble(config, open_index("small", folder), models)


def by_hand(pipeline) -> list[Probe]:
    texts = {
        "Ducks": "In summer ponds have ducks.",
        "Russia": "Russia has a deep lake.",
        "losses": "Losses are reported.",
    }
    return [
        Probe(REWORDED, text, Expected.SUPPORTED, found.text, (found.passage_id,), by_hand=True)
        for word, text in texts.items()
        for found in pipeline.index.passages
        if word in found.text
    ]


def test_a_case_has_the_verdict_of_the_product(pipeline):
    probes = [*probes_of(pipeline, 2, 1), *by_hand(pipeline)]
    assert [probe.kind for probe in probes] == [REMOVED] * 2 + [OTHER] * 2 + [REWORDED] * 3
    found = list(cases_of(pipeline, probes))
    assert [one.kind for one in found] == [probe.kind for probe in probes]
    assert all(one.document.startswith("small ") for one in found)
    for one in found:
        passages = one.judge.args[1]
        assert passages
        scored = returned(pipeline.scorer.stream(Answer(one.sentence.text, (one.sentence,), "", ""), passages)).paper
        assert one.verdict(SUPPORT) is scored.verdicts[0].verdict


def test_the_command_prints_rates_and_weights(pipeline, monkeypatch):
    monkeypatch.setattr(command, "load_pipeline", lambda *_, **__: pipeline)
    monkeypatch.setattr(verdicts, "labelled", lambda *_: by_hand(pipeline))
    result = CliRunner().invoke(app, ["train", "verdicts", "--index", "small", "--n", "6", "--folds", "2"])
    assert result.exit_code == 0, (result.output, result.exception)
    assert "cases of 3 documents, out of 2 folds" in result.output
    assert "Fitted on all: bias" in result.output
    assert f"Present: bias {SUPPORT['bias']:g}" in result.output
