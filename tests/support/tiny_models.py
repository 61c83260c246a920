"""Tiny models with random weights, in the formats that real ones come in: made in milliseconds, the same every time."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import safetensors.numpy
import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer, Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import BertConfig, BertForMaskedLM, BertModel, BertTokenizerFast, PreTrainedTokenizerFast

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]", "[unused1]"]
TEXT = (
    "a an the and of in is are must may keep kept tell client money asset assets dealer firm record records rule "
    "separate account accounts regulator writing loss years six held hold for not once about any complaint complaints "
    "apart what when which who where to be by report ##s ##ing ##ed ##er"
)
LETTERS = [letter for n in range(26) for letter in (chr(97 + n), "##" + chr(97 + n))]
PUNCTUATION = list(".,;:?!'\"()[]#*-")
VOCABULARY = [*SPECIAL, *dict.fromkeys([*TEXT.split(), *LETTERS, *PUNCTUATION])]
HIDDEN = 32
WORDS = [*SPECIAL[:4], *"firms must may keep records not the sky is blue".split()]
PAIRS = [
    ("firms must keep records", "firms keep records"),
    ("the sky is blue", "firms must keep records"),
    ("the sky", "the sky is not blue"),
    ("", ""),
    ("firms may not keep the records the firms must not keep", "is the sky blue"),
]


def _config(vocabulary=VOCABULARY, **settings) -> BertConfig:
    sizes = {"num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64, "max_position_embeddings": 64}
    return BertConfig(vocab_size=len(vocabulary), hidden_size=HIDDEN, **sizes | {"initializer_range": 0.5} | settings)


def _write_tokenizer(folder: Path, tokenizer: Tokenizer, length: int = 64, **settings) -> None:
    special = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    settings |= special | {"model_max_length": length}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **settings).save_pretrained(folder)


def _write_bert_tokenizer(folder: Path) -> None:
    numbers = {word: number for number, word in enumerate(VOCABULARY)}
    tokenizer = Tokenizer(WordPiece(numbers, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer()
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", numbers["[CLS]"]), ("[SEP]", numbers["[SEP]"])]
    )
    _write_tokenizer(folder, tokenizer, mask_token="[MASK]")


def _write(folder: Path, kind: type) -> None:
    torch.manual_seed(0)
    folder.mkdir(parents=True)
    kind(_config()).eval().save_pretrained(folder)
    _write_bert_tokenizer(folder)


def write_classifier(folder: Path, labels, architecture: str = "Bert", positions: int = 64, **settings) -> Path:
    """An untrained classifier of pairs over the words of `PAIRS`."""
    numbers = {word: number for number, word in enumerate(WORDS)}
    tokenizer = Tokenizer(WordPiece(numbers, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    _write_tokenizer(folder, tokenizer, positions, model_input_names=["input_ids", "token_type_ids", "attention_mask"])
    torch.manual_seed(7)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = getattr(transformers, f"{architecture}Config")(
        vocab_size=len(WORDS),
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
        **sizes | {"max_position_embeddings": positions, "initializer_range": 0.8, "pad_token_id": 0} | settings,
    )
    getattr(transformers, f"{architecture}ForSequenceClassification")(config).save_pretrained(folder)
    return folder


def tiny_encoding(folder: Path, first: str, second: str):
    """A pair as the tokenizer of ``folder`` writes it for the model."""
    found = Tokenizer.from_file(str(folder / "tokenizer.json")).encode(first, second)
    names = {"input_ids": found.ids, "attention_mask": [1] * len(found.ids), "token_type_ids": found.type_ids}
    return {name: np.array([values], dtype=np.int64) for name, values in names.items()}


def transformers_logits(folder: Path, inputs):
    """What transformers itself computes from ``inputs``."""
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.inference_mode():
        return model(**{name: torch.from_numpy(rows) for name, rows in inputs.items()}).logits.numpy()


def write_trainable(folder: Path, words, kind: type = BertModel, **settings) -> Path:
    """An untrained BERT of two layers whose vocabulary are these words, each one token."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = [*SPECIAL[:5], *words]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"num_hidden_layers": 2, "max_position_embeddings": 32, "initializer_range": 0.2}
    kind(_config(vocabulary, **sizes | settings)).save_pretrained(folder)
    return folder


def write_sentence_encoder(folder: Path, words) -> Path:
    """`write_trainable` as an encoder: mean pooling and length 1, in sentence-transformers' format."""
    write_trainable(folder, words)
    package = "sentence_transformers.models"
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    pooling = {"word_embedding_dimension": HIDDEN, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling").mkdir()
    (folder / "2_Normalize").mkdir()
    for name, content in (
        (
            "modules.json",
            [{"idx": n, "name": str(n), "path": p, "type": f"{package}.{k}"} for n, (p, k) in enumerate(kinds)],
        ),
        ("1_Pooling/config.json", pooling),
        ("config_sentence_transformers.json", {}),
        ("sentence_bert_config.json", {"max_seq_length": 32, "do_lower_case": False}),
    ):
        (folder / name).write_text(json.dumps(content))
    return folder


def whole_training(train, training, data, out: Path) -> SimpleNamespace:
    """What ``train`` reported from its first step to its last, and the folder it wrote to."""
    return SimpleNamespace(out=out, reports=list(train(training, data, out)))


def tensors_of(file: Path):
    """The arrays of a safetensors file by name."""
    return safetensors.numpy.load_file(file)


def write_splade(folder: Path) -> Path:
    """A SPLADE checkpoint: BERT with its language-model head, then `SpladePooling`."""
    from sentence_transformers import SparseEncoder

    _write(folder.with_name(folder.name + "-bert"), BertForMaskedLM)
    SparseEncoder(str(folder.with_name(folder.name + "-bert")), device="cpu").save_pretrained(str(folder))
    return folder


def write_late(folder: Path) -> Path:
    """A late-interaction checkpoint as sentence-transformers writes it."""
    from sentence_transformers import MultiVectorEncoder

    _write(folder.with_name(folder.name + "-bert"), BertModel)
    torch.manual_seed(1)  # of the projection
    MultiVectorEncoder(str(folder.with_name(folder.name + "-bert")), device="cpu").save_pretrained(str(folder))
    return folder


def write_pylate(folder: Path) -> Path:
    """The weights of `write_late` as PyLate stores them: a transformer and ``1_Dense``."""
    late = write_late(folder.with_name(folder.name + "-late"))
    dense = next(path for path in late.glob("*_Dense"))
    _write(folder, BertModel)
    (folder / "1_Dense").mkdir()
    (folder / "1_Dense" / "model.safetensors").write_bytes((dense / "model.safetensors").read_bytes())
    (folder / "1_Dense" / "config.json").write_text(
        json.dumps(
            {
                "in_features": HIDDEN,
                "out_features": 128,
                "bias": False,
                "activation_function": "torch.nn.modules.linear.Identity",
            }
        )
    )
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 63, "do_lower_case": False}))
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Dense", "type": "pylate.models.Dense.Dense"},
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    settings = {
        "model_type": "ColBERT",
        "query_prefix": "[unused0]",
        "document_prefix": "[unused1]",
        "query_length": 16,
        "document_length": 48,
        "do_query_expansion": True,
        "attend_to_expansion_tokens": False,
        "skiplist_words": PUNCTUATION,
        "similarity_fn_name": "MaxSim",
    }
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    return folder


def write_stanford(folder: Path) -> Path:
    """The weights of `write_late` as Stanford's ColBERT stores them: ``bert.*`` and ``linear.weight`` in one file."""
    late = write_late(folder.with_name(folder.name + "-late"))
    projection = load_file(next(late.glob("*_Dense")) / "model.safetensors")["linear.weight"]
    _write(folder, BertModel)
    weights = {f"bert.{key}": tensor for key, tensor in load_file(folder / "model.safetensors").items()}
    save_file({**weights, "linear.weight": projection}, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["HF_ColBERT"]}))
    metadata = {"query_token_id": "[unused0]", "doc_token_id": "[unused1]", "query_maxlen": 16, "doc_maxlen": 48}
    (folder / "artifact.metadata").write_text(json.dumps(metadata))
    return folder
