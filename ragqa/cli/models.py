"""`ragqa models`: what the configured language model server offers."""

from __future__ import annotations

from contextlib import closing

from ragqa.cli.output import stderr, stdout
from ragqa.config import Config, api_key, has_llm
from ragqa.errors import ConfigError
from ragqa.generation.client import ChatClient
from ragqa.tables import plain


def models() -> None:
    """List the models of the server at OPENAI_BASE_URL; `*` marks the one that RAGQA_MODEL names."""
    if not has_llm():
        msg = "expected OPENAI_API_KEY or OPENAI_BASE_URL to be set, found neither; set the one your server wants"
        raise ConfigError(msg)
    config = Config.from_env().generation
    with closing(ChatClient(config, api_key())) as client:
        names = client.models()
    for name in names:
        stdout().print(plain(f"{'*' if name == config.model else ' '} {name}"))
    if config.model not in names:
        stderr().print(plain(f"The server does not list {config.model}; name one above in RAGQA_MODEL or --model."))
