"""What tokens allow."""

from __future__ import annotations

import pytest

from headwater.errors import UsageError
from headwater.serve.http.route import Scope
from headwater.serve.security.scopes import allows, checked


@pytest.mark.parametrize(
    ("scopes", "needed", "subject", "right"),
    [
        (["send:orders"], "send", "orders", True), (["send:orders"], "send", "other", False),
        (["send:*"], "send", "any", True), (["send:*"], "read", "any", False),
        (["read:a"], "read", None, False), (["read:*"], "read", None, True),
        (["read:*"], "operate", None, False), (["operate"], "operate", "x", True),
        (["operate"], "read", "x", True), (["operate"], "send", "x", False), ([], "read", "x", False),
        (["operate:x"], "operate", "x", False),
    ],
)  # fmt: skip
def test_a_token_allows_what_its_scopes_say(
    scopes: list[str], needed: Scope, subject: str | None, right: bool
) -> None:
    assert allows(scopes, needed, subject) is right


@pytest.mark.parametrize("wrong", ["", "write:x", "send", "send:", "operate:x", "read:a b", "read:\n"])
def test_what_is_no_scope_is_refused(wrong: str) -> None:
    with pytest.raises(UsageError):
        checked([wrong])


def test_a_token_without_scopes_is_refused() -> None:
    with pytest.raises(UsageError):
        checked([])
