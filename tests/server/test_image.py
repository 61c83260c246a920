"""The script that makes the image: what it would do, and that the files beside it agree. No engine is asked."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.support.server import ROOT, free_port

_BUILT = """
set -e
mount -t proc proc "$1/proc"; mount --rbind /dev "$1/dev"; mount --bind -o ro "$2" "$1$2"
exec chroot "$1" /src/.ci/image
"""
_SERVED = """
set -e
mount --bind "$1" "$1"; mount -t proc proc "$1/proc"; mount --rbind /dev "$1/dev"; mount -t tmpfs tmpfs "$1/tmp"
mount --bind "$1/var/lib/ragqa" "$1/var/lib/ragqa"; mount -o remount,ro,bind "$1"
exec chroot --userspec=10001:10001 "$1" env --chdir=/opt/ragqa HOME=/var/lib/ragqa RAGQA_HOME=/var/lib/ragqa \\
  RAGQA_ACCESS=on PYTHONDONTWRITEBYTECODE=1 sh -c "touch x || .venv/bin/streamlit run app.py --server.port $2"
"""


def test_every_step_is_said_and_names_files_that_there_are():
    told = subprocess.run([ROOT / ".ci" / "image", "--print"], capture_output=True, text=True, check=True).stdout
    steps = [shlex.split(line) for line in told.splitlines()]
    assert [step[0] for step in steps[:3]] == ["apt-get", "apt-get", "useradd"]
    (copied,) = (step for step in steps if step[0] == "cp")
    for name in copied[2:-1]:
        assert name.startswith(str(ROOT))
        assert subprocess.run(["test", "-e", name], check=False).returncode == 0, name
    locked, own = (step for step in steps if "pip" in step)
    assert locked[-1] == "/opt/ragqa/image.lock"
    assert "--require-hashes" in locked
    assert own[-1] == "/opt/ragqa"
    assert "--no-deps" in own


def test_each_package_of_the_lock_is_the_constraints_version_with_a_hash_and_none_is_missing():
    pinned = dict(re.findall(r"(?m)^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text().lower()))
    lines = [line for line in (ROOT / ".ci" / "image.lock").read_text().splitlines() if not line.startswith("#")]
    found = dict(re.fullmatch(r"([\w.-]+)==(\S+) --hash=sha256:[0-9a-f]{64}", line).groups() for line in lines)
    assert len(found) == len(lines)
    for name, version in found.items():
        assert pinned.get(name, version) == version.partition("+")[0]
    assert not [line for line in lines if "://" in line]
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*needed["dependencies"], *needed["optional-dependencies"]["access"]]
    names = {re.match(r"[\w.-]+", one)[0].lower().replace("_", "-") for one in wanted}
    assert names <= {name.replace("_", "-") for name in found}


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


@pytest.mark.slow
@pytest.mark.enable_socket
@pytest.mark.timeout(3_600)
@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("mmdebstrap"), reason="as root, with mmdebstrap")
def test_the_steps_run_in_a_bare_debian_and_what_they_make_serves_from_a_root_that_is_read_only(tmp_path):
    tree, port = tmp_path / "tree", free_port()
    subprocess.run(["mmdebstrap", "--variant=minbase", "--quiet", "bookworm", tree], check=True)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    copied = ["xargs", "-0", "cp", "--no-dereference", "--parents", "--target-directory", tree / "src"]
    (tree / "src").mkdir()
    subprocess.run(copied, cwd=ROOT, input=listed, check=True)
    shutil.copytree("/usr/local/share/ca-certificates", tree / "usr/local/share/ca-certificates", dirs_exist_ok=True)
    wheels = os.environ.get("PIP_FIND_LINKS") or str(tmp_path / "wheels")  # torch's build for processors
    for folder in (Path(wheels), tree / wheels.lstrip("/")):
        folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["unshare", "--mount", "bash", "-c", _BUILT, "built", tree, wheels], check=True)
    served = subprocess.Popen(["unshare", "--mount", "bash", "-c", _SERVED, "served", tree, str(port)])
    try:
        for path in ("/healthz", "/readyz"):
            until = time.monotonic() + 300
            while not answers(f"http://localhost:{port}{path}"):
                assert time.monotonic() < until
                time.sleep(1)
        assert not (tree / "opt/ragqa/x").exists()
        assert (tree / "var/lib/ragqa/precision.json").stat().st_uid == 10001
    finally:
        served.terminate()
        served.wait(60)


def answers(address):
    try:
        with urllib.request.urlopen(address, timeout=10) as reply:
            return reply.status == 200
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False
