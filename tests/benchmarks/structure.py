"""The figures of the tree: `python -m tests.benchmarks.structure`; with ``--run`` it asks a question, too.

With ``--files`` it only lists the files whose functions that question calls, with the number of these functions.

Entries of `ragqa/`, edges between rooms, what commands import, files whose functions a question calls, where settings
and durable writes stand, class names with several owners, lines and statements by room.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

from tests.test_architecture import LEVELS, MODULES, PACKAGE, circles, edges, module_graph, module_name, nodes, room_of

QUESTION = "When must a firm report a loss?"
MODULES_OF = """
import sys
from ragqa.cli import app
try: app({arguments})
except SystemExit: pass
finally: print("MODULES", sum(n == "ragqa" or n.startswith("ragqa.") for n in sys.modules), file=sys.stderr)
"""
FILES_RUN = """
import sys, threading
from collections import Counter
seen = set()
def look(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_flags & 1 and code.co_name[0] != "<": seen.add(code)  # 3.12: no <dictcomp>
threading.setprofile(look); sys.setprofile(look)
from ragqa.cli import app
try: app(["ask", {question!r}])
except SystemExit: pass
finally:
    sys.setprofile(None); threading.setprofile(None)
    run = Counter(code.co_filename.rpartition("/ragqa/")[2] for code in seen if "/ragqa/" in code.co_filename)
    print("FILES", len(run), file=sys.stderr)
    for name, n in run.most_common(): print("FILE", n, name, file=sys.stderr)
"""


def owners() -> dict[str, list[str]]:
    """Public and private class names that stand in more than one module."""
    found = defaultdict(list)
    for path in MODULES:
        for node in nodes(path):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(module_name(path))
    return {name: where for name, where in sorted(found.items()) if len(where) > 1}


def durable() -> list[str]:
    """Rooms but `infra` that call fsync, replace a file or take a lock on one."""
    found = set()
    for path in MODULES:
        for node in nodes(path):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                if name in {"os.fsync", "os.replace", "os.rename"} or name.endswith("FileLock"):
                    found.add(module_name(path))
    return sorted(name for name in found if not name.startswith("ragqa.infra"))


def printed(code: str, word: str) -> list[str]:
    """What a run of the code prints behind this word, line by line."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [line.removeprefix(f"{word} ") for line in done.stderr.splitlines() if line.startswith(f"{word} ")]


def counted(code: str, word: str) -> int:
    return int(printed(code, word)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", action="store_true", help="ask a question too")
    parser.add_argument("--files", action="store_true", help="list the files that a question runs")
    options = parser.parse_args()
    if options.files:
        print(*printed(FILES_RUN.format(question=QUESTION), "FILE"), sep="\n")
        return
    entries = [entry.name for entry in PACKAGE.iterdir() if entry.name != "__pycache__"]
    print(f"entries of ragqa/            {len(entries)}")
    whole = all(type(level) is int for level in LEVELS.values())
    print(f"levels                       0 to {max(LEVELS.values())}, whole numbers: {whole}")
    print(f"edges between rooms          {len(edges())}")
    print(f"circles                      {len(circles(module_graph()))}")
    print(f"modules of ragqa, --help     {counted(MODULES_OF.format(arguments=['--help']), 'MODULES')}")
    if options.run:
        print(f"modules of ragqa, ask        {counted(MODULES_OF.format(arguments=['ask', QUESTION]), 'MODULES')}")
        print(f"files that a question runs   {counted(FILES_RUN.format(question=QUESTION), 'FILES')}")
    named = [module_name(path) for path in MODULES if "max_drop" in path.read_text(encoding="utf-8")]
    print(f"modules that name max_drop   {len(named)}: {', '.join(named)}")
    print(f"durable writes beside infra  {len(durable())}: {', '.join(durable())}")
    print(f"class names, several owners  {len(owners())}: {', '.join(owners())}")
    lines, statements = Counter(), Counter()
    for path in MODULES:
        lines[room_of(path)] += path.read_text(encoding="utf-8").count("\n")
        statements[room_of(path)] += sum(isinstance(node, ast.stmt) for node in nodes(path))
    longest = max(MODULES, key=lambda path: path.read_text(encoding="utf-8").count("\n"))
    print(f"longest module               {longest.read_text('utf-8').count(chr(10))}: {module_name(longest)}")
    for room in sorted(lines):
        print(f"  {room:14} {lines[room]:6} lines {statements[room]:6} statements")
    print(f"  {'ragqa/':14} {sum(lines.values()):6} lines {sum(statements.values()):6} statements")
    tests = list(Path("tests").rglob("*.py"))
    print(f"  {'tests/':14} {sum(path.read_text('utf-8').count(chr(10)) for path in tests):6} lines")


if __name__ == "__main__":
    main()
