"""`ragqa serve`: what it starts, without starting it."""

import subprocess

import pytest
from typer.testing import CliRunner

from ragqa.cli import app


@pytest.fixture
def serve(tmp_path, monkeypatch):
    """Calls the command in an empty folder; gives the arguments that it would start, and what it says."""
    monkeypatch.chdir(tmp_path)
    started = []
    monkeypatch.setattr("os.execv", lambda _, arguments: started.append(arguments))

    def run(*options):
        done = CliRunner().invoke(app, ["serve", *options], catch_exceptions=False)
        return started[-1], done.stderr

    return run


@pytest.mark.long
def test_a_module_of_the_folder_in_which_it_is_called_is_not_run(serve, tmp_path):
    (tmp_path / "streamlit.py").write_text("print('somebody else')")
    arguments, _ = serve()
    command = [*arguments[: arguments.index("streamlit") + 1], "--version"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert said.startswith("Streamlit, version")


@pytest.mark.parametrize(
    ("address", "shown"),
    [("localhost", "localhost"), ("0.0.0.0", "localhost"), ("::1", "[::1]"), ("10.0.0.1", "10.0.0.1")],
)
def test_the_address_that_is_said_can_be_opened(serve, address, shown):
    assert f"http://{shown}:8502 " in serve("--address", address, "--port", "8502")[1]
