"""A corpus is put together, indexed, changed, carried elsewhere, deleted and had again."""

import io
import json
import os
import shutil
import threading
import time
import zipfile
from dataclasses import replace
from types import SimpleNamespace

import pytest

from ragqa.corpus.documents import Reader, UnreadableError
from ragqa.errors import ConfigError, CorpusError, IndexingError
from ragqa.index import open_index, passage_arrays
from ragqa.index.passage_arrays import measure
from ragqa.infra.files import sha256_of
from ragqa.library import changes, jobs, parse_cache
from ragqa.library.changes import REREAD, Rereading, Update, append, compared, read_rereading, read_updates, stale
from ragqa.library.collection import Collection, collections, make_collection
from ragqa.library.jobs import Jobs
from ragqa.library.names import corpus_name, member_name, safe_name
from ragqa.library.questions import questions_of
from ragqa.library.transfer import delete, deleted, erase, export, import_corpus, restore
from ragqa.library.update import CHANGES, MAX_TOKENS, index_events
from ragqa.library.upload import files_of, server_folders, take, take_from_folder
from ragqa.library.watched import Proposal, dismissed, proposals, set_dismissed, take_over, watched_folder
from ragqa.types import Passage
from ragqa.types.streams import returned
from tests.support.document_files import RULES, write_docx, write_html
from tests.support.fakes import FakeEncoder, passage

NEW_RULES = [
    *RULES[:3],
    ("1.1.2", "A Ferry Operator must not carry more than forty passengers on any one journey.", 0),
    *RULES[4:9],
    ("2.1.1", "The Master must report any collision to the Harbour Office within one hour of its happening.", 0),
    ("2.1.2", "The Harbour Office must keep each report for six years.", 0),
]


class CountingEncoder(FakeEncoder):
    def __init__(self):
        self.encoded = []

    def encode(self, texts):
        self.encoded += texts
        return super().encode(texts)


@pytest.fixture(scope="module")
def reader():
    with Reader() as reader:
        yield reader


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "drop"
    folder.mkdir()
    write_html(folder / "ferries.html")
    write_docx(folder / "boats.docx", [(n, text.replace("Ferry", "Boat"), at) for n, text, at in RULES])
    (folder / "note.md").write_text("# Note\n\nFerries run daily, also on holidays, at eight and at noon.")
    return folder


def put_in(collection, reader, *paths, replaces=None):
    lines = []
    for path in paths:
        with path.open("rb") as data:
            lines += take(collection, path.name, data, reader, replaces)
    for one in collection.read().staged:
        try:
            parse_cache.read(collection, one, reader, MAX_TOKENS)
        except CorpusError as error:
            lines.append(f"{one.name}: {error}")
    return lines


def index(collection, indexes, encoder=None, **options):
    return returned(index_events(collection, indexes, lambda: encoder, **options))


def index_bytes(indexes, name):
    manifest = open_index(name, indexes).manifest
    return {entry.path: entry.sha256 for entry in manifest.files}


def test_adding_replacing_and_removing_gives_the_bytes_of_a_full_rebuild(tmp_path, reader, files):
    collection = make_collection("ferries", tmp_path / "library", "Ferries")
    indexes, encoder = tmp_path / "indexes", CountingEncoder()
    assert put_in(collection, reader, files / "ferries.html", files / "note.md") == []
    assert index(collection, indexes, encoder).n_documents == 2
    first = len(encoder.encoded)
    assert first == 9

    put_in(collection, reader, files / "boats.docx")
    write_html(files / "ferries.html", NEW_RULES)
    put_in(collection, reader, files / "ferries.html")
    assert collection.read().staged[-1].replaces == "ferries"
    index(collection, indexes, encoder)
    assert len(encoder.encoded) == first + 8 + 3
    collection.set_removed("note", removed=True)
    index(collection, indexes, encoder)
    assert len(encoder.encoded) == first + 8 + 3
    kept = index_bytes(indexes, "ferries")
    index(collection, tmp_path / "anew", FakeEncoder(), reuse=False)
    assert index_bytes(tmp_path / "anew", "ferries") == kept

    updates = read_updates(collection.folder / CHANGES)
    assert [[(one.document_id, one.what) for one in update.documents] for update in updates] == [
        [("note", "removed")],
        [("ferries", "replaced"), ("boats", "added")],
        [("ferries", "added"), ("note", "added")],
    ]
    replaced = updates[1].documents[0]
    assert {one.number: one.what for one in replaced.passages} == {
        "1.1.2": "changed",
        "2.1.1": "changed",
        "2.1.2": "new",
    }
    catalogue = collection.read()
    assert catalogue.is_current
    assert catalogue.analyser == "headed"
    assert "What must the Harbour Office do?" in catalogue.questions or catalogue.questions
    assert [one.version for one in catalogue.documents] == [2, 1]
    assert sorted(path.name for path in (collection.folder / "old").iterdir()) == [
        "ferries, version 1.html",
        "note, version 1.md",
    ]


def test_a_further_ranking_stays_and_encodes_only_what_is_new(tmp_path, reader, files):
    collection, indexes = make_collection("ferries", tmp_path / "library"), tmp_path / "indexes"
    encoder, other = CountingEncoder(), CountingEncoder()
    further = {"load_further": lambda rankings: dict.fromkeys(rankings, other)}
    put_in(collection, reader, files / "ferries.html", files / "note.md")
    index(collection, indexes, encoder)
    manifest = index(collection, indexes, encoder, also=["dense:other"], **further)
    assert manifest.retrievers == ("bm25", "context", "dense", "citations", "dense:other")
    assert len(encoder.encoded) == len(other.encoded) == 9
    put_in(collection, reader, files / "boats.docx")
    assert index(collection, indexes, encoder, **further).retrievers[-1] == "dense:other"
    assert len(encoder.encoded) == len(other.encoded) == 17
    index(collection, tmp_path / "anew", FakeEncoder(), reuse=False, also=["dense:other"], **further)
    assert index_bytes(tmp_path / "anew", "ferries") == index_bytes(indexes, "ferries")
    assert Jobs(indexes, further["load_further"]).start(collection, "index", lambda: encoder).wait(60).error == ""
    assert index_bytes(tmp_path / "anew", "ferries") == index_bytes(indexes, "ferries")
    with pytest.raises(IndexingError, match="expected a model for the ranking 'dense:other'"):
        index(collection, indexes, encoder)


def test_only_what_has_changed_is_counted_again(tmp_path, reader, files, monkeypatch):
    """What was counted is kept by its content; half a file is none, and what is of no document any more goes."""
    measured_documents = []

    def watched(passages, *settings):
        measured_documents.append(passages[0].document_id)
        return measure(passages, *settings)

    monkeypatch.setattr(passage_arrays, "measure", watched)
    collection = make_collection("ferries", tmp_path / "library")
    put_in(collection, reader, files / "ferries.html", files / "note.md")
    index(collection, tmp_path / "indexes")
    put_in(collection, reader, files / "boats.docx")
    index(collection, tmp_path / "indexes")
    assert measured_documents == ["ferries", "note", "boats"]
    kept = sorted((collection.folder / parse_cache.MEASURED).iterdir())
    for path, content in zip(kept, (b"", kept[1].read_bytes()[:2_000], kept[2].read_bytes()), strict=True):
        path.write_bytes(content)
    collection.set_removed("note", removed=True)
    index(collection, tmp_path / "indexes")
    assert set(measured_documents[3:]) < {"ferries", "boats", "note"}
    assert len(list((collection.folder / parse_cache.MEASURED).iterdir())) == 2
    index(collection, tmp_path / "anew", reuse=False)
    assert index_bytes(tmp_path / "anew", "ferries") == index_bytes(tmp_path / "indexes", "ferries")


def test_a_stopped_indexing_goes_on_and_reads_nothing_twice(tmp_path, reader, files, monkeypatch):
    collection = make_collection("ferries", tmp_path / "library")
    put_in(collection, reader, *sorted(files.iterdir()))
    for steps in range(1, 14, 3):
        events = index_events(collection, tmp_path / "indexes", FakeEncoder)
        for _ in range(steps):
            next(events)
        events.close()
    assert not collection.read().is_current
    monkeypatch.setattr(Reader, "read", lambda *_: pytest.fail("it was read before"))
    assert index(collection, tmp_path / "indexes", FakeEncoder()).n_documents == 3
    assert collection.read().is_current


@pytest.mark.parametrize("cut_off_at", range(5))
def test_a_change_that_was_cut_off_among_its_files_goes_on(tmp_path, reader, files, monkeypatch, cut_off_at):
    """A new version under the name of the old one: three files move, and only then the catalogue says so."""

    class Crash(BaseException):
        pass

    def told(collection):
        return [
            (one.name, sha256_of(collection.path_of(one)) == one.sha256, one.version)
            for one in collection.read().documents
        ]

    collection, calls = make_collection("ferries", tmp_path / "library"), []
    put_in(collection, reader, files / "ferries.html", files / "note.md")
    collection.accept(lambda _: True)
    write_html(files / "ferries.html", NEW_RULES)
    put_in(collection, reader, files / "ferries.html")
    collection.set_removed("note", removed=True)

    def cut_off(do):
        def instead(*arguments):
            calls.append(arguments)
            if len(calls) > cut_off_at:
                raise Crash
            return do(*arguments)

        return instead

    with monkeypatch.context() as patch, pytest.raises(Crash):
        patch.setattr(shutil, "move", cut_off(shutil.move))
        patch.setattr(Collection, "_write", cut_off(Collection._write))
        collection.accept(lambda _: True)
    before, after = [("ferries.html", True, 1), ("note.md", True, 1)], [("ferries.html", True, 2)]
    assert told(collection) == (after if cut_off_at else before)
    collection.accept(lambda _: True)
    assert told(collection) == after
    assert sorted(path.name for path in (collection.folder / "old").iterdir()) == [
        "ferries, version 1.html",
        "note, version 1.md",
    ]


def test_a_number_that_moves_is_no_change():
    before = [passage("d:1", "One text."), passage("d:2", "Another text."), passage("d:3", "Goes away.")]
    after = [passage("d:1", "One text."), passage("d:3", "Another text."), passage("d:4", "Quite new.")]
    change = compared("d", 2, before, after)
    assert (change.n_same, change.n_moved) == (1, 1)
    assert [(one.passage_id, one.what) for one in change.passages] == [("d:4", "new"), ("d:3", "gone")]


def test_a_passage_that_two_share_equally_keeps_its_id():
    after = [passage("d:2", "A boat floats."), passage("d:5", "A boat floats."), passage("d:5#2", "It sinks.")]
    assert changes.renamed([passage("d:5", "A boat floats. It")], after) == {"d:5": "d:5"}


def test_another_reading_is_no_change_and_old_ids_lead_to_new_ones(tmp_path, reader, files):
    collection = make_collection("harbour", tmp_path / "library")
    put_in(collection, reader, files / "ferries.html", files / "boats.docx")
    index(collection, tmp_path / "indexes")
    for path in (collection.folder / "readings").glob("*.json"):  # as an earlier reader would have left them
        told = json.loads(path.read_text(encoding="utf-8"))
        for one in told["passages"]:
            one |= {"passage_id": one["passage_id"].replace(":1.1.1", ":1.1-1"), "text": f"Old {one['text']}"}
        path.with_stem(f"{path.stem.rpartition('-')[0]}-{parse_cache.VERSION - 1}").write_text(json.dumps(told))
        path.unlink()
    write_html(files / "ferries.html", NEW_RULES)
    put_in(collection, reader, files / "ferries.html")
    index(collection, tmp_path / "indexes")
    [update, _] = read_updates(collection.folder / CHANGES)
    [change] = update.documents
    assert change.document_id == "ferries"
    assert [one.what for one in change.passages] == ["changed", "changed", "new"]
    reread = read_rereading(collection.folder / REREAD)
    assert reread.ids["boats:1.1-1"] == "boats:1.1.1"
    assert not any(old.startswith("ferries") for old in reread.ids)
    cited = replace(passage("boats:1.1-1", "Old " + RULES[2][1].replace("Ferry", "Boat")), document_id="boats")
    record = SimpleNamespace(kept=(cited,), passages=(cited,), answer=SimpleNamespace(sentences=()))
    held = open_index("harbour", tmp_path / "indexes")
    assert [one.what for one in stale(record, held)] == ["gone"]
    assert stale(record, held, reread) == ()
    assert Rereading({"a": "b"}).joined(Rereading({"b": "c"})).ids == {"a": "c", "b": "c"}


def test_what_comes_from_elsewhere_gets_a_safe_name():
    assert safe_name("../../etc/passwd") == "passwd"
    assert safe_name("..\\..\\Règles <b>2026</b>.PDF") == "b_.pdf"
    assert safe_name("...") == "document"
    assert safe_name("=cmd|calc!A0.csv") == "cmd_calc_A0.csv"
    assert safe_name(".htaccess") == "htaccess"
    assert len(safe_name("č" * 500 + ".html")) <= 120
    assert "\u202e" not in safe_name("a\u202efdp.exe.html")
    assert member_name("x/../a/rules.pdf") == "x - a - rules.pdf"
    assert corpus_name("FSMR & Règles 2026!", {"fsmr-regles-2026"}) == "fsmr-regles-2026-2"
    assert corpus_name("条例") == "documents"


def test_an_archive_comes_apart_and_climbs_nowhere(tmp_path, reader):
    collection = make_collection("zipped", tmp_path / "library")
    write_html(tmp_path / "a.html")
    inside = (tmp_path / "a.html").read_text()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("rules/a.html", inside)
        archive.writestr("../../out.html", inside + " ")
        archive.writestr("/etc/abs.html", inside + "  ")
        archive.writestr("in.zip", b"PK")
        archive.writestr("run.exe", b"MZ")
        archive.writestr("__MACOSX/a.html", b"x")
    packed.seek(0)
    lines = take(collection, "many.zip", packed, reader)
    assert [one.name for one in collection.read().staged] == ["etc - abs.html", "rules - a.html"]
    assert lines == ["many.zip/in.zip: expected documents, found an archive within an archive; unpack it"]
    outside = [path for path in tmp_path.rglob("*.html") if collection.folder not in path.parents]
    assert outside == [tmp_path / "a.html"]


def test_what_is_there_already_or_of_another_kind_is_left_out(tmp_path, reader, files):
    collection = make_collection("ferries", tmp_path / "library")
    assert put_in(collection, reader, files / "note.md") == []
    (files / "copy.md").write_bytes((files / "note.md").read_bytes())
    assert put_in(collection, reader, files / "copy.md") == [
        "copy.md: the same content as note.md, which waits; left out"
    ]
    (files / "old.doc").write_bytes(b"x")
    assert "save it as .docx" in put_in(collection, reader, files / "old.doc")[0]
    (files / "empty.pdf").write_bytes(b"")
    assert "found an empty file" in put_in(collection, reader, files / "empty.pdf")[0]
    index(collection, tmp_path / "indexes")
    assert [one.name for one in collection.read().staged] == ["empty.pdf"]
    collection.unstage(("empty.pdf",))
    assert not list((collection.folder / "staged").iterdir())
    collection.set_removed("note", removed=True)
    with pytest.raises(CorpusError, match="add one, or delete the corpus"):
        index(collection, tmp_path / "indexes")


def test_an_export_comes_back_and_a_deleted_corpus_too(tmp_path, reader, files):
    library, indexes = tmp_path / "library", tmp_path / "indexes"
    collection = make_collection("ferries", library, "Ferries", "All about them.")
    put_in(collection, reader, *sorted(files.iterdir()))
    index(collection, indexes, FakeEncoder())
    second = replace(collection.read().documents[0], version=2, added="2026-01-02T03:04:05")
    collection.change(lambda before, _moves: replace(before, documents=(second, *before.documents[1:])))
    export(collection, tmp_path / "out.zip")
    with (tmp_path / "out.zip").open("rb") as data:
        again = import_corpus(data, library, reader, ("ferries",))
    assert again.name == "ferries-2"
    assert (again.read().title, again.read().description) == ("Ferries (2)", "All about them.")
    assert again.read().documents[0] == second  # with its version and its day
    index(again, indexes, FakeEncoder())
    texts = [[(p.passage_id, p.text) for p in open_index(name, indexes).passages] for name in ("ferries", "ferries-2")]
    assert texts[0] == texts[1]

    delete(collection, indexes)
    assert [one.name for one in collections(library)] == ["ferries-2"]
    (gone,) = deleted(library)
    assert gone.title == "Ferries"
    restored = restore(gone.key, library, indexes)
    assert restored.read().is_current
    assert open_index("ferries", indexes).manifest.n_documents == 3
    delete(restored, indexes)
    erase(deleted(library)[0].key, library)
    assert deleted(library) == ()
    with pytest.raises(CorpusError, match="choose from the list"):
        erase("../ferries-2", library)


def test_the_time_left_is_told_from_the_pace_of_the_phase_so_far(monkeypatch):
    seconds, clock = [0.0], jobs._Clock()
    monkeypatch.setattr(jobs.time, "monotonic", lambda: seconds[0])
    told = []
    for seconds[0], phase, done in ((0, "encode", 20), (0.5, "encode", 30), (5, "encode", 60), (9, "write", 0)):
        told.append(clock.left(phase, done, 100))
    assert told == [None, None, 5.0, None]  # what was done before the phase began counts not


@pytest.mark.parametrize(
    "about",
    [
        None,
        [],
        {"title": "x", "description": "", "documents": [{"id": "a", "file": "../a.html"}]},
        {"title": "x", "description": "", "documents": [{"id": 3, "file": "a.html"}]},
        {"title": "x", "description": "", "documents": [{"id": "a", "file": "a.exe"}]},
        {"title": "x", "description": "", "documents": [{"id": "a", "file": "a.html"}] * 2},
        {"title": "x", "description": "", "documents": [{"id": "\ud800", "file": "a.html"}]},
        {"title": "\udfff", "description": "", "documents": [{"id": "a", "file": "a.html"}]},
    ],
)
def test_what_is_no_export_is_refused_and_leaves_nothing(tmp_path, reader, about):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("files/a.html", "<p>text")
        archive.writestr("files/a.exe", "MZ")
        if about is not None:
            archive.writestr("corpus.json", json.dumps(about))
    packed.seek(0)
    with pytest.raises(CorpusError, match="expected an export of a corpus"):
        import_corpus(packed, tmp_path / "library", reader)
    assert collections(tmp_path / "library") == ()


@pytest.mark.parametrize("times", [1, 400])
def test_an_import_unpacks_to_no_more_than_an_upload(tmp_path, reader, times):
    """Whether a file is packed a thousand to one, or a small one is named for document after document."""
    packed, size = io.BytesIO(), (220 if times == 1 else 2) * 2**20
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("files/a.txt", "w") as file:
            words = os.urandom(5_000).hex().encode() + b"\n"
            for _ in range(size // len(words)):
                file.write(words)
        documents = [{"id": str(number), "file": "a.txt"} for number in range(times)]
        archive.writestr("corpus.json", json.dumps({"title": "x", "description": "", "documents": documents}))
    assert packed.tell() < 6 * 2**20
    packed.seek(0)
    with pytest.raises(CorpusError, match="expected"):
        import_corpus(packed, tmp_path / "library", reader)
    assert [path for path in (tmp_path / "library").rglob("*") if not path.name.startswith(".")] == []


def test_what_an_import_says_of_itself_is_parsed_elsewhere(tmp_path, reader, monkeypatch):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("corpus.json", '{"title": "", "description": "", "documents": [' + "[]," * 2**21 + "[]]}")
    packed.seek(0)
    texts, loads = [], json.loads
    monkeypatch.setattr(json, "loads", lambda text, **more: texts.append(len(text)) or loads(text, **more))
    with pytest.raises(CorpusError, match="of 2,097,153 documents"):
        import_corpus(packed, tmp_path / "library", reader)
    assert max(texts) < 1_000


def test_only_listed_folders_and_what_lies_in_them_are_offered(tmp_path, reader, files, monkeypatch):
    (files / "away.md").symlink_to("/etc/hostname")
    monkeypatch.setenv("RAGQA_LIBRARY_FOLDERS", f"{files}:{tmp_path / 'nothing'}")
    assert server_folders() == {"drop": files}
    assert files_of(files) == ("boats.docx", "ferries.html", "note.md")
    collection = make_collection("ferries", tmp_path / "library")
    assert take_from_folder(collection, "drop", ("note.md", "../secret.md", "away.md"), reader) == []
    assert [one.name for one in collection.read().staged] == ["note.md"]
    with pytest.raises(CorpusError, match="RAGQA_LIBRARY_FOLDERS lists"):
        take_from_folder(collection, "/etc", ("passwd",), reader)


@pytest.fixture
def watched(tmp_path, monkeypatch):
    """A function that writes a file of the watched folder, a minute old."""
    folder = tmp_path / "watched"
    monkeypatch.setenv("RAGQA_WATCHED_FOLDER", str(folder))

    def write(name, text, age=60.0):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (time.time() - age, time.time() - age))
        return folder

    return write


def test_new_files_and_new_versions_of_the_watched_folder_are_proposed(tmp_path, reader, files, watched):
    collection = make_collection("ferries", tmp_path / "library")
    put_in(collection, reader, files / "note.md", files / "ferries.html")
    index(collection, tmp_path / "indexes")
    folder = watched("note.md", "# Note\n\nFerries run at nine.")
    watched("copy.md", (files / "note.md").read_text())  # held under another name
    watched("2026/fees.md", "# Fees\n\nA keeper must pay ten crowns.")
    found = proposals(folder, [collection])
    assert [(one.name, one.size, one.words) for one in found] == [
        ("2026/fees.md", 37, "new document"),
        ("note.md", 28, "new version of note in ferries"),
    ]
    assert collection.read().staged == ()  # nothing is taken unasked
    new, version = found
    assert take_over(collection, folder, new, reader) == []
    assert take_over(collection, folder, version, reader) == []
    assert [(one.name, one.replaces) for one in collection.read().staged] == [
        ("2026 - fees.md", ""),
        ("note.md", "note"),
    ]
    assert proposals(folder, [collection]) == ()
    put_in(collection, reader)
    index(collection, tmp_path / "indexes")
    watched("note.md", (files / "note.md").read_text())  # the version before is no new one
    watched("2026/fees.md", "# Fees\n\nA keeper must pay twelve crowns.")
    assert [one.words for one in proposals(folder, [collection])] == ["new version of 2026 - fees in ferries"]
    collection.set_removed("2026 - fees", removed=True)
    assert [one.words for one in proposals(folder, [collection])] == ["new document"]


def test_a_dismissed_file_is_proposed_again_when_it_changes_or_somebody_says_so(tmp_path, watched):
    folder, file = watched("note.md", "Ferries run at nine."), tmp_path / "home" / "watched.json"
    (one,) = proposals(folder, [])
    assert dismissed(file) == frozenset()
    set_dismissed(file, one.digest, is_dismissed=True)
    watched("copy.md", "Ferries run at nine.")  # the same words under another name
    assert {found.digest for found in proposals(folder, [])} <= dismissed(file)
    watched("note.md", "Ferries run at ten.")
    assert [found.name for found in proposals(folder, []) if found.digest not in dismissed(file)] == ["note.md"]
    set_dismissed(file, one.digest, is_dismissed=False)
    assert dismissed(file) == frozenset()
    file.write_text("{")
    with pytest.raises(CorpusError, match="what was dismissed is proposed again"):
        dismissed(file)


def test_what_is_hidden_partial_or_elsewhere_is_not_proposed(tmp_path, reader, watched):
    folder = watched(".hidden.md", "Ferries run.")
    watched(".drafts/a.md", "Ferries run.")
    watched("~$lock.docx", "Ferries run.")
    watched("empty.md", "")
    watched("now.md", "Ferries ru", age=0.0)
    watched("later.pdf.part", "Ferries run.")
    watched("all.zip", "Ferries run.")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "s.md").write_text("Ferries run.")
    (folder / "away.md").symlink_to(tmp_path / "secret" / "s.md")
    (folder / "deep").symlink_to(tmp_path / "secret", target_is_directory=True)
    assert proposals(folder, []) == ()
    collection = make_collection("ferries", tmp_path / "library")
    for name in ("away.md", "../secret/s.md", "deep/s.md", ".hidden.md", "gone.md"):
        with pytest.raises(CorpusError, match="in the watched folder, found no such file; look at it again"):
            take_over(collection, folder, Proposal(name, 12), reader)
    assert collection.read().staged == ()


def test_a_watched_file_is_taken_with_the_limits_of_an_upload(tmp_path, reader, watched, monkeypatch):
    folder = watched("note.md", "Ferries run at nine, and at noon.")
    collection = make_collection("ferries", tmp_path / "library")
    monkeypatch.setattr("ragqa.library.upload.MAX_BYTES", 10)
    (one,) = proposals(folder, [collection])
    assert take_over(collection, folder, one, reader) == ["note.md: expected at most 0 MB, found more; split it"]
    assert collection.read().staged == ()


def test_a_watched_folder_is_named_by_a_variable(tmp_path):
    assert watched_folder({}) is None
    assert watched_folder({"RAGQA_WATCHED_FOLDER": str(tmp_path)}) == tmp_path
    with pytest.raises(ConfigError, match="RAGQA_WATCHED_FOLDER: expected a folder, found '/no/where'; make it"):
        watched_folder({"RAGQA_WATCHED_FOLDER": "/no/where"})


def test_jobs_read_and_index_in_the_background(tmp_path, reader, files):
    collection = make_collection("ferries", tmp_path / "library")
    (files / "bad.pdf").write_bytes(b"%PDF-1.4 no")
    for path in sorted(files.iterdir()):
        with path.open("rb") as data:
            take(collection, path.name, data, reader)
    jobs = Jobs(tmp_path / "indexes")
    view = jobs.start(collection, "read", FakeEncoder).wait(60)
    assert (view.phase, view.error, len(view.messages)) == ("Done", "", 1)
    view = jobs.start(collection, "index", FakeEncoder).wait(60)
    assert (view.phase, view.error, view.running) == ("Done", "", False)
    assert jobs.running("ferries") is None
    assert open_index("ferries", tmp_path / "indexes").manifest.n_documents == 3

    def broken():
        raise RuntimeError("secret detail")

    view = jobs.start(collection, "index", broken).wait(60)
    assert "Reference" in view.error
    assert "secret" not in view.error


def test_one_job_a_corpus(tmp_path, reader, files):
    collection = make_collection("ferries", tmp_path / "library")
    put_in(collection, reader, files / "note.md")
    jobs = Jobs(tmp_path / "indexes")
    wait = threading.Event()

    def slow():
        wait.wait(60)
        return FakeEncoder()

    job = jobs.start(collection, "index", slow)
    with pytest.raises(ConfigError, match="being worked on"):
        jobs.start(collection, "read", slow)
    job.stop()
    wait.set()
    assert job.wait(60).stopped
    assert jobs.start(collection, "index", FakeEncoder).wait(60).phase == "Done"


@pytest.mark.parametrize("kind", ["read", "both"])
def test_a_job_that_is_stopped_at_its_last_file_is_not_done(tmp_path, reader, files, monkeypatch, kind):
    collection = make_collection("ferries", tmp_path / "library")
    take(collection, "note.md", io.BytesIO((files / "note.md").read_bytes()), reader)
    reads, stopped = threading.Event(), threading.Event()

    def read(*_):
        reads.set()
        stopped.wait(60)
        raise UnreadableError("the reader was closed")

    monkeypatch.setattr(parse_cache, "read", read)
    job = Jobs(tmp_path / "indexes").start(collection, kind, FakeEncoder)
    assert reads.wait(60)
    job.stop()
    stopped.set()
    view = job.wait(60)
    assert (view.phase, view.stopped, view.messages) == ("Stopped", True, ())


def test_one_job_at_a_time_which_gives_way_to_questions(tmp_path, reader, files):
    asked, encoded, release = threading.Event(), threading.Event(), threading.Event()
    jobs = Jobs(tmp_path / "indexes", is_asked=asked.is_set)
    one, other = (make_collection(name, tmp_path / "library") for name in ("one", "other"))
    for collection in (one, other):
        put_in(collection, reader, files / "note.md")

    class Encoder(FakeEncoder):
        def encode(self, texts):
            encoded.set()
            return super().encode(texts)

    def slow():
        release.wait(60)
        asked.set()
        return Encoder()

    first, second = (jobs.start(collection, "index", slow) for collection in (one, other))
    until = time.monotonic() + 30
    while second.view.phase != "Waiting for another job":
        assert time.monotonic() < until
        time.sleep(0.01)
    assert first.view.phase != "Waiting for another job"
    release.set()
    while "gives way" not in first.view.file:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert not encoded.wait(1)
    asked.clear()
    second.stop()
    assert first.wait(60).phase == "Done"
    assert second.wait(60).stopped
    assert encoded.is_set()


def test_questions_come_from_headings_and_duties():
    passages = [
        passage("a:1", "A firm must keep records.", section="4. REPORTING › 4.1 Record keeping"),
        passage("b:1", "An Auditor must sign.", section="Application"),
        passage("b:2", "No duty here.", section="Colours"),
        passage("c:1", "A firm must apply CDD and AML rules.", section="4. A BANK’S APPROACH TO AML/ CDD"),
        passage("d:1", "A firm must do so.", section="PREAMBLE"),
        passage("d:2", "A firm must do so.", section="Who these rules are for"),
    ]
    on = "What is required on record keeping?", "What is required on a bank’s approach to AML/ CDD?"
    assert questions_of(passages) == (on[0], "What must an Auditor do?", on[1])
    assert questions_of([]) == ()
    term = passage("e:1", "“Lamp oil” means oil for lamps.")
    due = passage("e:2", "A keeper must report a broken lamp within two days.", section="Broken lamps")
    found = questions_of([term, due, *passages])
    assert found[:3] == (
        "By when must a keeper report a broken lamp?",
        "What does “Lamp oil” mean?",
        "What is required on broken lamps?",
    )


def test_an_update_is_read_again_whatever_separates_lines_within_its_texts(tmp_path):
    before, after = (Passage("d:1", "d", text) for text in ("Fees are due.", "Fees\u2028are\u0085due."))
    update = Update("2026-11-26T09:00:00Z", (compared("d", 2, [before], [after]),))
    append(tmp_path / "changes.jsonl", update)
    assert read_updates(tmp_path / "changes.jsonl") == (update,)


@pytest.mark.parametrize("late", ["a file is dropped", "a file is read"])
def test_a_corpus_deleted_while_somebody_else_is_at_it_can_be_restored(tmp_path, reader, files, late):
    library, indexes = tmp_path / "library", tmp_path / "indexes"
    collection = make_collection("harbour", library, "Harbour")
    assert put_in(collection, reader, files / "note.md") == []
    shutil.rmtree(collection.folder / "readings")
    staged = collection.read().staged[0]
    delete(collection, indexes)
    with pytest.raises(CorpusError):
        if late == "a file is read":
            parse_cache.read(collection, staged, reader, MAX_TOKENS)
        else:
            with (files / "ferries.html").open("rb") as data:
                take(collection, "ferries.html", data, reader)
    restored = restore(deleted(library)[0].key, library, indexes)
    assert [one.name for one in restored.read().staged] == ["note.md"]


def test_a_file_that_was_taken_back_while_it_was_read_can_be_added_again(tmp_path, reader, files):
    collection = make_collection("harbour", tmp_path / "library", "Harbour")
    assert put_in(collection, reader, files / "note.md") == []
    shutil.rmtree(collection.folder / "readings")
    staged = collection.read().staged[0]
    collection.unstage((staged.name,))
    with pytest.raises(CorpusError):
        parse_cache.read(collection, staged, reader, MAX_TOKENS)
    assert put_in(collection, reader, files / "note.md") == []


class EndedReader(Reader):
    """A reader whose process is ended by the system, as by Ctrl-C or the service that runs the server."""

    def _exchange(self, process, request):
        process.terminate()
        process.wait()
        return super()._exchange(process, request)


def test_a_reader_that_is_ended_from_without_refuses_no_file_for_ever(tmp_path, reader, files):
    collection = make_collection("harbour", tmp_path / "library", "Harbour")
    with EndedReader() as ended:
        assert len(put_in(collection, ended, files / "note.md")) == 1
    (staged,) = collection.read().staged
    assert parse_cache.read(collection, staged, reader, MAX_TOKENS).passages


def test_an_import_replaces_a_corpus_whose_catalogue_is_damaged_as_its_message_advises(tmp_path, reader, files):
    library = tmp_path / "library"
    collection = make_collection("ferries", library, "Ferries")
    put_in(collection, reader, files / "note.md")
    index(collection, tmp_path / "indexes", FakeEncoder())
    export(collection, tmp_path / "out.zip")
    (collection.folder / "library.json").write_text("torn")
    with pytest.raises(CorpusError, match="import an export of it"):
        collection.read()
    with (tmp_path / "out.zip").open("rb") as data:
        assert import_corpus(data, library, reader).read().title == "Ferries"


def torn_lzma(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a.md", "# Rules\n\nA firm must act at once.")
    content = path.read_bytes()
    start = 30 + len("a.md") + 9  # behind the header of LZMA
    path.write_bytes(content[:start] + b"\xff" * 20 + content[start + 20 :])


def torn_bzip2(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("a.md", "# Rules\n\nA firm must act at once.")
    content = path.read_bytes()
    start = 30 + len("a.md")
    path.write_bytes(content[:start] + b"\xff" * 20 + content[start + 20 :])


def of_two_names(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ä.md", "# Rules\n\nA firm must act at once.")
    path.write_bytes(path.read_bytes().replace("ä".encode(), b"\xff\xfe", 1))


@pytest.mark.parametrize("torn", [torn_lzma, torn_bzip2, of_two_names])
def test_a_damaged_member_is_left_out_in_words_and_the_others_are_taken(tmp_path, reader, torn):
    torn(tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip", "a") as archive:
        archive.writestr("z.md", "# Rules\n\nA clerk must act at once.")
    collection = make_collection("harbour", tmp_path / "library", "Harbour")
    with (tmp_path / "a.zip").open("rb") as data:
        (line,) = take(collection, "a.zip", data, reader)
    assert "expected a whole file, found a damaged one" in line
    assert [one.name for one in collection.read().staged] == ["z.md"]


@pytest.mark.parametrize("packing", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_an_export_with_torn_bytes_is_refused_and_leaves_nothing(tmp_path, reader, packing):
    about = {"ragqa": 1, "title": "Mine", "description": "", "documents": [{"id": "a", "file": "a.md"}]}
    with zipfile.ZipFile(tmp_path / "out.zip", "w", packing) as archive:
        archive.writestr("files/a.md", "# Rules\n\nA firm must act at once.")
        archive.writestr(zipfile.ZipInfo("corpus.json"), json.dumps(about))
    content = (tmp_path / "out.zip").read_bytes()
    start = 30 + len("files/a.md") + 9
    (tmp_path / "out.zip").write_bytes(content[:start] + b"\xff" * 12 + content[start + 12 :])
    with (tmp_path / "out.zip").open("rb") as data, pytest.raises(CorpusError, match="expected an export of a corpus"):
        import_corpus(data, tmp_path / "library", reader)
    assert collections(tmp_path / "library") == ()


def test_a_title_holds_nothing_that_cannot_be_seen(tmp_path):
    collection = make_collection("mine", tmp_path / "library", "My\x00 \u202erules")
    assert collection.read().title == "My rules"
    collection.describe("\x07\u200b", "Of\u202e them\x00.\nAll.")
    assert (collection.read().title, collection.read().description) == ("mine", "Of them.\nAll.")


def test_an_added_file_is_on_disk_before_the_catalogue_names_it(tmp_path, reader, files, monkeypatch):
    collection = make_collection("harbour", tmp_path / "library", "Harbour")
    synced, sync = [], os.fsync

    def noted(descriptor):
        found = os.fstat(descriptor)
        synced.append((found.st_ino, found.st_size))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    with (files / "note.md").open("rb") as data:
        take(collection, "note.md", data, reader)
    (staged,) = collection.read().staged
    found = collection.path_of(staged).stat()
    assert (found.st_ino, found.st_size) in synced
