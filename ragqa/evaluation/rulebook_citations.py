"""Sixty sentences about the demonstration rulebook with right, wrong and missing citations, labelled by reading.

Written for this project as a language model words an answer, three to a group of three passages that stand near each
other in the rulebook. What is right was decided by meaning, before any model saw the sentences: a passage is right
where a reader who has only it would agree with the sentence. 22 cite what is right, 22 something wrong (5 of these say
what no passage says), 16 nothing (3 of these likewise). Nothing here may be trained on.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LabelledSentence:
    """A sentence, the passages of its group it cites, and those it should cite; numbers from 1."""

    text: str
    written: tuple[int, ...]
    right: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CitationGroup:
    """Passages of the rulebook by id, and sentences about them."""

    passage_ids: tuple[str, ...]
    sentences: tuple[LabelledSentence, ...]


RULEBOOK_CITATIONS: tuple[CitationGroup, ...] = (
    CitationGroup(
        ("1:2.1.1", "1:2.1.3", "1:2.1.4"),
        (
            LabelledSentence("A firm whose Licence is suspended is still an Authorised Firm.", (1,), (1,)),
            LabelledSentence("Work done only for companies of the same Group is not a Regulated Activity.", (1,), (2,)),
            LabelledSentence(
                "For a branch, the Governing Body is the equivalent body of its head office, including "
                "any committee that formally oversees the branch.",
                (),
                (3,),
            ),
        ),
    ),
    CitationGroup(
        ("1:2.4.6", "1:3.1.1.(1)", "1:3.1.1.(2)"),
        (
            LabelledSentence(
                "Nobody may carry on a Regulated Activity in the Centre without a Licence that covers the activity.",
                (2,),
                (2,),
            ),
            LabelledSentence(
                "To be exempt, a foreign regulated firm that visits Market Counterparties must tell the "
                "Commission of each visit at least five Business Days beforehand.",
                (2,),
                (3,),
            ),
            LabelledSentence("Saturdays are not Business Days.", (), (1,)),
        ),
    ),
    CitationGroup(
        ("2:2.1.2.Guidance.1.", "2:3.1.1.(1)", "2:3.1.3"),
        (
            LabelledSentence(
                "Every Client must be rated low, standard or high risk before the relationship begins.",
                (2,),
                (2,),
            ),
            LabelledSentence(
                "Only the Senior Manager who may accept high risk Clients can take a Client out of the high rating.",
                (2,),
                (3,),
            ),
            LabelledSentence("A Client's rating must be reviewed at least once a year.", (3,), ()),
        ),
    ),
    CitationGroup(
        ("2:4.5.1", "2:4.6.1", "2:4.7.1"),
        (
            LabelledSentence("If due diligence cannot be completed, the firm must not open an account.", (3,), (3,)),
            LabelledSentence(
                "For a Client rated low, beneficial owners may as a rule be verified from a public register alone.",
                (2,),
                (1,),
            ),
            LabelledSentence(
                "The thresholds of automated monitoring rules must be justified at least every 12 months.",
                (),
                (2,),
            ),
        ),
    ),
    CitationGroup(
        ("3:2.2.2.(3)", "3:2.2.2.Guidance.1.", "3:2.3.1"),
        (
            LabelledSentence(
                "A firm must not offer an individual a bonus for agreeing to be reclassified.",
                (1,),
                (1,),
            ),
            LabelledSentence(
                "A government may be classified as a Market Counterparty if it was told in advance and "
                "has not objected within five Business Days.",
                (1,),
                (3,),
            ),
            LabelledSentence(
                "A person who has long traded shares counts as experienced in options without a fresh assessment.",
                (2,),
                (),
            ),
        ),
    ),
    CitationGroup(
        ("3:5.1.1.(2)", "3:5.1.2", "3:5.1.3"),
        (
            LabelledSentence(
                "Without the information that a suitability assessment needs, the firm must not make a recommendation.",
                (2,),
                (2,),
            ),
            LabelledSentence("The suitability report must state the disadvantages.", (2,), (3,)),
            LabelledSentence(
                "A Professional Client may normally be assumed to be able to bear the loss financially.",
                (),
                (1,),
            ),
        ),
    ),
    CitationGroup(
        ("4:2.2.1.(2)", "4:2.2.2", "4:2.2.2.Guidance.1."),
        (
            LabelledSentence("Foreign exchange losses may be deducted from annual expenditure.", (1,), (1,)),
            LabelledSentence(
                "Premises that a parent provides free of rent count as expenditure at a market price.",
                (1,),
                (3,),
            ),
            LabelledSentence(
                "The Expenditure Requirement must be recalculated when spending over the latest quarter, "
                "times four, exceeds the figure in use by more than a fifth.",
                (),
                (2,),
            ),
        ),
    ),
    CitationGroup(
        ("4:4.1.5", "4:4.2.1.(1)", "4:4.2.1.(2)"),
        (
            LabelledSentence(
                "A Category 4 firm must hold professional indemnity insurance of at least HMD 1,500,000 "
                "for a single claim.",
                (2,),
                (2,),
            ),
            LabelledSentence(
                "The insurer must give the Commission 30 days' notice before it cancels the policy.",
                (2,),
                (3,),
            ),
            LabelledSentence("The professional indemnity policy must be renewed every three years.", (), ()),
        ),
    ),
    CitationGroup(
        ("5:2.1.2.(2)", "5:2.1.3", "5:2.1.4"),
        (
            LabelledSentence(
                "A Retail Client must not transfer full ownership of its investments to a firm as security.",
                (2,),
                (2,),
            ),
            LabelledSentence("Money that has been paid to the Client is no longer Client Money.", (), (3,)),
            LabelledSentence(
                "Such an agreement ends five Business Days after the Client withdraws its consent.",
                (3,),
                (1,),
            ),
        ),
    ),
    CitationGroup(
        ("5:4.1.3", "5:4.2.1.(1)", "5:4.2.1.(2)"),
        (
            LabelledSentence("A central bank is an Eligible Bank.", (2,), (2,)),
            LabelledSentence(
                "At most a quarter of a firm's Client Money may be held with banks of its own Group.",
                (2,),
                (3,),
            ),
            LabelledSentence("Own money that is needed to keep a Client Account open may stay in it.", (), (1,)),
        ),
    ),
    CitationGroup(
        ("6:2.1.Guidance.1.", "6:2.2.1.(1)", "6:2.2.1.(2)"),
        (
            LabelledSentence(
                "Whoever holds Inside Information must not use it to sell a Covered Instrument to which it relates.",
                (2,),
                (2,),
            ),
            LabelledSentence(
                "A person who dealt while holding the information is presumed to have used it.",
                (2,),
                (3,),
            ),
            LabelledSentence(
                "An order above 15 per cent of the average daily turnover will normally be regarded as "
                "likely to move the price.",
                (),
                (1,),
            ),
        ),
    ),
    CitationGroup(
        ("6:4.1.3", "6:4.2.1.(1)", "6:4.2.1.(2)"),
        (
            LabelledSentence(
                "At least two members of the Governing Body must take the decision to delay an announcement.",
                (3,),
                (3,),
            ),
            LabelledSentence(
                "A Listed Entity must correct an announcement of which a material part turns out to be wrong.",
                (2,),
                (1,),
            ),
            LabelledSentence(
                "A Listed Entity may delay an announcement only with the Commission's prior consent.",
                (2,),
                (),
            ),
        ),
    ),
    CitationGroup(
        ("7:2.2.1", "7:2.2.2", "7:2.3.1"),
        (
            LabelledSentence(
                "A firm must not offer a stablecoin that rests on an algorithm instead of reserves.",
                (2,),
                (2,),
            ),
            LabelledSentence("Each Accepted Virtual Asset must be reviewed twice a year.", (), (3,)),
            LabelledSentence(
                "As a rule a firm must not advertise a Virtual Asset that is built to hide who sends a transfer.",
                (3,),
                (1,),
            ),
        ),
    ),
    CitationGroup(
        ("7:4.3.2", "7:5.1.1", "7:5.1.2"),
        (
            LabelledSentence(
                "Clients' Virtual Assets must be kept at addresses apart from the firm's own.",
                (2,),
                (2,),
            ),
            LabelledSentence(
                "A firm must not stake a Client's Virtual Assets unless the Client has agreed to that use "
                "in writing beforehand.",
                (3,),
                (3,),
            ),
            LabelledSentence("A firm may reward a Retail Client for referring a friend who opens an account.", (), ()),
        ),
    ),
    CitationGroup(
        ("8:2.3.1", "8:2.3.2", "8:3.1.1.(1)"),
        (
            LabelledSentence(
                "The register of Outsourcing must reach the Commission by 31 March each year.",
                (2,),
                (2,),
            ),
            LabelledSentence(
                "The Commission must be notified at least 20 Business Days before a Critical Function is outsourced.",
                (1,),
                (3,),
            ),
            LabelledSentence("The register must show where data is stored.", (), (1,)),
        ),
    ),
    CitationGroup(
        ("8:4.2.1", "8:4.2.2", "8:5.1.1"),
        (
            LabelledSentence("An Impact Tolerance must contain at least a time limit in hours.", (3,), (3,)),
            LabelledSentence(
                "A Service Provider that supports Critical Functions of ten Authorised Firms may be "
                "designated as systemic.",
                (),
                (2,),
            ),
            LabelledSentence(
                "A firm whose provider has been designated as systemic must end the contract within 40 Business Days.",
                (2,),
                (),
            ),
        ),
    ),
    CitationGroup(
        ("9:2.2.1", "9:2.2.2", "9:2.2.3"),
        (
            LabelledSentence(
                "Personal Data may be handled where that is needed to protect somebody's life.",
                (1,),
                (1,),
            ),
            LabelledSentence("Profiling of a child under 16 cannot rest on legitimate interest.", (3,), (2,)),
            LabelledSentence("Withdrawing consent must be as easy as giving it.", (), (3,)),
        ),
    ),
    CitationGroup(
        ("9:4.1.1", "9:4.1.2", "9:4.2.1"),
        (
            LabelledSentence("Default settings must be those that disclose the least data.", (2,), (2,)),
            LabelledSentence("A Processor may be appointed only under a written contract.", (3,), (3,)),
            LabelledSentence("Security measures must be reviewed by an external auditor every 12 months.", (), ()),
        ),
    ),
    CitationGroup(
        ("10:2.2.2", "10:2.2.3", "10:2.3.1"),
        (
            LabelledSentence(
                "The responsibilities map must be updated within 10 Business Days of a change.",
                (1,),
                (1,),
            ),
            LabelledSentence(
                "A member of the Governing Body with a personal interest in a matter must not vote on it.",
                (),
                (3,),
            ),
            LabelledSentence(
                "A Senior Manager who delegated to a suitable person, supervised that person and followed "
                "up known problems has a defence.",
                (1,),
                (2,),
            ),
        ),
    ),
    CitationGroup(
        ("10:4.3.1", "10:4.3.2", "10:4.3.2.Guidance.1."),
        (
            LabelledSentence("A report of concerns must be acknowledged within five Business Days.", (1,), (1,)),
            LabelledSentence("A person must not be demoted for a report made in good faith.", (3,), (2,)),
            LabelledSentence("A report is made in bad faith if the belief behind it proves mistaken.", (3,), ()),
        ),
    ),
)
