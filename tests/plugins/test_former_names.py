"""What a package written for ragqa 0.2.0 imports is still there, and is the same object."""

import subprocess
import sys
from importlib import import_module

import pytest

from ragqa.plugins.former_names import FORMER_NAMES


@pytest.mark.parametrize("name", FORMER_NAMES)
def test_a_former_name_gives_the_module_of_today(name, monkeypatch):
    for former in FORMER_NAMES:
        monkeypatch.delitem(sys.modules, former, raising=False)
    with pytest.warns(DeprecationWarning, match="import it from there"):
        module = import_module(name)
    assert module is import_module(FORMER_NAMES[name])
    assert module.__spec__.name == FORMER_NAMES[name]


def test_the_imports_that_0_2_0_documented_work():
    code = (
        "import warnings; warnings.simplefilter('ignore', DeprecationWarning)\n"
        "from ragqa.config import IndexingConfig\nfrom ragqa.events.generation import Token\n"
        "from ragqa.indexing import build_index, open_index\nfrom ragqa.verdicts.judge import Judge\n"
        "from ragqa import registry\nimport ragqa.types.events.generation as today\nassert Token is today.Token\n"
        "print(registry.make.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "make"
