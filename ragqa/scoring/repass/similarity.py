"""The share of a sentence's words that another contains, which orders the computation of pairs. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

_WORD: Final = re.compile(r"\w+")


def by_similarity(premises: Sequence[str], hypotheses: Sequence[str]) -> list[list[int]]:
    """For each hypothesis the positions of all premises, the most similar first; at a tie the earlier one.

    Only the order of the work depends on it, never a final score: every pair is computed in the end. The similarity is
    ``sum of w over the words of both / sum of w over the words of the hypothesis``, in [0, 1], with ``w = 1 + ln(n /
    n_with_it)`` over the n distinct sentences. Rare words count more; case, order and repetition of words do not
    matter. Of the measures tried (this, cosine, Dice, pairs of words) this one came closest to the exact maxima with
    few premises, because entailment requires the hypothesis to be stated, whatever else the premise states.

    The division is left out because it is the same for all premises of a hypothesis. Memory grows with the words of the
    hypotheses, not with those of the premises, so a passage of 24,000 words can be ranked, too.
    """
    distinct = dict.fromkeys([*premises, *hypotheses])
    words = {text: dict.fromkeys(_WORD.findall(text.lower())) for text in distinct}
    n_with_it = Counter(word for words_of_text in words.values() for word in words_of_text)
    hypothesis_words = {word for text in hypotheses for word in words[text]}
    rows_with: dict[str, list[int]] = defaultdict(list)
    for row, text in enumerate(premises):
        for word in words[text]:
            if word in hypothesis_words:
                rows_with[word].append(row)
    arrays = {word: np.array(rows) for word, rows in rows_with.items()}
    orders: list[list[int]] = []
    for text in hypotheses:
        shared: npt.NDArray[np.float64] = np.zeros(len(premises))
        for word in words[text]:  # in one order for all premises, so that equal sets of words give equal sums
            if word in arrays:
                shared[arrays[word]] += 1.0 + math.log(len(words) / n_with_it[word])
        orders.append([int(row) for row in np.argsort(-shared, kind="stable")])
    return orders
