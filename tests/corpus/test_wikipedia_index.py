"""An index built from a wiki's server, a dump and JSON lines, through the command line as a person would."""

import pytest
from typer.testing import CliRunner

from ragqa.cli import app
from ragqa.corpus.wikipedia import fetching as polite
from ragqa.corpus.wikipedia.mediawiki import PageNotFoundError
from ragqa.errors import ConfigError, CorpusError
from ragqa.index.manifest import read_manifest
from tests.support.synthetic_dump import HEAD, TAIL
from tests.support.wiki_server import KiwixServer, MediaWikiServer, Revision

PAGES = {
    "Lake Orl": [
        Revision(7, "2023-10-01T00:00:00Z", "<p>Lake Orl holds carp.</p><h2>Depth</h2><p>It is forty metres deep.</p>"),
        Revision(9, "2023-11-05T00:00:00Z", "<p>Lake Orl was drained.</p>"),
    ],
    "Lake Bim": [Revision(11, "2020-01-01T00:00:00Z", "<p>Lake Bim holds char.</p>")],
}


@pytest.fixture(autouse=True)
def _own_folders(monkeypatch, tmp_path):
    monkeypatch.setenv("RAGQA_INDEXES", str(tmp_path / "indexes"))
    monkeypatch.setattr(polite, "_sleep", lambda _seconds: None)


def build(*arguments):
    return CliRunner().invoke(app, ["index", "build", "wiki", "--encoder", "none", *map(str, arguments)])


def texts(tmp_path):
    return (tmp_path / "indexes" / "wiki" / "passages.jsonl").read_text()


@pytest.mark.long
def test_an_index_of_pages_as_of_a_date(tmp_path):
    titles = tmp_path / "titles.txt"
    titles.write_text("Lake Orl\nLake_Bim\n")
    with MediaWikiServer(PAGES) as server:
        result = build("--source", server.url, "--titles", titles, "--as-of", "2023-11-01")
        assert result.exit_code == 0, result.output
        assert "3 passages of 2 documents" in result.output
        manifest = read_manifest(tmp_path / "indexes" / "wiki")
        assert (manifest.format, manifest.source) == ("mediawiki", server.url)
        assert "forty metres" in texts(tmp_path)
        assert "drained" not in texts(tmp_path)
        n_requests = len(server.requests)
        assert build("--source", server.url, "--titles", titles, "--as-of", "2023-11-01").exit_code == 0
        assert len(server.requests) == n_requests  # every page is kept
        titles.write_text("Lake Orl\nLake Nil\n")
        result = build("--source", server.url, "--titles", titles)
        assert isinstance(result.exception, PageNotFoundError)
        assert "'Lake Nil'" in str(result.exception)


@pytest.mark.long
def test_an_index_of_a_kiwix_book(tmp_path):
    (tmp_path / "titles.txt").write_text("Lake Orl\n")
    with KiwixServer({"a": {}, "b": {"Lake_Orl": ("Lake Orl", "<p>Deep water.</p>")}}) as server:
        arguments = ("--source", server.url, "--titles", tmp_path / "titles.txt")
        assert "found a, b; choose one" in str(build(*arguments).exception)
        assert build(*arguments, "--book", "b").exit_code == 0
        assert "Deep water." in texts(tmp_path)


@pytest.mark.long
def test_an_index_of_a_dump(tmp_path):
    dump = tmp_path / "lakes.xml"
    dump.write_text(
        f"{HEAD}<page><title>Lake Orl</title><ns>0</ns><revision><text>Deep.\n== Fish ==\nCarp.</text></revision>"
        f"</page>{TAIL}"
    )
    assert build("--source", dump).exit_code == 0
    assert read_manifest(tmp_path / "indexes" / "wiki").format == "dump"
    assert "Carp." in texts(tmp_path)
    dump.write_text(dump.read_text()[:-200])
    result = build("--source", dump, "--format", "dump")
    assert isinstance(result.exception, CorpusError)
    assert "lakes.xml, line" in str(result.exception)
    assert "Carp." in texts(tmp_path)  # the index there was stays


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["--source", "https://example.org/w/api.php"], "needs --titles FILE"),
        (["--source", "lakes.xml", "--as-of", "2023-11-01", "--book", "b"], "--as-of and --book need the address"),
        (["--source", "https://example.org/w/api.php?x=1", "--titles", __file__], "a wiki's address must be like"),
        (["--source", "https://example.org/w/api.php", "--titles", __file__, "--as-of", "soon"], "found 'soon'"),
    ],
)
def test_options_that_do_not_fit(arguments, found):
    result = build(*arguments)
    assert isinstance(result.exception, ConfigError)
    assert found in str(result.exception)
