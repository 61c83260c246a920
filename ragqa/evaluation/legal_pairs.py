"""Sixty pairs of legal prose, twenty of each label: clauses of contracts, statutes and rules, and what they say.

Written for this project in the manner of ContractNLI (a clause as premise, a statement about it as hypothesis); every
clause is invented, none comes from a data set. Nothing here may be trained on.
"""

from __future__ import annotations

from ragqa.training.nli_data import LABELS, LabelledPair

# (clause, what it entails, what it contradicts, what it leaves open)
LEGAL: tuple[tuple[str, str, str, str], ...] = (
    (
        "The Recipient shall not disclose the Confidential Information to any third party without the prior written "
        "consent of the Discloser, save to those of its employees who need it to carry out the Purpose.",
        "Employees of the Recipient who need the information may receive it.",
        "The Recipient may pass Confidential Information to third parties as it sees fit.",
        "The Recipient must pay damages of a fixed amount for each disclosure.",
    ),
    (
        "Upon termination of this Agreement each party shall return or destroy all documents of the other within ten "
        "days and confirm in writing that it has done so.",
        "After termination the parties have to confirm the return or destruction of documents in writing.",
        "Each party may keep the other's documents after termination.",
        "The destruction of documents must be witnessed by a notary.",
    ),
    (
        "The obligations of this clause survive the end of the Agreement for a period of five years.",
        "The duties in the clause go on applying after the Agreement has ended.",
        "The obligations of the clause end together with the Agreement.",
        "The Agreement itself runs for five years.",
    ),
    (
        "Information that the Recipient already knew before it was disclosed, and can show that it knew, is not "
        "Confidential Information.",
        "What the Recipient can show it knew beforehand is not treated as confidential.",
        "Information known to the Recipient before disclosure counts as Confidential Information.",
        "Information found in the Recipient's archives must be deleted.",
    ),
    (
        "Neither party may assign its rights under this Agreement, except to a purchaser of the whole of its business.",
        "A party that sells its whole business may assign its rights to the buyer.",
        "Rights under the Agreement can never be assigned to anybody.",
        "The purchaser must be established in the same country.",
    ),
    (
        "The Supplier shall indemnify the Customer against third-party claims, provided that the Customer notifies the "
        "Supplier of the claim without delay.",
        "The Supplier's indemnity depends on prompt notice from the Customer.",
        "The Supplier must indemnify the Customer even where it is never told of the claim.",
        "The Customer has already been sued by a third party.",
    ),
    (
        "In no event shall the total liability of the Contractor exceed the fees paid in the twelve months before the "
        "claim arose; this limit does not apply to fraud.",
        "For fraud the Contractor's liability is not limited to the fees of the last twelve months.",
        "The Contractor's liability is unlimited in every case.",
        "The fees are payable in monthly instalments.",
    ),
    (
        "A Tenant who has paid the rent on time for two years may require the Landlord to renew the lease once on the "
        "same terms.",
        "Renewal can be demanded by a tenant with two years of punctual payment.",
        "The Landlord is free to refuse renewal to a tenant who has paid on time for two years.",
        "The rent rises with consumer prices every year.",
    ),
    (
        "An appeal must be lodged within 28 days of the decision, and the court may extend that time for good reason.",
        "The court is able to allow an appeal that is lodged after the 28 days.",
        "Under no circumstances can the time for an appeal be extended.",
        "An appeal suspends the effect of the decision.",
    ),
    (
        "A Licensed Warehouse must: (a) insure the goods at their full value; (b) inspect them every month; and (c) "
        "give the owner access on two days' notice.",
        "Goods in a Licensed Warehouse have to be inspected monthly.",
        "A Licensed Warehouse may leave the goods uninsured.",
        "A Licensed Warehouse must employ guards at night.",
    ),
    (
        "Where a Dealer acts for both buyer and seller, it must tell each of them so in writing before the trade.",
        "A Dealer that acts on both sides has to inform the buyer and the seller beforehand.",
        "A Dealer who acts for both sides need only tell them after the trade.",
        "A Dealer must charge the buyer and the seller the same commission.",
    ),
    (
        "Section 9 does not require an Operator to obtain an engineer's opinion for a vessel of less than 20 tonnes.",
        "For a vessel under 20 tonnes an Operator is not obliged by Section 9 to get an engineer's opinion.",
        "Section 9 obliges an Operator to obtain an engineer's opinion for a vessel of 10 tonnes.",
        "An engineer's opinion costs less for small vessels.",
    ),
    (
        "The Registrar may strike a company off the register if it has filed no accounts for three years and has not "
        "answered two warnings.",
        "A company that has filed no accounts for three years and ignored two warnings can be struck off.",
        "The Registrar has no power to remove a company from the register.",
        "A company that was struck off may be restored within six years.",
    ),
    (
        "Customer data may be processed outside the territory only under safeguards that the Authority has approved.",
        "Processing customer data abroad needs safeguards approved by the Authority.",
        "Customer data may be processed outside the territory without any safeguards.",
        "The Authority publishes a list of safe territories.",
    ),
    (
        "This Agreement is governed by the law of Harrowmere, and its courts alone have jurisdiction over disputes.",
        "A dispute under the Agreement can only be brought before the courts of Harrowmere.",
        "Disputes under the Agreement are settled by arbitration abroad.",
        "The parties tried to settle their dispute by mediation.",
    ),
    (
        "The Employee may end the contract on one month's notice; the Employer must give three months' notice.",
        "The notice that the Employer has to give is longer than the Employee's.",
        "Employer and Employee must both give one month's notice.",
        "The Employee receives a bonus at the end of the year.",
    ),
    (
        "For the purposes of this Part, a branch opened before 1990 is treated as a subsidiary.",
        "A branch that was opened in 1985 counts as a subsidiary under this Part.",
        "This Part does not treat any branch as a subsidiary.",
        "Most branches opened before 1990 have been closed.",
    ),
    (
        "A Fund Manager must not charge a performance fee unless the prospectus says how it is calculated.",
        "Charging a performance fee presupposes that the prospectus explains its calculation.",
        "A Fund Manager may charge a performance fee that the prospectus does not mention.",
        "Performance fees are paid once a year.",
    ),
    (
        "The Insurer is released from payment if the Insured set the fire on purpose.",
        "Where the Insured caused the fire deliberately, the Insurer need not pay.",
        "The Insurer must pay even where the Insured set the fire deliberately.",
        "The Insured must install smoke detectors on every floor.",
    ),
    (
        "Minutes of each meeting must be kept by the Secretary and approved at the next meeting; members may inspect "
        "them free of charge.",
        "Members need not pay to look at the minutes.",
        "Only the Secretary is allowed to see the minutes.",
        "Meetings are held every second month.",
    ),
)


def legal_pairs() -> list[LabelledPair]:
    """The sixty pairs; ``source`` is "legal"."""
    labels = [LABELS.index(label) for label in ("entailment", "contradiction", "neutral")]
    return [
        LabelledPair(clause, hypothesis, label, "legal")
        for clause, *hypotheses in LEGAL
        for label, hypothesis in zip(labels, hypotheses, strict=True)
    ]
