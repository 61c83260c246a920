"""A tiny chat model with random weights, as a real server loads it: made in milliseconds, the same every time."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

WORDS = "A firm must keep records of client money for six years . The dealer may not hold it [ 1 ] 2"
VOCABULARY = ["<pad>", "<s>", "</s>", "<unk>", *WORDS.split()]  # few words: the end comes after about 25 of them
CHAT = (
    "{% for message in messages %}{{ message['role'] }} : {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant : {% endif %}"
)
LONGEST = 8192  # tokens, prompts of several passages included


def write_chat_model(folder: Path) -> Path:
    """A Llama of one layer over `VOCABULARY` with tokenizer and chat template; what it writes means nothing."""
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(VOCABULARY)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Whitespace()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="<unk>",
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        model_max_length=LONGEST,
    )
    fast.chat_template = CHAT
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=LONGEST,
        initializer_range=0.1,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder
