"""The content security policy in a browser: all that a page draws is drawn, and nothing is asked of elsewhere."""

from tests.support.server import browser_marks, settle

pytestmark = browser_marks(600)


def test_pages_are_whole_under_their_policy_and_may_not_be_framed(page, address):
    said, elsewhere = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("request", lambda request: elsewhere.append(request.url))
    page.goto(address)
    page.locator(".st-key-examples button").first.click()
    page.locator(".rq-line:not(.rq-provisional)").wait_for()
    page.locator(".st-key-tab button", has_text="Scores").first.click()
    page.locator("[data-testid=stVegaLiteChart] canvas, [data-testid=stVegaLiteChart] svg").first.wait_for()
    for name in ("compare", "evaluate", "records"):
        page.goto(f"{address}/{name}")
        page.get_by_role("heading").first.wait_for()
        settle(page)
    assert not [text for text in said if "Content Security Policy" in text or "Content-Security-Policy" in text]
    assert not [url for url in elsewhere if not url.startswith((address, "data:", "blob:"))]
    page.set_content(f'<iframe src="{address}" width=800 height=600></iframe>')
    page.wait_for_timeout(1_000)
    assert not page.frames[-1].locator("[data-testid=stApp]").count()
