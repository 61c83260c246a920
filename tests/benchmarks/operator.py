"""An operator's day by the page that says how: `python -m tests.benchmarks.operator [--before COMMIT]`.

A home that ragqa 0.2.0 wrote (from this repository's history) is upgraded, served to two people who sign in, backed up
while a question is answered, wiped, restored, and one person is erased. Every command is the one that
`ragqa/server/README.md` shows, run by a shell as it stands there, and is printed with what it says.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tests.support.guarded import served, signed
from tests.support.server import ROOT, wait_until_ready
from tests.support.visitor import Visitor

PAGE = ROOT / "ragqa" / "server" / "README.md"
BEFORE = "aca4257"  # the commit of version 0.2.0
ISSUER = "https://id.example.org"
QUESTIONS = {
    "ann": "How long must a firm keep its records?",
    "carl": "What must a firm report about periwinkle outsourcing?",  # a word that stands nowhere else
    "busy": "Who may approve a material outsourcing?",
}


def commands(heading: str) -> list[str]:
    """The commands that the page shows under this heading, without their remarks."""
    text = PAGE.read_text(encoding="utf-8").partition(f"**{heading}**")[2].partition("\n**")[0]
    return [line.split("  #")[0].strip() for line in re.findall(r"^ {4}(\S.*)$", text, re.MULTILINE)]


class Shell:
    """A terminal whose ``ragqa`` is this checkout's."""

    def __init__(self, folder: Path, home: Path, root: Path = ROOT) -> None:
        self.home = home
        program = folder / "bin" / "ragqa"
        program.parent.mkdir(exist_ok=True)
        main = "from ragqa.cli import main; main()"  # 0.2.0 had no `python -m ragqa`
        program.write_text(f'#!/bin/sh\nPYTHONPATH={root} exec {sys.executable} -c "{main}" "$@"\n')
        program.chmod(0o755)
        self._env = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "RAGQA_HOME": str(home)}
        self._env["RAGQA_INDEXES"] = str(home / "indexes")

    def run(self, command: str, **words: str) -> str:
        """What the command says; its words in capitals are replaced."""
        for name, value in words.items():
            command = command.replace(name, value)
        print(f"$ {command}", flush=True)
        done = subprocess.run(["bash", "-c", command], env=self._env, capture_output=True, text=True, check=False)
        said = (done.stdout + done.stderr).strip()
        print("\n".join(f"    {line}" for line in said.splitlines()[-6:]), flush=True)
        assert done.returncode == 0, f"exit code {done.returncode}"
        return said


@contextmanager
def checkout(commit: str, folder: Path) -> Iterator[Path]:
    """The files of this commit."""
    subprocess.run(["git", "worktree", "add", "--detach", "--quiet", folder, commit], cwd=ROOT, check=True)
    try:
        yield folder
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", folder], cwd=ROOT, check=True)


def visitor_of(address: str, name: str) -> Visitor:
    """Somebody who has signed in."""
    claims = {"is_logged_in": True, "origin": address, "iss": ISSUER, "sub": name, "iat": time.time()}
    claims |= {"email": f"{name}@example.org", "email_verified": True}
    visitor = Visitor(address)
    visitor.http.cookies.set("_streamlit_user", signed(claims), domain="localhost.local")
    return visitor


def ask(address: str, name: str, question: str) -> None:
    visitor = visitor_of(address, name)
    try:
        with visitor.opened() as session:
            session.ask(question)
            assert not session.failures
    finally:
        visitor.close()


def holding(folder: Path, word: bytes) -> list[str]:
    """The files below that hold this word."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return [str(path.relative_to(folder)) for path in files if word in path.read_bytes().lower()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", default=BEFORE, help="commit that writes the home which is upgraded")
    before = parser.parse_args().before
    with tempfile.TemporaryDirectory() as name:
        day(Path(name), before)


def day(folder: Path, before: str) -> None:
    home, backup, texts = (folder / name for name in ("home", "backup", "texts"))
    for one in (home, backup, texts):
        one.mkdir()
    (texts / "keys.txt").write_text("A Firm must keep a register of its keys for three years.\n")
    print(f"# A home that {before} wrote")
    with checkout(before, folder / "old") as old:
        shell = Shell(folder, home, old)
        shell.run("ragqa index build own --source TEXTS --format text", TEXTS=str(texts))
        shell.run('ragqa ask --index own "How long is the register of keys kept?"')
        (old_record,) = re.findall(r"20\d{6}-\d{6}-\w{10}", shell.run("ragqa records list"))
        for index in (ROOT / "indexes").iterdir():
            shutil.copytree(index, home / "indexes" / index.name)

        print("# Upgrade: back up, stop, install, start; the way back is the backup")
        shell = Shell(folder, home)
        back_up = [command for command in commands("Back up") if "audit" not in command]
        for command in back_up:
            shell.run(command.replace("/backup", str(backup)))
        assert "three years" in shell.run(f"ragqa records show {old_record}")
        shell.run("ragqa index verify own")
        shell.run('ragqa ask --index own "How long is the register of keys kept?"')
        back = folder / "back"
        back.mkdir()
        restore(Shell(folder, back, old), backup, verifies=False)

    shell = Shell(folder, home)
    print("# Back up a live store")
    with served("http://localhost:1", home) as (address, _):
        wait_until_ready(address)
        for person in ("ann", "carl"):
            ask(address, person, QUESTIONS[person])
        with ThreadPoolExecutor(1) as pool:
            asking = pool.submit(ask, address, "ann", QUESTIONS["busy"])
            said = [shell.run(command.replace("/backup", str(backup))) for command in commands("Back up")]
            asking.result()
    anchor = said[0].split("Anchor: ")[1].split()[0]

    print("# Wipe, restore")
    shutil.rmtree(home)
    home.mkdir()
    restore(shell, backup, anchor)
    assert "three years" in shell.run(f"ragqa records show {old_record}")

    print("# Erase a person")
    store = home / "records.sqlite3"
    assert b"periwinkle" in store.read_bytes()
    for command in commands("Erase a person"):
        if "--before" in command:
            command = command.replace("2026-01-31", "2020-01-31")
        shell.run(command, **{"https://id.example.org|s-7": f"{ISSUER}|carl"})
    assert b"periwinkle" not in store.read_bytes()
    print(f"carl's words are still in: {', '.join(holding(home, b'periwinkle')) or 'nothing'}")
    assert "carl" in shell.run("ragqa audit show --limit 100")


def restore(shell: Shell, backup: Path, anchor: str = "", *, verifies: bool = True) -> None:
    for command in commands("Restore"):
        if "audit" not in command or verifies:
            shell.run(command.replace("/backup", str(backup)), **{"COUNT:HASH": anchor, "NAME": "own"})


if __name__ == "__main__":
    main()
