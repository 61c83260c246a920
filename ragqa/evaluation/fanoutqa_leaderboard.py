"""FanOutQA's published leaderboard as data: 724 test questions, scored by the benchmark's own service.

Source: the files in ``leaderboard-submissions/results`` of github.com/zhudotexe/fanoutqa, the data behind
https://fanoutqa.com, as a public snapshot had them on 21 November 2026; the latest entries are of models released in
August 2025, and later ones may be missing. The first seven systems are those of the paper (Zhu et al., ACL 2024,
arXiv:2402.14116). Rounded to three decimals. None of it was computed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ragqa.evaluation.fanoutqa_settings import Setting

SOURCE = "zhudotexe/fanoutqa, leaderboard-submissions/results (the data of https://fanoutqa.com)"
READ_ON = "2026-11-21"


@dataclass(frozen=True, slots=True)
class LeaderboardRow:
    """A system in one setting; every figure in [0, 1]. ROUGE is the F1; ``judge`` is GPT-4's."""

    name: str
    citation: str
    context: int
    setting: Setting
    loose: float
    strict: float
    rouge1: float
    rouge2: float
    rougeL: float  # noqa: N815 - the metric's name
    bleurt: float
    judge: float


Figures = tuple[float, float, float, float, float, float, float]


def _rows(
    name: str, citation: str, context: int, closed: Figures | None, opened: Figures | None, provided: Figures | None
) -> Iterator[LeaderboardRow]:
    for setting, figures in zip(
        (Setting.CLOSED_BOOK, Setting.OPEN_BOOK, Setting.EVIDENCE_PROVIDED), (closed, opened, provided), strict=True
    ):
        if figures:
            yield LeaderboardRow(name, citation, context, setting, *figures)


# name, citation, context; then loose, strict, ROUGE-1, ROUGE-2, ROUGE-L, BLEURT, judge for each setting
LEADERBOARD: tuple[LeaderboardRow, ...] = (
    *_rows(
        "LLaMA 2 70B",
        "Touvron et al., 2023",
        4_096,
        (0.440, 0.058, 0.285, 0.149, 0.238, 0.441, 0.120),
        (0.390, 0.064, 0.157, 0.075, 0.131, 0.443, 0.108),
        (0.514, 0.077, 0.376, 0.206, 0.304, 0.472, 0.162),
    ),
    *_rows(
        "GPT-4",
        "OpenAI, 2023",
        8_192,
        (0.355, 0.066, 0.313, 0.177, 0.267, 0.419, 0.149),
        (0.315, 0.057, 0.208, 0.106, 0.183, 0.427, 0.164),
        (0.546, 0.144, 0.500, 0.301, 0.413, 0.530, 0.304),
    ),
    *_rows(
        "GPT-3.5-turbo",
        "OpenAI, 2023",
        16_384,
        (0.398, 0.058, 0.401, 0.227, 0.342, 0.455, 0.145),
        (0.155, 0.032, 0.114, 0.051, 0.099, 0.338, 0.076),
        (0.517, 0.102, 0.455, 0.252, 0.358, 0.497, 0.243),
    ),
    *_rows(
        "Mistral-7B",
        "Jiang et al., 2023",
        32_000,
        (0.427, 0.055, 0.260, 0.123, 0.212, 0.449, 0.102),
        (0.024, 0.001, 0.010, 0.004, 0.009, 0.170, 0.011),
        (0.540, 0.088, 0.330, 0.172, 0.264, 0.475, 0.202),
    ),
    *_rows(
        "Mixtral-8x7B Instruct",
        "Jiang et al., 2024",
        32_000,
        (0.470, 0.081, 0.302, 0.158, 0.254, 0.466, 0.186),
        (0.396, 0.055, 0.173, 0.078, 0.147, 0.449, 0.148),
        (0.576, 0.135, 0.409, 0.231, 0.343, 0.509, 0.283),
    ),
    *_rows(
        "GPT-4-turbo",
        "OpenAI, 2023",
        128_000,
        (0.460, 0.101, 0.482, 0.290, 0.409, 0.493, 0.199),
        (0.470, 0.109, 0.356, 0.207, 0.314, 0.487, 0.262),
        (0.628, 0.192, 0.614, 0.395, 0.523, 0.581, 0.413),
    ),
    *_rows(
        "Claude 2.1",
        "Anthropic, 2023",
        200_000,
        (0.341, 0.041, 0.412, 0.208, 0.344, 0.426, 0.110),
        (0.471, 0.086, 0.295, 0.157, 0.253, 0.485, 0.218),
        (0.653, 0.215, 0.423, 0.262, 0.354, 0.508, 0.470),
    ),
    *_rows(
        "Gemma 1.1 7B IT",
        "Gemma Team, 2024",
        8_192,
        (0.187, 0.023, 0.194, 0.088, 0.158, 0.367, 0.048),
        (0.148, 0.008, 0.165, 0.079, 0.135, 0.346, 0.022),
        (0.188, 0.012, 0.207, 0.108, 0.168, 0.379, 0.036),
    ),
    *_rows(
        "Llama 3 70B-Instruct",
        "Meta, 2024",
        8_192,
        (0.466, 0.068, 0.463, 0.264, 0.387, 0.478, 0.159),
        (0.468, 0.093, 0.282, 0.143, 0.243, 0.473, 0.217),
        (0.573, 0.113, 0.500, 0.285, 0.404, 0.521, 0.275),
    ),
    *_rows(
        "Claude 3 Opus",
        "Anthropic, 2024",
        200_000,
        (0.448, 0.088, 0.455, 0.250, 0.378, 0.470, 0.196),
        (0.370, 0.094, 0.099, 0.049, 0.088, 0.520, 0.244),
        (0.715, 0.265, 0.463, 0.279, 0.394, 0.535, 0.541),
    ),
    *_rows(
        "GPT-4o",
        "OpenAI, 2024",
        128_000,
        (0.441, 0.081, 0.474, 0.273, 0.417, 0.488, 0.214),
        (0.580, 0.162, 0.494, 0.310, 0.443, 0.530, 0.365),
        (0.666, 0.229, 0.606, 0.397, 0.534, 0.586, 0.472),
    ),
    *_rows(
        "Mistral-Large-Instruct-2407 (123B)",
        "Mistral AI, 2024",
        128_000,
        (0.474, 0.086, 0.472, 0.266, 0.397, 0.488, 0.210),
        (0.404, 0.070, 0.279, 0.138, 0.245, 0.430, 0.186),
        (0.516, 0.090, 0.359, 0.184, 0.297, 0.484, 0.198),
    ),
    *_rows(
        "Mistral-Small-Instruct-2409 (22B)",
        "Mistral AI, 2024",
        32_000,
        (0.450, 0.072, 0.429, 0.240, 0.359, 0.478, 0.170),
        (0.165, 0.025, 0.103, 0.044, 0.092, 0.308, 0.059),
        (0.541, 0.116, 0.526, 0.301, 0.420, 0.521, 0.222),
    ),
    *_rows(
        "Llama3.3 70b distilled DS - 32k ss",
        "SambaNova Systems",
        32_000,
        (0.515, 0.110, 0.444, 0.244, 0.369, 0.495, 0.193),
        (0.559, 0.126, 0.503, 0.289, 0.429, 0.530, 0.276),
        (0.659, 0.180, 0.585, 0.353, 0.495, 0.582, 0.413),
    ),
    *_rows(
        "GPT-OSS 20B",
        "OpenAI, 2025",
        128_000,
        (0.400, 0.066, 0.451, 0.255, 0.397, 0.467, 0.174),
        (0.446, 0.072, 0.487, 0.292, 0.429, 0.493, 0.221),
        (0.556, 0.126, 0.601, 0.385, 0.534, 0.560, 0.399),
    ),
    *_rows(
        "GPT-OSS 120B",
        "OpenAI, 2025",
        128_000,
        (0.466, 0.086, 0.518, 0.304, 0.464, 0.507, 0.249),
        (0.554, 0.140, 0.546, 0.343, 0.489, 0.546, 0.356),
        (0.614, 0.170, 0.615, 0.400, 0.547, 0.593, 0.488),
    ),
    *_rows(
        "Naive RAG (deepseek-v3)",
        "Gao et al., 2023",
        128_000,
        None,
        (0.275, 0.058, 0.254, 0.149, 0.226, 0.373, 0.162),
        None,
    ),
    *_rows(
        "LightRAG (deepseek-v3)",
        "Guo et al., 2024",
        128_000,
        None,
        (0.402, 0.099, 0.373, 0.242, 0.310, 0.425, 0.185),
        None,
    ),
    *_rows(
        "HTKG-RAG (deepseek-v3)",
        "Jiang et al., 2024",
        128_000,
        None,
        (0.496, 0.198, 0.623, 0.440, 0.578, 0.587, 0.463),
        None,
    ),
    *_rows(
        "HTKG-RAG (GPT-4o)",
        "Jiang et al., 2024",
        128_000,
        None,
        (0.583, 0.188, 0.619, 0.442, 0.569, 0.591, 0.412),
        None,
    ),
)


def leaderboard(setting: Setting) -> tuple[LeaderboardRow, ...]:
    """The rows of one setting, best loose accuracy first, as the website sorts them."""
    rows = [row for row in LEADERBOARD if row.setting is setting]
    return tuple(sorted(rows, key=lambda row: (-row.loose, row.name)))
