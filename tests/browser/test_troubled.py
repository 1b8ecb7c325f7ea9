"""The page over a pipeline in trouble: what ails is seen at once and said in words."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, expect

from accessibility import TROUBLED, overflow, violations

PAGES = ("", "pipelines/shop/nodes/mailed", "topics/orders", "captures", "nowhere")
"""Those that look otherwise in trouble than in the shop at work."""


@pytest.mark.parametrize("where", PAGES)
def test_axe_finds_nothing_and_nothing_is_wider_than_a_phone(page: Page, troubled: str, where: str) -> None:
    page.goto(f"{troubled}#/{where}")
    expect(page.locator("main h1")).to_be_attached()
    page.wait_for_timeout(200)
    assert violations(page, TROUBLED) == []
    assert overflow(page, 360) == 0


def test_what_needs_attention_is_said_with_what_to_do(page: Page, troubled: str) -> None:
    page.goto(troubled)
    said = page.locator(".attention li")
    expect(said).to_have_count(3)
    expect(said.nth(0)).to_contain_text("Sink mailed is broken")
    expect(said.nth(1)).to_contain_text("headwater mark taxes --time now")
    expect(page.locator(".node.broken")).to_have_text(re.compile("mailed.*broken"))
    expect(page.locator(".node.waiting")).to_have_text(re.compile("invoices.*waits"))
    expect(page.locator(".node.late")).to_have_text(re.compile("unique_orders.*late"))


def test_in_a_narrow_window_a_list_stands_for_the_graph(page: Page, troubled: str) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(troubled)
    expect(page.locator(".node-list li")).to_have_count(22)
    expect(page.locator(".graph")).to_be_hidden()
    page.locator(".node-list a", has_text="invoices").click()
    expect(page.locator("h1")).to_have_text("invoices")


def test_rows_in_are_used_late_duplicate_or_dead(page: Page, troubled: str) -> None:
    page.goto(f"{troubled}#/pipelines/shop/nodes/unique_orders")
    figures = page.locator(".legend b")
    expect(figures).to_have_count(5)
    rows, *parts = (int(text.replace(",", "")) for text in figures.all_inner_texts())
    assert rows == sum(parts) > 0


def test_figures_that_do_not_add_up_are_not_drawn_over(page: Page, troubled: str) -> None:
    def wrong(route: Route) -> None:
        answer = route.fetch()
        found = answer.json()
        found["accounting"]["used"] -= 1
        route.fulfill(response=answer, json=found)

    page.route("**/nodes/unique_orders", wrong)
    page.goto(f"{troubled}#/pipelines/shop/nodes/unique_orders")
    expect(page.locator(".legend")).to_contain_text("please report it")


def test_an_operation_is_confirmed_followed_and_listed(page: Page, troubled: str) -> None:
    page.goto(f"{troubled}#/pipelines/shop/nodes/click_through")
    page.get_by_role("button", name="Verify…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Nothing is changed")
    dialog.get_by_role("button", name="Verify").click()
    expect(dialog.get_by_role("progressbar")).to_be_visible()
    expect(dialog).to_contain_text("Proved: 1,204 rows")
    dialog.get_by_role("button", name="Close").click()
    page.get_by_role("link", name="Operations").click()
    expect(page.locator("main")).to_contain_text("verify click_through")


def test_an_operation_that_fails_says_why(page: Page, troubled: str) -> None:
    page.goto(f"{troubled}#/pipelines/shop/nodes/click_through")
    page.get_by_role("button", name="Reset…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Reset").click()
    expect(dialog.get_by_role("alert")).to_contain_text("Pipeline shop runs")


def test_escape_leaves_a_question_and_asks_nothing_of_the_server(page: Page, troubled: str) -> None:
    asked = []
    page.on("request", lambda request: asked.append(request.url) if request.method == "POST" else None)
    page.goto(f"{troubled}#/topics/orders")
    page.get_by_role("button", name="Seek group mailer").press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert asked == []


def test_the_graph_is_walked_by_keyboard(page: Page, troubled: str) -> None:
    page.goto(troubled)
    node = page.get_by_role("link", name=re.compile("^invoices, view, reads placed_orders and taxes, waits"))
    node.focus()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("invoices")
    expect(page.locator("h1")).to_be_focused()


def test_a_value_with_markup_in_it_is_text(page: Page, troubled: str) -> None:
    def markup(route: Route) -> None:
        answer = route.fetch()
        rows = [{**row, "product": "<img src=x onerror=alert(1)>"} for row in answer.json()["rows"]]
        route.fulfill(response=answer, json={**answer.json(), "rows": rows})

    page.route("**/v1/views/click_through?*", markup)
    page.goto(f"{troubled}#/views/click_through")
    expect(page.locator("td", has_text="<img src=x").first).to_be_visible()
    assert page.locator("main img").count() == 0


def test_a_token_is_asked_for_once_and_used(page: Page, troubled: str, expected_errors: list[str]) -> None:
    expected_errors.append("401")

    def guarded(route: Route) -> None:
        if route.request.headers.get("authorization") == "Bearer sesame":
            route.continue_()
        else:
            route.fulfill(status=401, json={"title": "a token is needed", "status": 401})

    page.route("**/v1/**", guarded)
    page.goto(troubled)
    dialog = page.get_by_role("dialog")
    expect(dialog).to_have_count(1)
    dialog.get_by_label("Token").fill("wrong")
    dialog.get_by_role("button", name="Continue").click()
    expect(dialog.get_by_role("alert")).to_contain_text("A token is needed")
    dialog.get_by_label("Token").fill("sesame")
    dialog.get_by_role("button", name="Continue").click()
    expect(page.locator(".node").first).to_be_visible()
    page.reload()
    expect(page.locator(".node").first).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_server_without_pipelines_says_how_to_get_one(page: Page, troubled: str) -> None:
    page.route("**/v1/pipelines", lambda route: route.fulfill(json={"pipelines": []}))
    page.goto(troubled)
    expect(page.locator("main")).to_contain_text("headwater serve shop.py")
