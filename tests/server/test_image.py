"""The script that makes the image: what it would do, and that the files beside it agree. No engine is asked."""

import os
import shlex
import subprocess
import sys

import pytest

from tests.support.server import ROOT


def test_every_step_is_said_and_names_files_that_there_are():
    told = subprocess.run([ROOT / ".ci" / "image", "--print"], capture_output=True, text=True, check=True).stdout
    steps = [shlex.split(line) for line in told.splitlines()]
    assert [step[0] for step in steps[:3]] == ["apt-get", "apt-get", "useradd"]
    (copied,) = (step for step in steps if step[0] == "cp")
    for name in copied[2:-1]:
        assert name.startswith(str(ROOT))
        assert subprocess.run(["test", "-e", name], check=False).returncode == 0, name
    (installed,) = (step for step in steps if "pip" in step)
    assert installed[-1] == "/opt/ragqa[access,postgresql]"
    assert "/opt/ragqa/constraints.txt" in installed


@pytest.mark.skipif(sys.platform != "linux", reason="of Linux")
def test_it_is_root_that_makes_it():
    nobody = ["setpriv", "--reuid=65534", "--clear-groups"] if os.getuid() == 0 else []
    made = subprocess.run([*nobody, "bash", ROOT / ".ci" / "image"], capture_output=True, text=True)
    assert made.returncode == 2
    assert "expected root" in made.stderr


def test_the_container_runs_as_nobody_in_particular_and_may_write_one_volume():
    made = (ROOT / "Dockerfile").read_text()
    assert "\nUSER ragqa\n" in made
    assert "RUN /src/.ci/image" in made
    composed = (ROOT / "compose.yaml").read_text()
    for line in ("read_only: true", "cap_drop: [ALL]", "no-new-privileges:true", "memory: 6g", "service_healthy"):
        assert line in composed
    assert "secrets.toml" in (ROOT / ".dockerignore").read_text()
