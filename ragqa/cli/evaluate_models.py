"""`ragqa eval nli | agreement | obligations | citations | claims`: the models behind RePASs and verdicts, measured."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from ragqa.cli.output import PrecisionChoice, counted, plain, print_json, print_table, stderr, stdout, tracked
from ragqa.corpus.demo import DEMOS
from ragqa.corpus.formats import load_corpus
from ragqa.errors import ConfigError
from ragqa.infra.files import write_whole
from ragqa.lab import measures
from ragqa.lab.claims import FOLDS, ClaimedPassage, claims_kind, fold_of, read_gaps
from ragqa.lab.claims import read_claims as read_labelled_claims
from ragqa.lab.labelled import (
    LABELS,
    LabelledPair,
    LabelledSentence,
    citation_groups,
    contrast_pairs,
    legal_pairs,
    read_claims,
    read_pairs,
    rulebook_sentences,
)
from ragqa.lab.measures import CaseAgreement, CitationReport, Counts, SentenceCheck
from ragqa.lab.training import claim_verdicts
from ragqa.lab.training.claim_verdicts import GAP_LABELS, Rates, claim_rates, judge_claims, judge_gaps, policy_rates
from ragqa.lab.training.nli import PairReport, evaluate_pairs
from ragqa.lab.training.obligations import held_out_sentences, measure_obligations
from ragqa.lab.written import GAPS, written_gaps, written_passages
from ragqa.loading import load_nli, load_obligations, load_scorer, policy_scorer
from ragqa.scoring.repass.scorer import RepassScorer
from ragqa.settings.config import ScoringConfig
from ragqa.settings.paths import Paths
from ragqa.settings.scoring import scoring_from_env, scoring_with
from ragqa.types.scores import Verdict

Model = Annotated[str, typer.Option(help="NLI model: embedded name, local folder or hub name.")]
Precision = Annotated[PrecisionChoice | None, typer.Option(help="Precision of the NLI model.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]


def nli(
    pairs: Annotated[
        list[Path] | None, typer.Option(help="JSON lines of {premise, hypothesis, label}, may be gzipped; repeatable.")
    ] = None,
    contrasts: Annotated[
        bool, typer.Option("--contrasts", help="The built-in pairs that differ in a number, date, modal, …")
    ] = False,
    legal: Annotated[bool, typer.Option("--legal", help="The built-in pairs of legal clauses.")] = False,
    model: Model = "",
    precision: Precision = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N pairs of each file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Accuracy, recall per label and speed of the NLI model on labelled pairs."""
    sets: dict[str, list[LabelledPair]] = {str(path): read_pairs(path)[:limit] for path in pairs or []}
    sets |= {"contrasts": contrast_pairs()} if contrasts else {}
    sets |= {"legal": legal_pairs()} if legal else {}
    if not sets:
        msg = "nothing to measure on: expected --pairs FILE, --contrasts or --legal, got none; add one of them"
        raise ConfigError(msg)
    with stderr().status("Loading the model"):
        scoring = _scoring(model, precision)
        entailment = load_nli(scoring.entailment_model, scoring.precision)
    reports = [
        counted(evaluate_pairs(entailment, of_set, name), len(of_set), plain(Path(name).name).plain)
        for name, of_set in sets.items()
    ]
    if as_json:
        print_json([_pair_figures(report) for report in reports])
        return
    for report in reports:
        _print_pairs(report)


def agreement(
    cases: Annotated[Path, typer.Option(help="JSON of answers with the RePASs published for them.")],
    model: Model = "",
    coverage_model: Annotated[str, typer.Option(help="Model for obligation coverage; default: the NLI model.")] = "",
    precision: Precision = None,
    each: Annotated[bool, typer.Option("--each", help="Print every case too.")] = False,
    as_json: AsJson = False,
) -> None:
    """How far our RePASs agrees with published figures, in script mode."""
    published = measures.read_published(cases)
    scoring = _scoring(model, precision, coverage_model)
    scoring = replace(scoring, verdict_model=scoring.entailment_model)  # no verdict is asked for
    with stderr().status("Loading the models"):
        scorer = load_scorer(scoring)
    rows = tracked(measures.score_published(scorer, published, scoring.sentence_splitter), len(published), "Scoring")
    parts = measures.agreement(rows)
    if as_json:
        print_json({"parts": [asdict(p) for p in parts], "cases": [asdict(r) for r in rows]})
        return
    if each:
        _print_cases(rows)
    title = f"{len(rows)} published cases, script mode, {scoring.entailment_model}"
    cells = [
        (
            part.part.replace("_", " "),
            "undefined" if part.pearson is None else f"{part.pearson:.3f}",
            *(f"{mean:.3f}" for mean in (part.mean_published, part.mean_found)),
            f"{part.mean_difference:+.3f}",
            f"{part.mean_distance:.3f}",
        )
        for part in parts
    ]
    print_table(title, ("part", "Pearson r", "published", "ours", "difference", "distance"), cells)
    stdout().print(
        "E and C compare directly; OC and composite depend on a classifier that is not published.", style="dim"
    )


def obligations(
    data: Annotated[
        Path | None, typer.Option(help="JSON list of {Text, Obligation}: its test part (seed 42) is measured too.")
    ] = None,
    model: Annotated[str, typer.Option(help="Obligation classifier: embedded name, folder or hub name.")] = "",
    each: Annotated[bool, typer.Option("--each", help="Print misclassified sentences too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Precision, recall and F1 of the obligation classifier on 50 labelled rulebook sentences."""
    sets: dict[str, Sequence[LabelledSentence]] = {"rulebook sentences": rulebook_sentences()}
    if data is not None:
        sets["test part, seed 42"] = held_out_sentences(data)
    scoring = scoring_with(scoring_from_env(), obligation=model)
    classifier = load_obligations(scoring)
    found = [measure_obligations(classifier.classify, sentences, name) for name, sentences in sets.items()]
    if as_json:
        print_json([asdict(m) | {"precision": m.precision, "recall": m.recall, "f1": m.f1} for m in found])
        return
    rows = ((m.name, f"{m.n_sentences}", *(f"{x:.3f}" for x in (m.f1, m.precision, m.recall))) for m in found)
    print_table(scoring.obligation_model, ("sentences", "count", "F1", "precision", "recall"), rows)
    for measured in found if each else []:
        for wrong, texts in (("missed", measured.missed), ("false alarm", measured.false_alarms)):
            for text in texts:
                stdout().print(plain(f"{wrong}: {' '.join(text.split())}"))


def citations(
    model: Annotated[str, typer.Option(help="NLI model: embedded name, local folder or hub name.")] = "",
    each: Annotated[bool, typer.Option("--each", help="Print every sentence whose citations end up wrong.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print every sentence and the figures as JSON.")] = False,
) -> None:
    """Check the citations of 60 labelled sentences about the demonstration rulebook."""
    demo = DEMOS["rulebook"]
    passages = load_corpus(demo.source, demo.format).passages
    scoring = scoring_with(scoring_from_env(), model)
    with stderr().status("Loading the models"):
        scorer = load_scorer(scoring, Paths.from_env())
    groups = citation_groups()
    n_sentences = sum(len(group.sentences) for group in groups)
    checked = tracked(measures.check_groups(groups, passages, scorer), n_sentences, "Checking")
    found = measures.citation_report(checked)
    if as_json:
        typer.echo(json.dumps(_citations_json(found, checked), indent=2, ensure_ascii=False))
        return
    title = f"citations of {len(checked)} sentences, {scoring.entailment_model}, threshold {scoring.verdict_threshold}"
    _print_citations(title, found)
    for one in checked if each else []:
        if set(one.check.verified) != set(one.labelled.right):
            words = f"{one.labelled.written} → {one.check.verified}, right is {one.labelled.right}: {one.labelled.text}"
            stdout().print(plain(words))


def claims(
    file: Annotated[
        Path,
        typer.Argument(
            help="claims.jsonl or gaps.jsonl of RAGQA_DATA/claims, or alike; WiCE's claims; RAGQA_DATA: ours about it."
        ),
    ],
    verdict_model: Annotated[str, typer.Option(help="Verifier: embedded name, local folder or hub name.")] = "",
    fold: Annotated[int | None, typer.Option(min=0, max=FOLDS - 1, help="Only this fold of claims or rules.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the rates here: ragqa/scoring/verdicts/rates.json.")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure verdicts on labelled claims, or on policies compared with rules: balanced accuracy and rates."""
    scoring = scoring_with(scoring_from_env(), verdict=verdict_model)
    with stderr().status("Loading the models"):
        scorer = load_scorer(scoring, Paths.from_env())
    kind, labels = claims_kind(file), claim_verdicts.LABELS
    if kind == "wice":
        _wice(file, scorer, limit, as_json=as_json)
        return
    if kind == "gaps":
        known_gaps = written_gaps(is_test=True) if file.resolve() == GAPS else read_gaps(file)
        gaps = [gap for gap in known_gaps if fold in (None, fold_of(gap.id))][:limit]
        scorer = policy_scorer(scorer, Paths.from_env())
        policies = list(chain.from_iterable(tracked(judge_gaps(gaps, scorer), len(gaps))))
        rates, labels = policy_rates(policies), GAP_LABELS
        partly = [one.named for one in policies if one.policy.label == "partly"]
        note = f"missing part named in {sum(partly)} of {len(partly)} partly covered"
    else:
        known = _own_claims(file) if kind == "written" else read_labelled_claims(file)
        passages = [one for one in known if fold in (None, fold_of(one.id))][:limit]
        judged = list(chain.from_iterable(tracked(judge_claims(passages, scorer), len(passages))))
        rates = claim_rates(judged)
        note = f"not sure: {sum(one.verdict.unsure for one in judged)} of {len(judged)}"
    figures = _rates_json(rates, note) | {"model": scorer.verdicts.info.name, "fold": fold}
    if out:
        write_whole(out, [json.dumps(figures, indent=1) + "\n"])
    if as_json:
        print_json(figures)
        return
    _print_rates(rates, labels, f"{file.name}, {scorer.verdicts.info.name}", note)


def _own_claims(data: Path) -> tuple[ClaimedPassage, ...]:
    """The passages of RAGQA_DATA with claims of our own that measure. Raises CorpusError."""
    return tuple(one.claimed for one in written_passages(data, is_test=True))


def _rates_json(rates: Rates, note: str) -> dict[str, Any]:
    kinds = {f"{label}: {kind}": dict(counts) for (label, kind), counts in sorted(rates.kinds.items())}
    return {"balanced": rates.balanced, "counts": rates.counts, "kinds": kinds, "note": note}


def _print_rates(rates: Rates, labels: Sequence[str], title: str, note: str) -> None:
    rows = [(label, rates.counts[label]) for label in labels if label in rates.counts]
    rows += [(f"  {label}: {kind}", counts) for (label, kind), counts in sorted(rates.kinds.items())]
    print_table(
        f"{title}: balanced accuracy {rates.balanced:.3f}",
        ("labelled", "n", *(f"called {label}" for label in labels)),
        (
            (name, f"{counts.total():,}", *(f"{counts[said] / counts.total():.2f}" for said in labels))
            for name, counts in rows
        ),
    )
    stdout().print(plain(note))


def _wice(file: Path, scorer: RepassScorer, limit: int | None, *, as_json: bool) -> None:
    labelled = read_claims(file)[:limit]
    checked = tracked(measures.check_claims(labelled, scorer), len(labelled), "Checking")
    raw = {Verdict.SUPPORTED, Verdict.DISPUTED}
    found = {
        "verdicts": [(one.claim.is_supported, one.verdict is Verdict.SUPPORTED) for one in checked],
        "raw P(entailment) at the threshold": [(one.claim.is_supported, one.raw in raw) for one in checked],
    }
    if as_json:
        print_json({name: measures.balanced_accuracy(rows) for name, rows in found.items()})
        return
    cells = []
    for name, rows in found.items():
        sides = [[said for is_so, said in rows if is_so is wanted] for wanted in (True, False)]
        value = measures.balanced_accuracy(rows)
        shares = [f"{sum(side)} of {len(side)}" for side in sides]
        cells.append((name, "undefined" if value is None else f"{value:.3f}", *shares))
    title = f"{len(checked)} claims, {scorer.verdicts.info.name}"
    print_table(title, ("", "balanced accuracy", "supported", "else"), cells)
    stdout().print("Share called supported: of supported claims, and of all others.", style="dim")


def _scoring(model: str, precision: PrecisionChoice | None, coverage_model: str = "") -> ScoringConfig:
    """The scoring profile of the environment, with these models and this precision if given."""
    scoring = scoring_with(scoring_from_env(), model, coverage_model)
    return replace(scoring, precision=precision.value) if precision else scoring


def _pair_figures(report: PairReport) -> dict[str, Any]:
    derived = ("n_pairs", "accuracy", "recall", "pairs_per_second")
    return asdict(report) | {name: getattr(report, name) for name in derived}


def _print_pairs(report: PairReport) -> None:
    accuracy = "no pairs" if report.accuracy is None else f"accuracy {report.accuracy:.4f}"
    speed = f"{report.pairs_per_second:,.0f} pairs/s"
    name = f"{report.model.name} ({report.model.precision})"
    title = f"{report.name}: {accuracy}, {report.n_pairs:,} pairs, {speed}, {name}"
    recalls = ("-" if value is None else f"{value:.3f}" for value in map(report.recall.get, LABELS))
    rows = zip(LABELS, recalls, report.confusion, strict=True)
    print_table(
        title,
        ("label", "recall", *(f"called {label}" for label in LABELS)),
        ((label, recall, *(f"{count:,}" for count in row)) for label, recall, row in rows),
    )
    if len(report.correct_of) > 1:
        kinds = (f"{kind or 'unnamed'} {correct} of {n}" for kind, (correct, n) in report.correct_of.items())
        stdout().print(plain("Correct: " + ", ".join(kinds)))


def _print_cases(rows: list[CaseAgreement]) -> None:
    cells = []
    for row in rows:
        numbers = zip(row.published.values, row.found.values, strict=True)
        both = (f"{theirs:.3f} / {ours:.3f}" for theirs, ours in numbers)
        cells.append((str(row.number), f"{row.n_source_sentences} x {row.n_answer_sentences}", *both))
    print_table("published / ours", ("case", "sentences", "E", "C", "OC", "composite"), cells)


def _print_citations(title: str, found: CitationReport) -> None:
    names = ("changes made by the check", "citations as written", "citations after the check")
    rows = [
        (name, _share(one.precision, one.n_right, one.n_found), _share(one.recall, one.n_right, one.n_expected))
        for name, one in zip(names, (found.changes, found.before, found.after), strict=True)
    ]
    print_table(title, ("", "precision", "recall"), rows)
    print_table(
        "sentences whose citations are just right after the check",
        ("as written", "right after"),
        ((kind, f"{good} of {total}") for kind, (good, total) in found.exact.items()),
    )


def _share(value: float | None, count: int, total: int) -> str:
    return "–" if value is None else f"{value:.3f} ({count} of {total})"


def _citations_json(found: CitationReport, checked: list[SentenceCheck]) -> dict[str, Any]:
    def figures(counts: Counts) -> dict[str, Any]:
        return {**asdict(counts), "precision": counts.precision, "recall": counts.recall}

    return {
        "changes": figures(found.changes),
        "before": figures(found.before),
        "after": figures(found.after),
        "exact": {kind: {"right": good, "n": total} for kind, (good, total) in found.exact.items()},
        "sentences": [asdict(one) for one in checked],
    }
