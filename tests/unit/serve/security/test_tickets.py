"""Tickets: for a while, for one server, for one token."""

from __future__ import annotations

from headwater.serve.security.tickets import Tickets


def test_a_ticket_stands_for_its_token_until_its_time_is_over() -> None:
    tickets = Tickets()
    assert tickets.token(tickets.issue("shop")) == "shop"
    assert tickets.token(tickets.issue("shop", seconds=-1)) is None


def test_another_servers_ticket_and_a_changed_one_are_none() -> None:
    tickets = Tickets()
    ticket = tickets.issue("shop")
    assert Tickets().token(ticket) is None
    for wrong in (ticket[:-2], "x" + ticket[1:], "", "é", ticket + "=="):
        assert tickets.token(wrong) in (None, "shop" if wrong.rstrip("=") == ticket else None)
