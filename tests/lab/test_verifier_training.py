"""The verifier's pairs: what a claim meets, what a rule's parts meet; folds held out; packed weights."""

import json
import random
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from transformers import BertForSequenceClassification

from ragqa.errors import ModelError
from ragqa.lab.claims import Claim, ClaimedPassage, ClashingWords, Gap, PolicyText, RulePart, fold_of
from ragqa.lab.labelled import LABELS
from ragqa.lab.training.loop import WEIGHTS, export_classifier, load_classifier
from ragqa.lab.training.nli import pairs_sha256
from ragqa.lab.training.packing import pack_adapter, pack_model
from ragqa.lab.training.taught import taught_pairs, unlabelled_pairs
from ragqa.lab.training.verifier import (
    CONTRADICTION,
    ENTAILMENT,
    NEUTRAL,
    VerifierSources,
    claim_pairs,
    evidence,
    gap_pairs,
    gather_claims,
    gather_first,
    policy_pairs,
    sentence_pairs,
)
from ragqa.models import write_manifest
from ragqa.models.inference.torch_engine import load_tokenizer
from ragqa.models.inference.weights import PACKED, is_packed, needs_base, read_weights
from ragqa.types.scores import NliProbabilities
from tests.conftest import DATA as SHARED
from tests.support.tiny_models import write_trainable

SENTENCES = ("Firms keep records for six years.", "Banks lend money to firms.", "Ducks swim on ponds.")


def passage_of(*claims, title="", sentences=SENTENCES):
    return ClaimedPassage("hotpot:1", "wikipedia", sentences, "w", claims, (), title)


def pairs_of(passage, claim, seed=0):
    return list(claim_pairs(passage, claim, random.Random(seed)))


def test_a_claim_meets_what_decides_it_and_more_with_its_label():
    claim = Claim("Records are kept for two years by firms.", "contradicted", "number", (0,))
    for seed in range(20):
        deciding, wider, *others = pairs_of(passage_of(claim, title="Rules"), claim, seed)
        assert deciding.premise.removeprefix("Rules: ") == SENTENCES[0]
        assert SENTENCES[0] in wider.premise
        assert {deciding.label, wider.label} == {CONTRADICTION}
        assert all(pair.label == NEUTRAL and SENTENCES[0] not in pair.premise for pair in others)


def test_a_sentence_that_shares_the_claims_words_is_not_taken_for_undeciding():
    claim = Claim("Banks lend money to firms.", "supported", "plain", (1,))
    twice = passage_of(claim, sentences=(SENTENCES[1], SENTENCES[1]))
    assert {pair.source for seed in range(20) for pair in pairs_of(twice, claim, seed)} == {
        "claims_deciding",
        "claims_wider",
    }


def test_the_title_stands_before_the_evidence_where_there_is_one():
    assert evidence(passage_of(title="Rules"), [2]) == "Rules: Ducks swim on ponds."
    assert evidence(passage_of(), [0, 2]) == f"{SENTENCES[0]} {SENTENCES[2]}"


def test_parts_of_a_rule_are_told_missing_or_clashing():
    parts = tuple(
        RulePart(key, text) for key, text in (("lead", "A Firm must"), ("(a)", "keep records"), ("(b)", "pay"))
    )
    texts = (
        PolicyText("We keep records. We dance.", "partly", ("(b)",), None, (0,)),
        PolicyText(
            "We sing. We keep no records, but pay.", "conflicts", (), ClashingWords("no records", "records"), (1,)
        ),
        PolicyText("We dance.", "absent", (), None, (0,)),
    )
    gap = Gap("adgm:1:1", "A Firm must: (a) keep records; and (b) pay.", "A Firm", "must", "", "", parts, texts)
    found = {(pair.premise, pair.hypothesis): pair.label for pair in gap_pairs(gap)}
    assert found["We keep records.", "A Firm must keep records"] == ENTAILMENT
    assert found["We keep records. We dance.", "A Firm must pay"] == NEUTRAL
    assert found["We sing. We keep no records, but pay.", "A Firm must keep records"] == CONTRADICTION
    assert found["We keep no records, but pay.", "A Firm must keep records"] == CONTRADICTION
    assert found[gap.rule, "We keep no records, but pay."] == CONTRADICTION
    assert ("We keep no records, but pay.", "A Firm must pay") not in found  # whether it is told is not known
    assert found["We dance.", "A Firm must pay"] == NEUTRAL


def test_policies_meet_the_whole_rule_its_parts_and_where_it_has_no_list_its_clauses():
    rule = "A Firm must keep a log of gifts and must review the log every month."
    parts = (RulePart("duty", "keep a log of gifts"), RulePart("duty 2", "review the log every month"))
    clash = ClashingWords("each year", "every month")
    texts = (
        PolicyText("We keep a log of gifts. It is read weekly.", "covered", (), None, (0, 1)),
        PolicyText("We keep a log of gifts. We dance.", "partly", ("duty 2",), None, (0,)),
        PolicyText("We sing. The log of gifts is read each year.", "conflicts", (), clash, (1,)),
    )
    gap = Gap("own:1:1", rule, "A Firm", "must", "", "", parts, texts)
    found = {(pair.premise, pair.hypothesis): pair.label for pair in policy_pairs(gap, random.Random(1))}
    covered, partly, conflicts = (text.text for text in texts)
    assert [found[one, rule] for one in (covered, partly, conflicts)] == [ENTAILMENT, NEUTRAL, CONTRADICTION]
    keep, review = "A Firm must keep a log of gifts", "A Firm must review the log every month"
    assert found[covered, review] == ENTAILMENT
    assert [found[partly, one] for one in (keep, review)] == [ENTAILMENT, NEUTRAL]
    assert found[conflicts, review] == CONTRADICTION
    assert (conflicts, keep) not in found  # whether it is told is not known
    assert found["The log of gifts is read each year.", "review the log every month"] == CONTRADICTION


def test_a_single_sentence_of_a_policy_states_what_it_says_and_clashes_with_nothing_else():
    rule = "A Firm must keep a log of gifts and must review the log every month."
    parts = (RulePart("duty", "keep a log of gifts"), RulePart("duty 2", "review the log every month"))
    texts = (
        PolicyText("We dance. We keep a log of gifts. We review that log every week.", "covered", (), None, (1, 2)),
        PolicyText("We keep a log of gifts.", "partly", ("duty 2",), None, (0,)),
        PolicyText("We sing.", "absent", (), None, (0,)),
    )
    gap = Gap("own:1:1", rule, "A Firm", "must", "", "", parts, texts)
    other = Gap("own:2:1", "Pay.", "", "must", "", "", (), (PolicyText("We paint.", "absent", (), None, ()),))
    pairs = [pair for seed in range(40) for pair in sentence_pairs([gap, other], random.Random(seed))]
    found = {(pair.premise, pair.hypothesis): pair.label for pair in pairs}
    assert found["We keep a log of gifts.", "keep a log of gifts"] == ENTAILMENT
    assert found["We review that log every week.", "review the log every month"] == ENTAILMENT
    assert found["We keep a log of gifts.", "review the log every month"] == NEUTRAL
    assert [found[one, rule] for one in ("We dance.", "We sing.", "We paint.")] == [NEUTRAL] * 3
    assert ("We review that log every week.", "keep a log of gifts") not in found


def test_pairs_of_real_policies_are_all_added_to_a_sample_of_the_written_ones(tmp_path):
    gap = {
        "id": "own:1:1",
        "rule": "A Firm must keep a log.",
        "who": "A Firm",
        "strength": "must",
        "condition": "",
        "deadline": "",
        "parts": [{"key": "duty", "text": "keep a log"}],
        "texts": [
            {"text": f"We keep log {n}.", "label": "covered", "missing": [], "clash": None, "sentences": [0]}
            for n in range(9)
        ],
    }
    (tmp_path / "gaps.jsonl").write_text(json.dumps(gap), encoding="utf-8")
    rows = [{"premise": f"We keep record {n}.", "hypothesis": "Keep records.", "label": "neutral"} for n in range(3)]
    file = tmp_path / "pairs.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    sources = VerifierSources(claims=tmp_path, pairs=(file,), policies=True, n_policies=4)
    train, _ = gather_claims(sources)
    real = [pair for pair in train if "record" in pair.premise]
    assert (len(real), len(train)) == (3, 7)
    assert len(gather_claims(replace(sources, n_policies=None))[0]) > 7


@pytest.mark.data
def test_a_fold_is_held_out_whole():
    folder = SHARED / "claims"
    if not (folder / "claims.jsonl").is_file():
        pytest.skip(f"no labelled claims in {folder}; set RAGQA_DATA to the folder of the data sets")
    train, held_out = gather_claims(VerifierSources(claims=folder, fold=3, passes=1, n_made=100))
    assert len(held_out) == 6 * 169
    assert not {pair.hypothesis for pair in held_out} & {pair.hypothesis for pair in train}
    assert min(Counter(pair.label for pair in train).values()) > 2_500
    assert fold_of("adgm:2:1") == 3


def test_short_general_pairs_come_first_and_no_others(tmp_path):
    texts = ("A firm keeps records.", "A long premise. " * 20)
    rows = [
        {"premise": text, "hypothesis": f"H{n}.", "label": "neutral", "set": "x"} for n in range(9) for text in texts
    ]
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    first = gather_first(VerifierSources(claims=tmp_path, pairs=(file,), n_first=5))
    assert len(first) == 5
    assert {pair.premise for pair in first} == {texts[0]}


def test_a_teacher_reads_claims_and_answers_but_none_of_the_fold(tmp_path):
    answers = tmp_path / "answers.json"
    rows = [
        {
            "Answer": "A Firm must keep records for six years [#SRC:1]. It rests.",
            "Passages": [{"DocumentID": document, "PassageID": "1", "Passage": f"{document} firms. " + SENTENCES[0]}],
        }
        for document in (1, 3)  # of folds 1 and 0
    ]
    answers.write_text(json.dumps(rows), encoding="utf-8")
    claim = Claim("Records are kept for two years by firms.", "contradicted", "number", (0,))
    found = unlabelled_pairs([passage_of(claim, title="Rules")], answers, (), 0, 100, 1)
    assert found == unlabelled_pairs([passage_of(claim, title="Rules")], answers, (), 0, 100, 1)
    assert len(unlabelled_pairs([passage_of(claim)], answers, (), 0, 3, 1)) == 3
    hypotheses = {hypothesis for _, hypothesis in found}
    assert {claim.text, "A Firm must keep records for six years.", "It rests."} < hypotheses
    assert len(hypotheses) > 3  # edited ones
    assert not any("3 firms" in premise for premise, _ in found)


def test_sentences_of_a_corpus_meet_their_nearest_windows_elsewhere():
    texts = [
        [f"Every {firm} must keep all records of orders for {years} years.", f"Note {firm}."]
        for firm, years in zip(
            ("bank", "broker", "fund", "insurer", "dealer", "trader", "agent"), range(7), strict=True
        )
    ]
    texts.append(["The annual report describes remuneration of every director in detail."])
    found = unlabelled_pairs([], None, texts, None, 100, 1)
    assert found == unlabelled_pairs([], None, texts, None, 100, 1)
    assert len(found) > len(texts)
    known = {sentence for sentences in texts for sentence in sentences}
    assert any(claim in known for _, claim in found)
    assert any(claim not in known for _, claim in found)  # edited
    assert not any(claim in window for window, claim in found)
    assert any("Note" in window for window, _ in found)  # a window may hold a neighbour
    assert unlabelled_pairs([], None, texts[:2], None, 100, 1) == []  # too few to be retrieved from


def test_what_is_learnt_of_a_teacher_are_its_probabilities():
    said = NliProbabilities(0.7, 0.1, 0.2)
    teacher = SimpleNamespace(predict=lambda pairs: [said] * len(pairs))
    steps = list(taught_pairs([("P", str(n)) for n in range(300)], teacher))
    assert [len(step) for step in steps] == [256, 44]
    assert (steps[0][0].label, steps[0][0].taught) == (CONTRADICTION, (0.7, 0.1, 0.2))
    assert pairs_sha256(steps[1]) != pairs_sha256([replace(pair, taught=()) for pair in steps[1]])


# Packed weights


@pytest.fixture
def trained(tmp_path):
    """A minute base and one trained from it: its matrices differ, its word embeddings do not."""
    from safetensors.numpy import load_file, save_file

    base = write_trainable(tmp_path / "base", ["firms"], BertForSequenceClassification, num_labels=3)
    folder = write_trainable(tmp_path / "trained", ["firms"], BertForSequenceClassification, num_labels=3)
    weights, own = load_file(base / WEIGHTS), load_file(folder / WEIGHTS)
    words = "bert.embeddings.word_embeddings.weight"
    changed = {name: tensor * np.float32(0.9) for name, tensor in own.items()}
    save_file(changed | {words: weights[words]}, folder / WEIGHTS, metadata={"format": "pt"})
    write_manifest(folder, "nli", WEIGHTS)
    return base, folder


def test_packed_weights_are_nearly_those_that_were_packed(trained, tmp_path):
    base, folder = trained
    out = tmp_path / "packed"
    assert pack_model(folder, base, out) == ("bert.embeddings.word_embeddings.weight",)
    assert is_packed(out)
    assert not is_packed(folder)
    before, after = read_weights(folder), read_weights(out)
    assert set(before) == set(after)
    for name, tensor in before.items():
        assert np.allclose(tensor, after[name], atol=np.abs(tensor).max() / 100), name


def test_an_adapter_of_a_packed_model_is_read_with_it_and_with_no_other(trained, tmp_path):
    from safetensors.numpy import save_file

    base, folder = trained
    packed, out = tmp_path / "packed", tmp_path / "changed"
    pack_model(folder, base, packed)
    known, chance = read_weights(packed), np.random.default_rng(1)
    changes = {
        name: chance.normal(size=(len(one), 2)) @ chance.normal(size=(2, one.shape[1]))
        for name, one in known.items()
        if one.ndim == 2 and "layer." in name
    }
    further = {name: np.ascontiguousarray(one + changes.get(name, 0), dtype="f4") for name, one in known.items()}
    save_file(further, folder / WEIGHTS)
    write_manifest(folder, "nli", WEIGHTS)
    with pytest.raises(ModelError, match="expected --out beside the base"):
        pack_adapter(folder, packed, 2, tmp_path / "elsewhere" / "changed")
    assert pack_adapter(folder, packed, 2, out) < 0.01
    assert needs_base(out)
    assert not (out / "tokenizer.json").exists()
    further_trained = tmp_path / "further"
    further_trained.mkdir()
    export_classifier(load_classifier(out, LABELS, dropout=0.0, seed=1), out, further_trained, "nli")
    words = [load_tokenizer(one).get_vocab() for one in (packed, out, further_trained)]
    assert words[0] == words[1] == words[2]  # an adapter has the words of its base
    after = read_weights(out)
    assert set(after) == set(further)
    for name, tensor in further.items():
        assert np.allclose(tensor, after[name], atol=np.abs(tensor).max() / 100), name
    pack_model(folder, base, packed)  # has other weights by now
    with pytest.raises(ModelError, match="expected sha256"):
        read_weights(out)


def test_the_mean_with_earlier_weights_is_packed_and_others_are_refused(trained, tmp_path):
    base, folder = trained
    pack_model(folder, base, tmp_path / "packed", earlier=base, share=0.75)
    before, begun, after = (read_weights(path) for path in (folder, base, tmp_path / "packed"))
    for name, tensor in after.items():
        mean = 0.75 * before[name] + 0.25 * begun[name]
        assert np.allclose(tensor, mean, atol=np.abs(mean).max() / 100), name
    other = write_trainable(tmp_path / "other", ["firms", "banks"], BertForSequenceClassification, num_labels=3)
    with pytest.raises(ModelError, match="name what it began with"):
        pack_model(folder, base, tmp_path / "packed", earlier=other)


def test_a_packed_model_refuses_another_base_and_another_place(trained, tmp_path):
    from safetensors.numpy import load_file, save_file

    base, folder = trained
    with pytest.raises(ModelError, match="expected --out beside the base"):
        pack_model(folder, base, tmp_path / "elsewhere" / "packed")
    pack_model(folder, base, tmp_path / "packed")
    save_file({name: tensor + 1 for name, tensor in load_file(base / WEIGHTS).items()}, base / WEIGHTS)
    with pytest.raises(ModelError, match="these are others: expected sha256"):
        read_weights(tmp_path / "packed")
    (tmp_path / "packed" / PACKED).write_bytes(b"no")
    with pytest.raises(ModelError, match="cannot be read"):
        read_weights(tmp_path / "packed")
