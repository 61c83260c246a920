"""Sixty pairs that differ in one thing that matters, all contradictions, and thirty re-wordings, all entailments.

Written for this project: invented rules and invented or everyday facts, none of them from a data set. The re-wordings
share the premises, so that a model that always says contradiction does not win. Nothing here may be trained on.
A changed bound counts as a contradiction ("at least five" against "at least three"), read as what the rule says; eight
of the sixty are of that kind.
"""

from __future__ import annotations

from ragqa.training.nli_data import LABELS, LabelledPair

# kind: (premise, contradicting hypothesis, entailed hypothesis or "")
CONTRASTS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "number": (
        (
            "A firm must keep each order record for six years.",
            "A firm must keep each order record for four years.",
            "Every order record has to be kept for six years.",
        ),
        (
            "The board must have at least five members.",
            "The board must have at least three members.",
            "There must be five or more members on the board.",
        ),
        (
            "A broker must answer a complaint within 15 Business Days.",
            "A broker must answer a complaint within 30 Business Days.",
            "",
        ),
        (
            "An auditor may serve the same firm for no more than seven consecutive years.",
            "An auditor may serve the same firm for no more than ten consecutive years.",
            "",
        ),
        (
            "A notice under Rule 4.2 must be signed by two directors.",
            "A notice under Rule 4.2 must be signed by four directors.",
            "Two directors have to sign a notice under Rule 4.2.",
        ),
        ("The lighthouse has 214 steps.", "The lighthouse has 241 steps.", "There are 214 steps in the lighthouse."),
        ("The comet returns every 76 years.", "The comet returns every 67 years.", ""),
        ("The bridge stands on nine stone arches.", "The bridge stands on twelve stone arches.", ""),
        (
            "The capital ratio must not fall below 12 per cent.",
            "The capital ratio must not fall below 8 per cent.",
            "The capital ratio has to stay at 12 per cent or above.",
        ),
    ),
    "date": (
        (
            "The annual return is due on 31 March.",
            "The annual return is due on 30 June.",
            "31 March is the day on which the annual return falls due.",
        ),
        ("The rules come into force on 1 January 2021.", "The rules come into force on 1 July 2021.", ""),
        (
            "A licence granted before 2015 stays valid until the end of 2025.",
            "A licence granted before 2015 stays valid until the end of 2023.",
            "",
        ),
        (
            "The Commission published the code on 4 May 2019.",
            "The Commission published the code on 4 May 2017.",
            "The code was published by the Commission on 4 May 2019.",
        ),
        (
            "Fees must be paid on the first Business Day of each quarter.",
            "Fees must be paid on the last Business Day of each quarter.",
            "",
        ),
        (
            "The museum opened in 1893.",
            "The museum opened in 1938.",
            "It was in 1893 that the museum opened.",
        ),
        (
            "The painter was born in 1611 in a fishing village.",
            "The painter was born in 1661 in a fishing village.",
            "",
        ),
        ("The treaty was signed in October 1748.", "The treaty was signed in April 1748.", ""),
    ),
    "amount": (
        (
            "The application fee is 5,000 crowns.",
            "The application fee is 15,000 crowns.",
            "An applicant pays a fee of 5,000 crowns.",
        ),
        (
            "A custodian must hold capital of at least 2 million crowns.",
            "A custodian must hold capital of at least 500,000 crowns.",
            "",
        ),
        (
            "The Commission may impose a fine of up to 250,000 crowns.",
            "The Commission may impose a fine of up to 750,000 crowns.",
            "A fine imposed by the Commission may be as high as 250,000 crowns.",
        ),
        (
            "Transactions above 10,000 crowns must be reported.",
            "Only transactions above 100,000 crowns must be reported.",
            "",
        ),
        (
            "The insurer must pay the first 800 crowns of each claim itself.",
            "The insurer must pay the first 8,000 crowns of each claim itself.",
            "",
        ),
        ("A ticket for the ferry costs 12 francs.", "A ticket for the ferry costs 21 francs.", ""),
        (
            "The cathedral was restored at a cost of 3.5 million francs.",
            "The cathedral was restored at a cost of 5.3 million francs.",
            "Restoring the cathedral cost 3.5 million francs.",
        ),
    ),
    "modal": (
        (
            "A firm must not lend client assets.",
            "A firm may lend client assets.",
            "Client assets must not be lent by a firm.",
        ),
        (
            "A firm may hold records on paper.",
            "A firm must not hold records on paper.",
            "Records are allowed to be held on paper.",
        ),
        (
            "A trustee must attend every meeting.",
            "A trustee need not attend every meeting.",
            "A trustee is required to attend every meeting.",
        ),
        (
            "A small firm is not required to appoint an internal auditor.",
            "A small firm must appoint an internal auditor.",
            "A small firm need not appoint an internal auditor.",
        ),
        (
            "A director must declare any interest in a contract.",
            "A director may choose whether to declare an interest in a contract.",
            "",
        ),
        (
            "A member may not vote on its own expulsion.",
            "A member may vote on its own expulsion.",
            "A member is not allowed to vote on its own expulsion.",
        ),
        ("Client money must be kept in a separate account.", "Client money may be kept in any account.", ""),
        (
            "A firm should consider a second supplier.",
            "A firm must not consider a second supplier.",
            "",
        ),
        (
            "An adviser must disclose commission before the sale.",
            "An adviser should not disclose commission before the sale.",
            "Commission has to be disclosed by an adviser ahead of the sale.",
        ),
        (
            "The Commission may extend the period once.",
            "The Commission must not extend the period.",
            "",
        ),
        ("Visitors must leave their bags at the entrance.", "Visitors may take their bags inside.", ""),
    ),
    "modal strength": (
        (
            "A firm must test its recovery plan every year.",
            "Testing the recovery plan every year is only a recommendation.",
            "A firm is obliged to test its recovery plan every year.",
        ),
        (
            "A firm is encouraged, but not obliged, to publish its policy.",
            "A firm must publish its policy.",
            "Publishing the policy is not compulsory for a firm.",
        ),
        (
            "A report may be sent by e-mail or by post.",
            "A report must be sent by post.",
            "It is permitted to send a report by e-mail.",
        ),
        ("The chair must be independent of the firm.", "It is optional for the chair to be independent.", ""),
    ),
    "negation": (
        (
            "The exemption applies to branches of foreign banks.",
            "The exemption does not apply to branches of foreign banks.",
            "Branches of foreign banks benefit from the exemption.",
        ),
        (
            "An application is complete once the fee has been received.",
            "An application is not complete once the fee has been received.",
            "",
        ),
        (
            "No person other than the custodian may open the vault.",
            "Persons other than the custodian may open the vault.",
            "Only the custodian may open the vault.",
        ),
        (
            "A licence cannot be transferred to another firm.",
            "A licence can be transferred to another firm.",
            "It is impossible to transfer a licence to another firm.",
        ),
        ("Time stops running while the inquiry is open.", "Time keeps running while the inquiry is open.", ""),
        (
            "The register is open to the public.",
            "The public has no access to the register.",
            "Members of the public can look at the register.",
        ),
        ("The river never freezes in winter.", "The river freezes every winter.", ""),
        (
            "The island has no permanent inhabitants.",
            "The island has several hundred permanent inhabitants.",
            "Nobody lives on the island permanently.",
        ),
    ),
    "unit": (
        (
            "A breach must be reported within 24 hours.",
            "A breach must be reported within 24 days.",
            "A report of a breach has to be made inside 24 hours.",
        ),
        (
            "The firm must reconcile client accounts every week.",
            "The firm must reconcile client accounts every month.",
            "Client accounts have to be reconciled weekly by the firm.",
        ),
        ("The plan must be reviewed every three months.", "The plan must be reviewed every three years.", ""),
        ("The tunnel is 14 kilometres long.", "The tunnel is 14 miles long.", ""),
        (
            "The mountain rises 2,300 metres above the sea.",
            "The mountain rises 2,300 feet above the sea.",
            "The height of the mountain is 2,300 metres above the sea.",
        ),
        ("The bell weighs nine tonnes.", "The bell weighs nine kilograms.", ""),
    ),
    "party": (
        (
            "The custodian bears the cost of the audit.",
            "The client bears the cost of the audit.",
            "The cost of the audit falls on the custodian.",
        ),
        (
            "The Commission, not the firm, chooses the expert.",
            "The firm chooses the expert.",
            "It is the Commission that chooses the expert.",
        ),
        (
            "The board approves the budget and the chief executive carries it out.",
            "The chief executive approves the budget and the board carries it out.",
            "",
        ),
        (
            "The seller must notify the buyer before the goods are shipped.",
            "The buyer must notify the seller before the goods are shipped.",
            "",
        ),
        (
            "Only the compliance officer signs the quarterly report.",
            "Only the finance director signs the quarterly report.",
            "The quarterly report is signed by the compliance officer alone.",
        ),
        ("The northern fleet defeated the southern fleet.", "The southern fleet defeated the northern fleet.", ""),
        (
            "Edda Vane founded the observatory and her brother paid for it.",
            "Edda Vane paid for the observatory and her brother founded it.",
            "",
        ),
    ),
}


def contrast_pairs() -> list[LabelledPair]:
    """All pairs, contradictions first; ``source`` is the kind, and "same meaning" for a re-wording."""
    rows = [(kind, row) for kind, of_kind in CONTRASTS.items() for row in of_kind]
    differing = [
        LabelledPair(premise, other, LABELS.index("contradiction"), kind) for kind, (premise, other, _) in rows
    ]
    equal = [
        LabelledPair(premise, same, LABELS.index("entailment"), "same meaning")
        for _, (premise, _, same) in rows
        if same
    ]
    return [*differing, *equal]
