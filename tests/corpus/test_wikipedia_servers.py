"""MediaWiki's action API and kiwix-serve, asked over real HTTP: what is found, kept, tried again and refused."""

import gzip
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from types import SimpleNamespace

import pytest

import ragqa
from ragqa.corpus.wikipedia import fetching as polite
from ragqa.corpus.wikipedia.kiwix import Kiwix
from ragqa.corpus.wikipedia.mediawiki import MediaWiki, PageNotFoundError, moment_of
from ragqa.corpus.wikipedia.pages import PageStream, open_pages, read_titles
from ragqa.errors import ConfigError, CorpusError
from tests.support.wiki_server import Failure, KiwixServer, MediaWikiServer, Revision, api_failure

LAKE = """<table class="infobox"><tbody><tr><th colspan="2">Lake Orl</th></tr><tr><th>Depth</th>
<td>40&#160;m<br>(mean)</td></tr></tbody></table><p><b>Lake Orl</b>
is deep.<sup class="reference"><a href="#c">[1]</a></sup></p>
<div class="mw-heading mw-heading2"><h2 id="Fish">Fish</h2><span class="mw-editsection">[edit]</span></div><p>Carp.</p>
<div class="mw-heading mw-heading3"><h3>Rare</h3></div><table class="wikitable"><tr><th>Kind</th><th>Year</th></tr>
<tr><td>Char</td><td>1990</td></tr></table><div class="navbox">Other lakes</div>"""
PAGES = {
    "Lake Orl": [
        Revision(7, "2023-10-01T00:00:00Z", "<p>An old text.</p>"),
        Revision(9, "2023-11-05T00:00:00Z", LAKE),
    ],
    "Lake Bim": [Revision(11, "2020-01-01T00:00:00Z", "<p>A small lake.</p>")],
    "Lake Dup": [Revision(12, "2020-01-01T00:00:00Z", "<p>A third lake.</p>")],
    "Hill & Sons": [Revision(13, "2020-01-01T00:00:00Z", "<p>A firm.</p>")],
}


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    """The pauses made, in seconds; none is really made. No proxy of the machine's own."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    made = []
    monkeypatch.setattr(polite, "_sleep", made.append)
    return made


@pytest.fixture
def server():
    with MediaWikiServer(PAGES, {"Orl": "Lake Orl"}) as running:
        yield running


@pytest.fixture
def wiki(server, tmp_path):
    return MediaWiki(server.url, tmp_path / "cache", requests_per_second=1000)


def test_the_page_of_today_as_markdown_with_infobox_table_and_sections(wiki, server):
    page = wiki.page("Lake Orl")
    assert (page.title, page.revision) == ("Lake Orl", 9)
    assert page.url == f"{server.root}/w/index.php?title=Lake_Orl&oldid=9"
    assert page.text == (
        "| Lake Orl | |\n| --- | --- |\n| Depth | 40 m, (mean) |\n\nLake Orl is deep.\n\n"
        "## Fish\n\nCarp.\n\n### Rare\n\n| Kind | Year |\n| --- | --- |\n| Char | 1990 |"
    )


def test_a_revision_is_one_request_and_is_kept(wiki, server, tmp_path):
    assert wiki.page("Lake Orl", revision=7).text == "An old text."
    assert len(server.requests) == 1
    again = MediaWiki(server.url, tmp_path / "cache").page("Lake Orl", revision=7)
    assert (again.revision, len(server.requests)) == (7, 1)


@pytest.mark.parametrize(
    ("as_of", "revision"),
    [
        ("2023-11-01", 7),
        (date(2023, 11, 6), 9),
        (datetime(2023, 11, 5, tzinfo=UTC), 9),
        ("2023-11-05T01:00:00+02:00", 7),
    ],
)
def test_the_page_as_of_a_moment(wiki, server, as_of, revision):
    assert wiki.page("Lake Orl", as_of=as_of).revision == revision
    n_requests = len(server.requests)
    assert wiki.page("Lake Orl", as_of=as_of).revision == revision
    assert len(server.requests) == n_requests  # past: the same for ever


def test_the_page_of_now_is_asked_for_each_time(wiki, server):
    assert wiki.page("Lake Orl").revision == 9
    server.pages = {**PAGES, "Lake Orl": [*PAGES["Lake Orl"], Revision(20, "2024-01-01T00:00:00Z", "<p>Newer.</p>")]}
    assert wiki.page("Lake Orl").text == "Newer."


@pytest.mark.long
def test_redirects_of_today_and_of_an_old_revision_are_followed(wiki, server):
    assert wiki.page("Orl").title == "Lake Orl"
    assert wiki.page("orl", as_of="2023-11-01").revision == 7
    moved = (
        '<div class="redirectMsg"><p>Redirect to:</p><ul class="redirectText"><li><a href="/wiki/Hill_%26_Sons" '
        'title="Hill &amp; Sons">Hill &amp; Sons</a></li></ul></div>'
    )
    server.pages = {**PAGES, "Hills": [Revision(30, "2021-01-01T00:00:00Z", moved)]}
    page = wiki.page("Hills", as_of="2022-01-01")
    assert (page.title, page.text) == ("Hill & Sons", "A firm.")
    loop = moved.replace("Hill &amp; Sons", "Loop").replace("Hill_%26_Sons", "Loop")
    server.pages = {"Loop": [Revision(31, "2021-01-01T00:00:00Z", loop)]}
    with pytest.raises(CorpusError, match="more than 3 redirects to 'Loop'"):
        wiki.page("Loop")


def test_pages_that_are_not_there_are_named(wiki):
    with pytest.raises(PageNotFoundError, match="'Lake Nil'.*has no such page"):
        wiki.page("Lake Nil")
    with pytest.raises(PageNotFoundError, match=r"'Lake <b>', which this wiki refuses: .*invalid characters"):
        wiki.page("Lake <b>")
    with pytest.raises(
        PageNotFoundError, match="of 2019-01-01T00:00:00Z or before, found that the page was written later"
    ):
        wiki.page("Lake Bim", as_of="2019-01-01")
    with pytest.raises(PageNotFoundError, match=r"revision 99.*nosuchrevid \(There is no revision with ID 99"):
        wiki.page("Lake Bim", revision=99)
    for title in ("", " _ ", "A|B", "x" * 600):
        with pytest.raises(PageNotFoundError, match="title of one page"):
            wiki.page(title)
    with pytest.raises(ConfigError, match="found 'yesterday'"):
        wiki.page("Lake Bim", as_of="yesterday")


def test_search_follows_continuations_up_to_the_limit(wiki, server):
    assert wiki.search("lake") == ("Lake Orl", "Lake Bim", "Lake Dup")
    assert [asked.query.get("sroffset") for asked in server.requests] == [None, "2"]
    assert wiki.search("lake", limit=1) == ("Lake Orl",)
    assert (wiki.search("nothing at all"), wiki.search("  "), wiki.search("lake", limit=0)) == ((), (), ())


def test_a_revision_that_only_comes_in_a_continuation(wiki, server):
    server.splits_revisions = True
    assert wiki.page("Lake Bim").revision == 11


def test_a_continuation_that_never_ends_is_left(wiki, server, monkeypatch):
    endless = {"continue": {"sroffset": 1, "continue": "-||"}, "query": {"search": [{"title": "Same"}]}}
    monkeypatch.setattr(server, "_search", lambda _query: endless)
    assert wiki.search("x", limit=500) == ("Same",)
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "failure",
    [
        Failure(429, retry_after="7"),
        Failure(503, retry_after="7"),
        Failure(500),
        Failure(0),
        api_failure("maxlag"),
        api_failure("ratelimited"),
        api_failure("internal_api_error_DBQueryError", status=500),
    ],
)
@pytest.mark.long
def test_what_passes_is_tried_again(wiki, server, pauses, failure):
    server.failures += [failure, failure]
    assert wiki.page("Lake Bim", revision=11).text == "A small lake."
    waited = [pause for pause in pauses if pause >= 1]
    assert len(waited) == 2
    if failure.retry_after == "7":
        assert all(7 <= pause <= 7 * 1.25 for pause in waited)
    else:
        assert 1 <= waited[0] <= 1.25
        assert 2 <= waited[1] <= 2.5


@pytest.mark.long
def test_what_does_not_pass_ends_after_six_tries_with_what_was_asked(wiki, server, pauses):
    server.failures += [Failure(429, retry_after="99999")] * 9
    with pytest.raises(CorpusError, match=r"the page 'Lake Bim' at revision 11 from 127.*HTTP 429 in try 6 of 6"):
        wiki.page("Lake Bim", revision=11)
    assert len(server.requests) == 6
    assert max(pauses) == polite.MAX_PAUSE_SECONDS


def test_an_error_that_stays_is_not_tried_again(wiki, server):
    server.failures.append(api_failure("badtoken", "Invalid <b>token</b>."))
    with pytest.raises(CorpusError, match="badtoken"):
        wiki.page("Lake Bim", revision=11)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "body",
    [b"<html>a page</html>", b"[]", b"", b"\xff\xfe", b'{"parse": 3}', b'{"parse": {"text": []}}', b"[" * 100_000],
)
def test_an_answer_that_is_none_is_refused_at_once(wiki, server, body):
    server.failures.append(Failure(200, body))
    with pytest.raises(CorpusError, match="check"):
        wiki.page("Lake Bim", revision=11)
    assert len(server.requests) == 1


def test_too_long_an_answer_is_refused(wiki, server, monkeypatch):
    monkeypatch.setattr(polite, "MAX_ANSWER_BYTES", 1000)
    server.failures += [Failure(200, b"x" * 5000)] * 6
    with pytest.raises(CorpusError, match="more than 1000 bytes"):
        wiki.page("Lake Bim", revision=11)


def test_who_asks_is_said_and_lag_is_minded(wiki, server):
    wiki.page("Lake Bim")
    for asked in server.requests:
        assert asked.headers["user-agent"].startswith(f"ragqa/{ragqa.__version__} (")
        assert asked.query["maxlag"] == "5"
        assert "gzip" in asked.headers["accept-encoding"]


@pytest.mark.long
def test_one_request_at_a_time_at_the_rate(server, tmp_path, pauses, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(polite, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def sleep(seconds):
        now[0] += seconds

    monkeypatch.setattr(polite, "_sleep", sleep)
    wiki = MediaWiki(server.url, tmp_path, requests_per_second=50)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda title: wiki.page(title), [title for title in PAGES for _ in range(2)]))
    assert server.most_at_once == 1
    assert now[0] >= (len(server.requests) - 1) / 50 * (1 - 1e-9)
    with pytest.raises(ConfigError, match="requests per second"):
        MediaWiki(server.url, tmp_path, requests_per_second=0)


@pytest.mark.long
def test_a_spoilt_cache_is_fetched_again(wiki, server, tmp_path):
    wiki.page("Lake Bim", revision=11)
    (file,) = (tmp_path / "cache").glob("*/*.json.gz")
    whole = file.read_bytes()
    for spoilt in (whole[:-9], b"", b"x", gzip.compress(b"[]"), gzip.compress(json.dumps({"html": 3}).encode())):
        file.write_bytes(spoilt)
        assert wiki.page("Lake Bim", revision=11).text == "A small lake."
        assert file.read_bytes() == whole
    assert len(server.requests) == 6
    assert not list((tmp_path / "cache").glob("*/*.part"))


def test_a_kept_page_under_another_key_is_not_believed(wiki, server, tmp_path):
    wiki.page("Lake Bim", revision=11)
    (first,) = (tmp_path / "cache").glob("*/*.json.gz")
    wiki.page("Lake Dup", revision=12)
    (second,) = set((tmp_path / "cache").glob("*/*.json.gz")) - {first}
    second.write_bytes(first.read_bytes())
    assert wiki.page("Lake Dup", revision=12).text == "A third lake."


def test_a_cache_that_cannot_be_written_costs_requests_only(server, tmp_path):
    (tmp_path / "file").write_text("no folder")
    wiki = MediaWiki(server.url, tmp_path / "file" / "cache")
    assert wiki.page("Lake Bim", revision=11).text == wiki.page("Lake Bim", revision=11).text == "A small lake."
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "url", ["", "en.wikipedia.org", "ftp://x/api.php", "http://me:pw@x/api.php", "http://x/a?b", "http://x:99999"]
)
def test_what_is_no_address_is_refused(url, tmp_path):
    with pytest.raises(ConfigError, match="a wiki's address must be like https://en.wikipedia.org/w/api.php"):
        MediaWiki(url, tmp_path)


def test_moments():
    assert moment_of("2023-11-01") == moment_of(date(2023, 11, 1)) == datetime(2023, 11, 1, tzinfo=UTC)
    assert moment_of(datetime(2023, 11, 1, 5)) == datetime(2023, 11, 1, 5, tzinfo=UTC)


# As a corpus ---------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_titles_become_a_stream_of_articles(server, tmp_path):
    (tmp_path / "titles.txt").write_text("Lake_Orl\n\nLake Bim\nOrl\nLake Dup\nLake Bim\n")
    titles = read_titles(tmp_path / "titles.txt")
    assert titles == ("Lake Orl", "Lake Bim", "Orl", "Lake Dup")
    stream = open_pages(server.url, titles, tmp_path / "cache", as_of="2023-12-01", max_tokens=30)
    articles = list(stream.articles())
    assert [position for position, _ in articles] == [0, 1, 3]  # "Orl" leads to the first
    first = articles[0][1]
    assert {passage.title for passage in first} == {"Lake Orl"}
    assert [passage.section for passage in first] == ["", "Fish", "Fish › Rare"]
    assert [passage.passage_id for passage in first] == ["Lake Orl:1", "Lake Orl:2", "Lake Orl:3"]
    n_requests = len(server.requests)
    for start in range(5):
        assert list(stream.articles(start)) == [item for item in articles if item[0] >= start]
    assert len(server.requests) == n_requests
    assert (stream.format, stream.name) == ("mediawiki", server.url)


def test_the_identity_changes_with_what_is_read(server, tmp_path):
    def identity(titles=("Lake Bim",), as_of="2023-12-01", max_tokens=128):
        return open_pages(server.url, titles, tmp_path, as_of=as_of, max_tokens=max_tokens).identity()

    same = identity()
    assert same == identity()
    assert len({same, identity(("Lake Orl",)), identity(as_of="2023-12-02"), identity(max_tokens=9)}) == 4
    assert open_pages(server.url, ("Lake Bim",), tmp_path).as_of.time().isoformat() == "00:00:00"  # today's start
    assert server.requests == []


def test_a_missing_title_is_named_with_its_place(server, tmp_path):
    stream = open_pages(server.url, ("Lake Bim", "Lake Nil"), tmp_path)
    with pytest.raises(PageNotFoundError, match=r"'Lake Nil'.*\(title 2 of 2\)"):
        list(stream.articles())


def test_a_list_without_titles_is_refused(tmp_path):
    (tmp_path / "titles.txt").write_text("\n \n")
    with pytest.raises(CorpusError, match="one a line, found none"):
        read_titles(tmp_path / "titles.txt")


# Kiwix ---------------------------------------------------------------------------------------------------------------

BOOK = {
    "Lake_Orl": ("Lake Orl", f"<html><head><title>Lake Orl</title></head><body><h1>Lake Orl</h1>{LAKE}</body></html>"),
    "Orl": "Lake_Orl",
    "A/Old_path": ("Old path", "<p>An older book.</p>"),
    "odd/17": ("A named page", "<p>Its path says nothing.</p>"),
    "style.css": ("style", "x"),
} | {f"Pond_{n}": (f"Pond {n}", "<p>A pond.</p>") for n in range(30)}


@pytest.fixture(params=["", "/kiwix"])
def kiwix(request, tmp_path):
    with KiwixServer({"lakes_en_2023-11": BOOK}, request.param) as server:
        yield Kiwix(server.url, tmp_path, requests_per_second=1000), server


@pytest.mark.long
def test_kiwix_pages_by_title_redirect_old_path_and_list_of_titles(kiwix):
    wiki, server = kiwix
    page = wiki.page("Lake Orl")
    assert page.text.startswith("| Lake Orl | |\n| --- | --- |\n| Depth | 40 m, (mean) |\n\nLake Orl is deep.")
    assert page.url == f"{server.url}/content/lakes_en_2023-11/Lake_Orl"
    assert wiki.page("Orl") == page
    assert wiki.page("Old path").text == "An older book."
    assert not any(asked.path.endswith("/suggest") for asked in server.requests)
    assert wiki.page("A named page").text == "Its path says nothing."
    n_requests = len(server.requests)
    assert wiki.page("Lake_Orl") == page
    assert len(server.requests) == n_requests
    with pytest.raises(PageNotFoundError, match="the page 'Nowhere' in the book 'lakes_en_2023-11'"):
        wiki.page("Nowhere")


def test_kiwix_search_asks_for_further_results(kiwix):
    wiki, server = kiwix
    assert wiki.search("pond", limit=28) == tuple(f"Pond {n}" for n in range(28))
    assert [asked.query["start"] for asked in server.requests if "pattern" in asked.query] == ["1", "26"]
    assert wiki.search("no such word") == wiki.search(" ") == ()


@pytest.mark.long
def test_kiwix_books_and_which_is_read(tmp_path):
    with KiwixServer({f"book {n}": {"A": ("A", "<p>a</p>")} for n in range(60)}) as server:
        wiki = Kiwix(server.url, tmp_path)
        assert [book.name for book in wiki.books()] == [f"book {n}" for n in range(60)]
        assert [asked.query["start"] for asked in server.requests] == ["0", "50"]
        with pytest.raises(CorpusError, match="expected one book, as none was named at .* found book 0, book 1"):
            wiki.page("A")
        with pytest.raises(CorpusError, match="expected the book 'nil'"):
            Kiwix(server.url, tmp_path, "nil").page("A")
        assert Kiwix(server.url, tmp_path, "book 7").page("A").text == "a"


def test_kiwix_failures(kiwix, pauses):
    wiki, server = kiwix
    server.failures += [Failure(503), Failure(0)]
    assert wiki.book.n_articles == len(BOOK)
    assert len([pause for pause in pauses if pause >= 1]) == 2
    server.failures.append(Failure(404))
    with pytest.raises(CorpusError, match="HTTP 404; check that the address is a Kiwix server's"):
        wiki.search("pond")


@pytest.mark.parametrize(
    ("xml", "found"),
    [
        ('<!DOCTYPE x [<!ENTITY a "b">]><feed/>', "a document type declaration"),
        ("<feed><entry>", "XML that cannot be read"),
        ("<html/>", "the element <html>"),
        ("", "XML that cannot be read"),
    ],
)
def test_kiwix_answers_that_are_none(tmp_path, xml, found):
    with KiwixServer({}) as server:
        server.decorate = lambda _xml: xml
        with pytest.raises(CorpusError, match=f"a catalogue of books as XML from .*{found}"):
            Kiwix(server.url, tmp_path).books()


def test_kiwix_as_a_corpus(kiwix, tmp_path):
    _, server = kiwix
    stream = open_pages(server.url, ("Lake Orl", "Pond 3"), tmp_path)
    assert isinstance(stream, PageStream)
    assert stream.format == "kiwix"
    assert stream.name == f"{server.url}, lakes_en_2023-11"
    assert [(position, passages[0].title) for position, passages in stream.articles()] == [
        (0, "Lake Orl"),
        (1, "Pond 3"),
    ]
    assert list(stream.articles(1)) == list(stream.articles())[1:]
    before = stream.identity()
    assert before == open_pages(server.url, ("Lake Orl", "Pond 3"), tmp_path).identity()
