"""Fifty sentences of the demonstration rulebook, labelled by reading them: does this sentence oblige somebody?

Drawn by ``random.Random(2026).sample`` from the sentences of six or more words, in the order of documents and passages.
An obligation says that somebody must or must not do something ("must", "must not", "no member may"). Permissions,
definitions, scope, consequences, and guidance that says "should" are not. Nothing here may be trained on.
"""

from __future__ import annotations

# (passage id, sentence, is an obligation)
RULEBOOK_SENTENCES: tuple[tuple[str, str, bool], ...] = (
    ("2:8.3.1.(2)", "The decision whether to file belongs to the MLRO alone.", False),
    (
        "6:4.2.2",
        "If a rumour that is precise enough to indicate a leak reaches the market, confidentiality is treated as lost"
        " and the Listed Entity must announce at once.",
        True,
    ),
    (
        "10:2.4.1",
        "Where it is above HMD 250,000, at least 40 per cent must be deferred over three years or more, and must be "
        "capable of reduction or recovery for five years after award in case of misconduct or material misstatement.",
        True,
    ),
    (
        "10:4.1.1",
        "The Compliance Officer must be resident in the Centre, and must not carry out a function that he or she "
        "monitors, unless the firm has fewer than 10 employees and the Commission has agreed.",
        True,
    ),
    (
        "2:5.1.1.(2)",
        "It must not rely on a third party for a Client rated high, nor on a third party that has itself relied on "
        "someone else.",
        True,
    ),
    (
        "4:6.3.2",
        "A Category 1 firm satisfies this Rule by including the cost in its assessment under Rule 6.1.1.",
        False,
    ),
    (
        "8:4.2.2",
        "The Commission may designate a Service Provider as systemic if it supports Critical Functions of 10 or more "
        "Authorised Firms.",
        False,
    ),
    ("10:8.3.2", "No member who took part in the investigation may sit on the panel.", True),
    (
        "9:8.1.2",
        "A Processor is liable only where it has failed in duties addressed to it or has acted against lawful "
        "instructions.",
        False,
    ),
    ("8:7.2.2", "These duties are separate from incident reporting under Section 6.2.", False),
    (
        "5:1.2.2.Guidance.1.",
        "Passwords themselves should not be in the file; a description of how access can be recovered should.",
        False,
    ),
    ("1:1.1.1.Guidance.1.", "They are cited in short form as shown below.", False),
    ("2:4.1.2.(2)", "If it is not, the firm must follow Rule 4.7.1.", True),
    (
        "2:7.1.1.(2)",
        "On confirming a match the firm must, without warning the person, freeze all money and assets it holds for "
        "that person at once, report the freeze to the Commission and the HFIU within one Business Day, and release "
        "nothing except under a licence issued by the competent authority.",
        True,
    ),
    (
        "5:10.1.1",
        "An Authorised Firm must keep records that distinguish at all times the assets held for each Client from "
        "those of any other and from its own.",
        True,
    ),
    (
        "2:4.6.1",
        "For as long as a relationship lasts a Relevant Firm must compare the Client's transactions with the activity"
        " recorded under Rule 4.2.1(3).",
        True,
    ),
    (
        "9:2.2.3",
        "Consent must be given by a clear act, separately for each purpose, and may be withdrawn at any time by means"
        " as easy as those by which it was given.",
        True,
    ),
    (
        "1:2.1.3",
        "An activity is not a Regulated Activity where it is performed solely for members of the same Group, where it"
        " is incidental to the practice of a profession supervised by another public body in the Centre and is not "
        "separately charged for, or where the person acts only as a trustee in bankruptcy, liquidator or receiver "
        "appointed by the Centre Court.",
        False,
    ),
    (
        "9:8.1.2",
        "A person who suffers loss or distress because of a breach may claim compensation from the Controller or "
        "Processor at fault.",
        False,
    ),
    ("6:3.3.2", "The firm must be able to halt all orders of the algorithm within 30 seconds.", True),
    (
        "4:4.2.2",
        "Rule 4.2.1 does not apply to a Category 4 firm without Retail Clients whose capital resources exceed twice "
        "its Capital Requirement, nor to a firm covered by a Group policy that reserves to it the amounts in Rule "
        "4.2.1(1) free of claims by other members of the Group.",
        False,
    ),
    (
        "8:1.2.1.Guidance.1.",
        "Examples are market data, electricity, office cleaning, legal advice on a single matter, membership of a "
        "payment network and correspondent banking.",
        False,
    ),
    (
        "5:3.2.2.Guidance.1.",
        "An Authorised Firm that appoints a Custodian does not guarantee the Custodian's solvency, but it does answer"
        " for the care with which it chose and watched it.",
        False,
    ),
    (
        "7:2.1.3.Guidance.1.",
        "The Commission reads an acceptance assessment as a piece of reasoning and not as a checklist.",
        False,
    ),
    (
        "7:3.1.2",
        "Virtual Assets must not be counted, apart from Stable Tokens issued by an unconnected licensed issuer up to "
        "5 per cent of the requirement.",
        True,
    ),
    (
        "7:5.3.2",
        "Each quarter the firm must send every Client a statement of holdings, transactions, charges and staking "
        "rewards, and every year it must obtain an Auditor's report on its control over Clients' Virtual Assets.",
        True,
    ),
    (
        "10:4.1.3",
        "Within three months of the financial year-end, the firm must send the Commission an annual compliance report"
        " approved by the Governing Body.",
        True,
    ),
    ("2:3.1.1.(2)", "The rating fixes the minimum treatment that the Client receives, as set out in the table.", False),
    ("7:1.1.1", "If a requirement here is stricter, the stricter requirement prevails.", False),
    (
        "2:4.4.1",
        "For a Client rated high a Relevant Firm must, in addition to standard due diligence:\n(a)\tobtain further "
        "information on the Client, its business and its beneficial owners;\n(b)\testablish the source of wealth and "
        "the source of funds, and corroborate both with evidence independent of the Client;\n(c)\tobtain the approval "
        "of a Senior Manager, who must first have read the MLRO's written opinion;\n(d)\trequire the first payment to "
        "come from an account in the Client's name at a regulated bank, or for a Virtual Asset from a wallet which "
        "the Client has proved it controls; and\n(e)\tmonitor the relationship at no less than double the frequency "
        "applied to a comparable standard risk Client.",
        True,
    ),
    ("10:7.3.2", "It lapses after six months unless renewed with fresh reasons.", False),
    (
        "6:1.1.2",
        "Conduct that takes place wholly outside the Centre falls within these Rules where it has, or was likely to "
        "have, an appreciable effect on the price of a Covered Instrument, or where the order that formed part of the"
        " conduct was routed through an Authorised Firm.",
        False,
    ),
    (
        "5:10.1.1",
        "Reconciliations, acknowledgement letters and Client consents must be kept for seven years after the account "
        "to which they relate is closed, in place of the default period in Rule 6.1.1 of the General Rules.",
        True,
    ),
    (
        "9:3.1.2.Guidance.1.",
        "(1) starts when the Controller has the information that it reasonably needs to confirm identity and to find "
        "the data, and a Controller should request that information within five Business Days.",
        False,
    ),
    ("3:3.2.1.(1)", "Approval lapses after 12 months, or sooner if the content becomes out of date.", False),
    (
        "6:3.1.Guidance.1.",
        "Indicators that the Commission weighs when it examines suspected manipulation include: orders amounting to "
        "more than 20 per cent of the day's volume in an instrument; a cancellation rate above 95 per cent that is "
        "concentrated on one side of the book; repeated reversals of position within five minutes; prices that move "
        "sharply before and then fall back after an order is withdrawn; and activity clustered around the time at "
        "which settlement or valuation prices are fixed.",
        False,
    ),
    (
        "1:2.4.1",
        '"Outsourcing" means an arrangement of any form under which a person (the "Service Provider") performs for an'
        " Authorised Firm a process, service or activity that the firm would otherwise undertake itself.",
        False,
    ),
    (
        "7:5.1.1",
        "Clients' Virtual Assets are Client Investments, and Chapter 3 of the Client Assets Rules applies to them "
        "with the changes made by this Chapter.",
        False,
    ),
    (
        "7:4.2.1.(1)",
        "A Client who fails twice must wait 14 days before a third attempt, and the firm must not coach the Client on"
        " the answers.",
        True,
    ),
    (
        "9:3.3.1",
        "An objection on other grounds must be upheld unless the Controller shows a compelling reason that overrides "
        "the person's situation.",
        True,
    ),
    (
        "8:5.1.1",
        "An Impact Tolerance must contain at least a time limit in hours and may add limits on the number of Clients "
        "or the value of transactions affected.",
        True,
    ),
    (
        "2:4.4.1.Guidance.1.",
        "The first asks how the Client came to own what he or she owns overall; the second asks where the particular "
        "money or Virtual Assets used in the relationship came from.",
        False,
    ),
    (
        "8:2.1.1",
        "It must not outsource the responsibilities of its Governing Body, the setting of its risk appetite, or so "
        "much of its activity that it becomes a shell with no effective decision-making in the Centre.",
        True,
    ),
    (
        "10:2.2.1",
        "The Governing Body must:\n(a)\tset strategy, risk appetite and values, and oversee how management carries them"
        " out;\n(b)\tapprove the organisational structure and a written map of each Senior Manager's "
        "responsibilities;\n(c)\tensure that the control functions are independent, adequately resourced and "
        "heard;\n(d)\treview its own effectiveness every year, with an outside assessment at least every three years; "
        "and\n(e)\tplan the succession of its members and of Senior Managers.",
        True,
    ),
    (
        "2:8.1.3",
        "The Governing Body must respond in writing within 30 days, and the firm must send both papers for the year "
        "to the Commission by 31 March following.",
        True,
    ),
    (
        "8:5.2.2",
        "Every year the firm must test whether it can stay within its Impact Tolerances in severe but plausible "
        "scenarios, including at least one cyber attack that corrupts data and backups, one failure of a major "
        "Service Provider and one loss of premises or key staff.",
        True,
    ),
    (
        "10:3.1.2",
        "A firm may fill a vacancy that arises without warning with an unapproved person for up to 12 weeks in any "
        "period of 12 months, if it notifies the Commission within three Business Days and is satisfied that the "
        "person is fit and proper.",
        False,
    ),
    (
        "8:2.1.1",
        "An Authorised Firm remains fully answerable to the Commission and to its Clients for every function that it "
        "outsources.",
        False,
    ),
    (
        "10:5.2.1.Guidance.1.",
        "A breach is likely to be significant if it affected more than 50 Clients, caused loss above HMD 50,000, "
        "lasted longer than six months before discovery, was deliberate, or points to a failure of controls.",
        False,
    ),
    (
        "5:4.1.2.(1)",
        "Physical cash and cheques must be banked on the day of receipt or, if that is not practicable, kept in a "
        "secure place and banked on the next Business Day.",
        True,
    ),
)
