"""Addresses that ask again: what they say comes back as it was, and what no page wrote is refused in a line."""

import random
from dataclasses import replace
from urllib.parse import parse_qsl, urlsplit

import pytest

from ragqa.errors import ConfigError
from ragqa.settings.config import Config
from ragqa.settings.presets import PRESETS
from ragqa.types import Question
from ragqa.ui.state.address import address_of, base_values, link_of, link_to, query_of
from ragqa.ui.state.settings_values import config_of

RANKINGS, ENCODER = ("bm25", "context", "dense"), "all-MiniLM-L6-v2"


def random_settings(seed):
    """What somebody may have moved on the page, a few settings or all of them."""
    chance = random.Random(seed)
    preset = chance.choice(PRESETS[:4])
    values = base_values(preset, Config(), RANKINGS, ENCODER)
    moved = {
        "fusion": chance.choice(["wsum", "rrf"]),
        "threshold": round(chance.random(), 2),
        "max_drop": round(chance.random(), 2),
        "top_k": chance.randint(1, 30),
        "filter_method": chance.choice(["limits", "expected-f2"]),
        "reranker": chance.choice(["", "ranker-adgm", "some/model with & and ?"]),
        "rerank_depth": chance.randrange(5, 105, 5),
        "rerank_weight": round(chance.random(), 2),
        "generator": chance.choice(["direct", "extractive", "concise", "none", "llm", "vrr"]),
        "model": chance.choice(["gpt-4o-mini", "qwen3:4b", "größer/schön"]),
        "quote_anyway": chance.random() < 0.5,
        "candidates": chance.randint(1, 20),
        "rounds": chance.randint(0, 10),
        "mode": chance.choice(["paper", "script"]),
        **{f"weight_{name}": round(chance.randint(0, 20) * 0.05, 2) for name in RANKINGS},
    }
    some = chance.sample(sorted(moved), chance.randint(0, len(moved)))
    values |= {name: moved[name] for name in some}
    return config_of(values, chance.choice(["rulebook", "encyclopedia"]), Config(), preset.retrieval, RANKINGS)


def settings_of(link):
    """The settings that a page gives which follows the link."""
    preset = next(one for one in PRESETS if one.name == link.preset)
    values = base_values(preset, Config(), RANKINGS, ENCODER) | link.changed
    return config_of(values, link.corpus, Config(), preset.retrieval, RANKINGS)


def followed(address):
    return link_of(dict(parse_qsl(urlsplit(address).query, keep_blank_values=True)))


@pytest.mark.parametrize("seed", range(30))
def test_settings_come_back_from_an_address_and_give_the_same_address(seed):
    config = random_settings(seed)
    asked = Question("What’s “due” & when?\nAnd 100 % of it?", given="A + B" * (seed % 2))
    address = address_of(link_to(asked, config, PRESETS[:4], Config(), RANKINGS, ENCODER))
    link = followed(address)
    found = settings_of(link)
    assert Question(link.question, given=link.text) == asked
    assert address_of(link_to(asked, found, PRESETS[:4], Config(), RANKINGS, ENCODER)) == address
    assert found.fusion.weights == pytest.approx(config.fusion.weights, abs=1e-5)
    same = replace(found, fusion=config.fusion, reranking=config.reranking, generation=config.generation)
    assert same == config
    if config.reranking.model:
        assert found.reranking == config.reranking


def test_an_address_names_only_what_differs_from_the_preset():
    config = Config()
    link = link_to(Question("Who?"), config, PRESETS, config, RANKINGS, ENCODER)
    assert query_of(link) == {"q": "Who?", "corpus": "rulebook", "preset": "RIRAG .70/.20"}
    moved = replace(config, filtering=replace(config.filtering, threshold=0.55))
    assert query_of(link_to(Question("Who?"), moved, PRESETS, config, RANKINGS, ENCODER))["threshold"] == "0.55"
    assert address_of(link).startswith("ask?q=Who%3F&corpus=rulebook")
    assert address_of(replace(link, text="A firm acts.")).startswith("check?")


HOSTILE = {
    "threshold=2": r"'threshold': expected a number in \[0, 1\], found '2'",
    "threshold=nan": "found 'nan'",
    "threshold=1e999": "found '1e999'",
    "threshold=": "'threshold'",
    "threshold=%D9%A1": "expected a number",
    "threshold=0_1": "expected a number",
    "top_k=0": r"expected 1..100",
    "top_k=9999999999999999999999999999999": "expected 1..100",
    "top_k=1.5": "expected 1..100",
    "rounds=-1": r"expected 0..10",
    "fusion=sum": "wsum or rrf",
    "mode=paper%00": "paper or script",
    "quote_anyway=maybe": "yes or no",
    "generator=__import__": "found '__import__'",
    "weight_bm25=-1": "expected a number",
    "weight_../../etc=1": "expected one of",
    "base_url=http://169.254.169.254/": "expected one of q, text",
    "entailment_model=/etc/passwd": "expected one of q, text",
    "<script>alert(1)</script>=1": "expected one of q, text",
    f"q={'x' * 8001}": "at most 8,000 characters, found '8,001'",
    f"corpus={'../' * 40}": "at most 80 characters",
    f"model={'m' * 300}": "at most 200 characters",
    "reranker=a%0Ab": "a name of at most",
}


@pytest.mark.parametrize("query", HOSTILE)
def test_a_hostile_address_is_refused_in_one_line(query):
    with pytest.raises(ConfigError, match=HOSTILE[query]) as refused:
        followed(f"ask?{query}")
    assert len(str(refused.value)) < 500
    assert "\n" not in str(refused.value)
