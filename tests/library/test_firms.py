"""Who is meant: parties of rules, and the name that policies give their firm."""

from ragqa.library.firms import addressed_by, name_of_firm
from ragqa.library.register import register
from ragqa.types import Passage
from tests.support.effort import grows_no_faster


def parties_of(*texts):
    passages = [Passage(f"1:{n}", "1", text, "Rules", number=str(n)) for n, text in enumerate(texts, start=1)]
    rows = tuple(register(passages))
    found = addressed_by(rows)
    return [found[row.obligation_id] for row in rows]


def test_a_row_binds_its_own_party_if_others_bind_it_too_else_the_usual_one():
    assert (
        parties_of(
            "A clearing member must keep a log of margins.",
            "Each clearing member must file a report every month.",
            "Logs must be kept for six years by the clearing member.",
            "An auditor must sign the report.",
        )
        == ["clearing member"] * 4
    )
    assert parties_of("A bank must lock the vault.") == [""]


def test_the_firm_is_the_name_that_policies_have_most_often_and_no_rule_has():
    policies = [
        "At Northgate, the Security Officer of Northgate locks the vault. Write to vault@northgate.example.",
        "Every night Northgate checks www.northgate.example/vault, and the Security Officer reports to Northgate.",
    ]
    rules = ["A bank must name a Security Officer."]
    assert name_of_firm(policies, rules) == "Northgate"
    assert name_of_firm(policies, [*rules, "Northgate must pay."]) == ""
    assert name_of_firm(["We lock the vault. The vault is ours."], rules) == ""


def test_a_long_word_of_a_policy_is_read_once():
    assert grows_no_faster(lambda size: name_of_firm(["x" * size], []), 4_000)
