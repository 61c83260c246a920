"""`ragqa ask | check | score | tune | models | index | records | audit | licences | eval | dataset | train`: thin.

Exit codes: 0 done, 1 a bug in ragqa, 2 wrong usage or setting, 3 index, corpus or model, 4 no answer could be written,
5 answered but not scored, 6 records, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import logging
import os
import sys

import typer

from ragqa.cli.ask import ask
from ragqa.cli.audit import app as audit_app
from ragqa.cli.check import check
from ragqa.cli.dataset import app as dataset_app
from ragqa.cli.evaluate import app as evaluate_app
from ragqa.cli.index import app as index_app
from ragqa.cli.licences import licences
from ragqa.cli.models import app as models_app
from ragqa.cli.output import fail
from ragqa.cli.records import app as records_app
from ragqa.cli.score import score
from ragqa.cli.train import app as train_app
from ragqa.cli.tune import tune
from ragqa.errors import RagqaError
from ragqa.infra import logs

__all__ = ["app", "main"]

app = typer.Typer(
    help="Ask a question, get a cited answer, see every sentence scored.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("ask")(ask)
app.command("check")(check)
app.command("score")(score)
app.command("tune")(tune)
app.command("licences")(licences)
app.add_typer(models_app, name="models")
app.add_typer(index_app, name="index")
app.add_typer(records_app, name="records")
app.add_typer(audit_app, name="audit")
app.add_typer(evaluate_app, name="eval")
app.add_typer(dataset_app, name="dataset")
app.add_typer(train_app, name="train")


def main() -> None:
    """The console script: every failure becomes one message on standard error and an exit code."""
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger().handlers[0].setLevel(logging.WARNING)  # bm25s sets its own logger to DEBUG
    try:
        logs.set_up()
        app()
    except RagqaError as error:
        fail(error)
    except BrokenPipeError:  # the reader of our output has gone, as `ragqa ... | head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:  # the last line: a person at a terminal gets a message, the log gets the trace
        logging.getLogger(__name__).debug("unexpected failure", exc_info=True)
        sys.stderr.write(f"ragqa failed unexpectedly: {type(error).__name__}: {error}\n")
        sys.exit(1)
