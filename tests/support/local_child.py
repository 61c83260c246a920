"""A process that behaves as `ragqa.generation.local.child` does, without a model: a scripted server on 127.0.0.1.

``python -m tests.support.local_child BEHAVIOUR``: ``answer``, ``slow`` (a word each tenth of a second), ``refuse`` (it
cannot load), ``die`` (it ends without a word), ``silent`` (it never says that it listens).
"""

from __future__ import annotations

import json
import sys
import threading
import time

from ragqa.generation.local.child import _leave_at_end_of, _say
from tests.support.openai_server import Exchange, OpenAIServer, status

TEXT = "A Firm must do thing 1 [1]. It must also do the others [2][3]. It must then rest [1]. And it must sleep [2]."


def main(behaviour: str) -> None:
    told = json.loads(sys.stdin.readline())
    if behaviour == "die":
        sys.stderr.write("the last word\n")
        return
    if behaviour == "refuse":
        sys.stderr.write(f"0.00 E cannot read {told['key']}\n")
        _say(sys.stdout, error="RuntimeError: Failed to init")
        return
    threading.Thread(target=_leave_at_end_of, args=(sys.stdin,), daemon=True).start()
    if behaviour == "silent":
        time.sleep(60)

    def behave(exchange: Exchange) -> None:
        if exchange.request.key != told["key"]:
            status(401)(exchange)
            return
        exchange.begin_stream()
        for done in (0, 64, 128):
            progress = {"total": 128, "processed": done, "cache": 0, "time_ms": 10 * done}
            exchange.chunk({"content": None}, prompt_progress=progress, model=told["alias"])
            exchange.wait(0.4 if done < 128 else 0.05)  # a busy machine must have looked before the next is said
        exchange.text(TEXT, 0.1 if behaviour == "slow" else 0.0)
        exchange.chunk({}, "stop")
        exchange.end_stream()

    with OpenAIServer(behave) as server:
        _say(sys.stdout, url=server.base_url.removesuffix("/v1"))
        time.sleep(600)


if __name__ == "__main__":
    main(sys.argv[1])
