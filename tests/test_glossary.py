"""GLOSSARY.md against what a user reads: each of its terms is used, and no word that it replaces."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GLOSSARY, _, NOT_USED = (ROOT / "GLOSSARY.md").read_text(encoding="utf-8").partition("## Not used")
ROW = re.compile(r"^\| (?!term \||not \||---)([^|]+?) \| [^|]+? \|$", re.MULTILINE)
MOST_SHARED = 10  # class names with more than one owner


@cache
def trees():
    """Every module of ragqa, read once by whichever worker runs these tests."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "ragqa").rglob("*.py"))}


def constants(tree):
    """The strings of a module that may reach a user: of docstrings only those of commands, which are their help."""
    silent = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            is_command = any(".command" in ast.unparse(one) for one in getattr(node, "decorator_list", ()))
            if node.body and isinstance(node.body[0], ast.Expr) and not is_command:
                silent.add(id(node.body[0].value))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            yield node.value


def read_by_users():
    """(place, text) of strings with more than one word, of the READMEs, CONTRIBUTING and REFERENCE."""
    for path, tree in trees().items():
        yield from ((str(path.relative_to(ROOT)), text) for text in constants(tree) if " " in text.strip())
    readmes = (path for path in (ROOT / "ragqa").rglob("*.md") if "demo" not in path.parts)
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *readmes):
        yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def test_each_term_is_used():
    terms, everything = ROW.findall(GLOSSARY), "\n".join(text for _, text in read_by_users())
    assert 75 <= len(terms) <= 90
    assert len(set(terms)) == len(terms)
    assert not [term for term in terms if not re.search(rf"\b{re.escape(term)}", everything, re.IGNORECASE)]


def test_no_word_is_used_that_the_glossary_replaces():
    replaced = [word for words in ROW.findall(NOT_USED) for word in words.split(", ")]
    assert len(replaced) > 15
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, replaced))})\b", re.IGNORECASE)
    assert not [(place, hit[0]) for place, text in read_by_users() for hit in pattern.finditer(text)]


def test_a_class_name_has_one_owner():
    owners = defaultdict(set)
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                owners[node.name].add(str(path.relative_to(ROOT)))
    shared = {name: sorted(paths) for name, paths in owners.items() if len(paths) > 1}
    assert len(shared) <= MOST_SHARED, shared
