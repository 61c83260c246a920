"""The verifier's training pairs: labelled claims and policies, general pairs, and pairs made by rule.

A claim is paired with the sentences that decide it, with its whole passage or a window of neighbours, and with another
sentence or the title that does not decide it. The folds are those of `ragqa.lab.claims`; `ragqa.lab.training.nli`
trains.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ragqa.english.clauses import clauses
from ragqa.english.reading import read
from ragqa.english.sentences import split_sentences
from ragqa.lab.claims import Claim, ClaimedPassage, Gap, PolicyText, fold_of, read_claims, read_gaps
from ragqa.lab.labelled import LABELS, LabelledPair, read_pairs
from ragqa.lab.training.loop import Progress
from ragqa.lab.training.model_folder import ModelCard
from ragqa.lab.training.nli import SET_SHARES, NliTraining, nli_card, weighed
from ragqa.lab.training.nli_made_pairs import made_pairs
from ragqa.lab.training.taught import unlabelled_pairs
from ragqa.lab.written import corpus_texts, written_gaps, written_passages
from ragqa.scoring.verdicts.windows import covers

CONTRADICTION, ENTAILMENT, NEUTRAL = (LABELS.index(label) for label in LABELS)
LABEL_OF_CLAIM = {"supported": ENTAILMENT, "contradicted": CONTRADICTION, "unsupported": NEUTRAL}
SHORT = 230  # characters of a pair: a third of the tokens of a claim with its passage
WHOLE = 0.6  # chance that the wider evidence is the whole passage, not a window
UNDECIDING = 0.6  # chance of a pair with a sentence that does not decide
LITTLE = 0.6  # share of the deciding sentences' cover up to which another sentence decides nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifierSources:
    """What to train on; ``fold`` (0 to 4) is held out, None trains on all."""

    claims: Path  # the folder of claims.jsonl and gaps.jsonl
    pairs: tuple[Path, ...] = ()  # general pairs, as `ragqa.lab.training.nli.NliSources.pairs`, or of policies
    fold: int | None = None
    passes: int = 2  # over the claims, with new windows drawn in each
    n_general: int = 5_000
    n_made: int = 2_000
    written: Path | None = None  # RAGQA_DATA, to use our own claims about its passages, and our gaps
    answers: Path | None = None  # JSON list of {Answer, Passages} whose sentences a teacher labels, too
    n_taught: int = 0  # pairs labelled by a teacher
    n_first: int = 0  # short general pairs, seen before all others, from which a backbone learns the task
    policies: bool = False  # only pairs of policies and rules, for the model that reads policies
    n_policies: int | None = None  # of the written ones, at most; all of `pairs` are added
    seed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifierTraining(NliTraining):
    """The settings of the shipped verifier; a learning rate of 0 becomes that which suits ``rank``."""

    batch_size: int = 32
    learning_rate: float = 0.0  # 6e-4 for low-rank factors, 7e-5 for the weights themselves
    warmup_steps: int = 60
    max_tokens: int = 256
    dropout: float = 0.0
    checkpoint_every: int = 150

    def __post_init__(self) -> None:
        if not self.learning_rate:
            object.__setattr__(self, "learning_rate", 6e-4 if self.rank else 7e-5)


def gather_first(sources: VerifierSources) -> list[LabelledPair]:
    """At most ``n_first`` general pairs of at most `SHORT` characters, which are seen first. Raises CorpusError."""
    short = [pair for path in sources.pairs for pair in read_pairs(path) if pair.n_chars <= SHORT]
    known = weighed(short, SET_SHARES, sources.seed)
    return random.Random(sources.seed).sample(known, min(sources.n_first, len(known)))


def gather_unlabelled(sources: VerifierSources) -> list[tuple[str, str]]:
    """The pairs for a teacher to label, without the held-out fold. Raises CorpusError."""
    passages = [one for one in read_claims(sources.claims / "claims.jsonl") if fold_of(one.id) != sources.fold]
    texts: tuple[tuple[str, ...], ...] = ()
    if sources.written:
        passages += (one.claimed for one in written_passages(sources.written, sources.fold))
        texts = corpus_texts(sources.written, sources.fold)
    return unlabelled_pairs(passages, sources.answers, texts, sources.fold, sources.n_taught, sources.seed)


def gather_claims(sources: VerifierSources) -> tuple[list[LabelledPair], list[LabelledPair]]:
    """(training pairs; claims of the held-out fold, each with its whole passage). Raises CorpusError."""
    gaps = read_gaps(sources.claims / "gaps.jsonl")
    learnt_gaps = [gap for gap in gaps if fold_of(gap.id) != sources.fold]
    learnt_gaps += written_gaps() if sources.written else ()
    if sources.policies:
        chance = random.Random(sources.seed)
        train = [pair for gap in learnt_gaps for pair in policy_pairs(gap, chance)]
        train += sentence_pairs(learnt_gaps, chance)
        if sources.n_policies is not None:
            train = chance.sample(train, min(len(train), sources.n_policies))
        train += (pair for path in sources.pairs for pair in read_pairs(path))
        return train, [pair for gap in written_gaps(is_test=True) for pair in policy_pairs(gap, chance)]
    passages = read_claims(sources.claims / "claims.jsonl")
    learnt = [passage for passage in passages if fold_of(passage.id) != sources.fold]
    if sources.written:
        learnt += (one.claimed for one in written_passages(sources.written, sources.fold))
    chance = random.Random(sources.seed)
    train = []
    for _ in range(sources.passes):
        for passage in learnt:
            train += (pair for claim in passage.claims for pair in claim_pairs(passage, claim, chance))
    train += sources.passes * [pair for gap in learnt_gaps for pair in gap_pairs(gap)]
    general = [pair for path in sources.pairs for pair in read_pairs(path)]
    general = weighed(general, SET_SHARES, sources.seed)
    train += chance.sample(general, min(sources.n_general, len(general)))
    train += made_pairs(_documents(learnt), sources.n_made, sources.seed)
    held_out = [
        LabelledPair(evidence(passage, range(len(passage.sentences))), claim.text, LABEL_OF_CLAIM[claim.label], "held")
        for passage in passages
        if fold_of(passage.id) == sources.fold
        for claim in passage.claims
    ]
    return train, held_out


def evidence(passage: ClaimedPassage, indexes: Sequence[int], with_title: bool = True) -> str:
    """These sentences of a passage, after its title if it has one."""
    text = " ".join(passage.sentences[n] for n in indexes)
    return f"{passage.title}: {text}" if with_title and passage.title else text


def claim_pairs(passage: ClaimedPassage, claim: Claim, chance: random.Random) -> Iterator[LabelledPair]:
    """The claim with its deciding sentences, with more of its passage, and perhaps with undeciding text."""
    label, n = LABEL_OF_CLAIM[claim.label], len(passage.sentences)
    deciding = sorted(claim.deciding)
    wider = range(n)
    if chance.random() >= WHOLE:
        wider = range(max(0, deciding[0] - chance.randrange(2)), min(n, deciding[-1] + 1 + chance.randrange(2)))
    yield LabelledPair(evidence(passage, deciding, chance.random() < 0.5), claim.text, label, "claims_deciding")
    yield LabelledPair(evidence(passage, wider, chance.random() < 0.8), claim.text, label, "claims_wider")
    others = list(_undeciding(passage, claim))
    if others and chance.random() < UNDECIDING:
        yield LabelledPair(chance.choice(others), claim.text, NEUTRAL, "claims_undeciding")


def _undeciding(passage: ClaimedPassage, claim: Claim) -> Iterator[str]:
    """The title, and sentences with few of the claim's words compared with the deciding ones."""
    said = read(claim.text).content
    known = read(evidence(passage, claim.deciding)).content
    if passage.title:
        yield passage.title
    for n, sentence in enumerate(passage.sentences):
        shared = len(said & read(sentence).content)
        if n not in claim.deciding and (claim.label == "unsupported" or shared <= LITTLE * len(said & known)):
            yield evidence(passage, [n])


def gap_pairs(gap: Gap) -> Iterator[LabelledPair]:
    """Each part of the rule, after its lead-in, with each policy: stated, missing or clashing.

    A clashing sentence is also paired with its part alone, and as a claim with the rule.
    """
    for policy in gap.texts:
        told, clashing = _deciding(policy)
        for hypothesis, label in _labelled_parts(gap, policy):
            own = clashing if label == CONTRADICTION else []
            for premise in dict.fromkeys((policy.text, told or policy.text, *own)):
                yield LabelledPair(premise, hypothesis, label, "gaps")
        yield from (LabelledPair(gap.rule, one, CONTRADICTION, "gaps") for one in clashing)


LABEL_OF_POLICY = {"covered": ENTAILMENT, "partly": NEUTRAL, "conflicts": CONTRADICTION, "absent": NEUTRAL}
TOLD = 0.5  # chance that a part that is stated also meets the deciding sentences alone
STATES = 0.5  # share of a part's words in a deciding sentence, from which that sentence alone states the part
FOREIGN = 0.3  # share of the undeciding sentences that are of another rule's policies
SHARED = 0.5  # share of a missing part's words in a clause, from which it is not known whether the clause is stated


def policy_pairs(gap: Gap, chance: random.Random) -> list[LabelledPair]:
    """Policies (premise) with the rule, each of its parts after the lead-in and, without a list, each clause.

    Entailment: the policy states it, or is stricter; contradiction: it clashes; neutral: it does not state it.
    """
    has_list = any(part.key == "lead" for part in gap.parts)
    found: dict[tuple[str, str], int] = {}
    for policy in gap.texts:
        told, clashing = _deciding(policy)
        premises = (policy.text, told) if told and policy.label != "absent" else (policy.text,)
        found |= {(premise, gap.rule): LABEL_OF_POLICY[policy.label] for premise in premises}
        for hypothesis, label in _labelled_parts(gap, policy):
            found[policy.text, hypothesis] = label
            if label == CONTRADICTION:
                found |= {(one, hypothesis): label for one in clashing}
            elif len(premises) > 1 and chance.random() < TOLD:
                found[told, hypothesis] = label
        missing = [part.text for part in gap.parts if part.key in policy.missing]
        for clause in () if has_list else clauses(gap.rule):
            known = _label_of_clause(policy, clause.span.text, missing)
            if known is not None:
                found[policy.text, clause.text] = known
    return [LabelledPair(premise, hypothesis, label, "policies") for (premise, hypothesis), label in found.items()]


def sentence_pairs(gaps: Sequence[Gap], chance: random.Random) -> list[LabelledPair]:
    """Single sentences of policies (premise) with rules and their parts, so that a short premise is no sign of a clash.

    A sentence that does not decide, of the rule's policies or of another rule's, states nothing. One that decides
    states the parts whose words it has, and none that is missing.
    """
    found: dict[tuple[str, str], int] = {}
    for number, gap in enumerate(gaps):
        for policy in gap.texts:
            sentences, parts = [span.text for span in split_sentences(policy.text)], list(_labelled_parts(gap, policy))
            deciding = () if policy.label == "absent" else policy.sentences
            idle = [text for n, text in enumerate(sentences) if n not in deciding]
            another = gaps[(number + chance.randrange(1, max(2, len(gaps)))) % len(gaps)]
            other = [span.text for span in split_sentences(chance.choice(another.texts).text)]
            premise = chance.choice(other if not idle or chance.random() < FOREIGN else idle)
            found[premise, chance.choice([gap.rule, *(part for part, _ in parts)])] = NEUTRAL
            told = [sentences[n] for n in deciding if n < len(sentences) and not policy.clash]
            for hypothesis, label in parts:
                near = covers(hypothesis, [read(text).content for text in told])
                if near and (label == NEUTRAL or max(near) >= STATES):
                    found[told[near.index(max(near))], hypothesis] = label
    return [LabelledPair(premise, hypothesis, label, "sentences") for (premise, hypothesis), label in found.items()]


def _deciding(policy: PolicyText) -> tuple[str, list[str]]:
    """The sentences that decide, as one text, and those with the clashing words."""
    sentences = [span.text for span in split_sentences(policy.text)]
    told = " ".join(sentences[n] for n in policy.sentences if n < len(sentences))
    return told, [one for one in sentences if policy.clash and policy.clash.policy in one]


def _labelled_parts(gap: Gap, policy: PolicyText) -> Iterator[tuple[str, int]]:
    """Each part of the rule after its lead-in, with its label by this policy where that is known."""
    lead = next((part.text for part in gap.parts if part.key == "lead"), "")
    for part in gap.parts:
        label = None if part.key == "lead" else _label_of_part(policy, part.key, part.text)
        if label is not None:
            yield f"{lead} {part.text}".strip(), label


def _label_of_clause(policy: PolicyText, clause: str, missing: Sequence[str]) -> int | None:
    """The label of a rule's clause; None if it is unknown."""
    if policy.label == "absent":
        return NEUTRAL
    if policy.clash:
        return CONTRADICTION if policy.clash.rule in clause or clause in policy.clash.rule else None
    if any(part in clause or clause in part for part in missing):
        return NEUTRAL
    words = set(clause.split())
    shared = any(len(set(part.split()) & words) > SHARED * len(set(part.split())) for part in missing)
    return None if shared else ENTAILMENT


def _label_of_part(policy: PolicyText, key: str, text: str) -> int | None:
    """The label of this part; None if it is unknown which part the clash concerns."""
    if policy.label == "absent" or key in policy.missing:
        return NEUTRAL
    if policy.clash is None:
        return ENTAILMENT
    return CONTRADICTION if policy.clash.rule in text or text in policy.clash.rule else None


def _documents(passages: Sequence[ClaimedPassage]) -> list[list[str]]:
    """The sentences of passages, a hundred passages at a time in the order of their ids."""
    ordered = sorted(passages, key=lambda passage: passage.id)
    groups = [ordered[start : start + 100] for start in range(0, len(ordered), 100)]
    return [[sentence for passage in group for sentence in passage.sentences] for group in groups]


def verifier_card(
    name: str, training: NliTraining, pairs: Sequence[LabelledPair], last: Progress, command: str
) -> ModelCard:
    """The card of a verifier trained on ``pairs``; ``last`` is the training's last report."""
    held_out = "not measured: nothing was held out" if last.held_out is None else f"{last.held_out:.4f}"
    return replace(
        nli_card(name, training, pairs, last, command),
        title=f"{name}: does the evidence prove a claim, prove it false, or neither?",
        use="A three-way cross-encoder: premise is evidence (a sentence, an item of a listing, neighbours, a short "
        "passage, a title before it as context), hypothesis a claim; entailment is supported, neutral unsupported. "
        "Used by verdicts. English only.",
        figures=[("what", "figure"), ("claims held out, whole passage as evidence, most probable label", held_out)],
        figures_note="Verdicts as shipped: `ragqa eval claims FILE --verdict-model FOLDER`.",
        further="Claims and policies are those of RAGQA_DATA/claims and (`--written`) of `ragqa/lab/data`, written "
        "for this project; no sentence is in the folder. A "
        "claim meets the sentences that decide it, its passage or a window, and a sentence or title that does not "
        "decide it; each part of a rule meets policies that tell it, miss it or contradict it.",
    )


def policies_card(
    name: str, training: NliTraining, pairs: Sequence[LabelledPair], last: Progress, command: str
) -> ModelCard:
    """The card of a reader of policies trained on ``pairs``; ``last`` is the training's last report."""
    return replace(
        nli_card(name, training, pairs, last, command),
        title=f"{name}: does a policy state a rule, clash with it, or neither?",
        use="A three-way cross-encoder: premise is a passage of a policy, hypothesis a rule, an item of it after its "
        "lead-in, or a clause; entailment is stated, or stricter than asked; contradiction clashes; neutral is not "
        "stated. Used by `ragqa gaps`. English only.",
        figures=[
            ("what", "figure"),
            ("pairs of the writers held out, most probable label", f"{last.held_out:.4f}" if last.held_out else "none"),
        ],
        figures_note="Verdicts as shipped: `ragqa eval claims FILE` with gaps.jsonl, or RAGQA_DATA/claims/gaps.jsonl.",
        further="Rules and policies are those of RAGQA_DATA/claims and (`--written`) of `ragqa/lab/data`, written for "
        "this project; no sentence is in the folder.",
    )
