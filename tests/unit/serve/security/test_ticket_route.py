"""Tickets where no token is needed."""

from headwater import Server
from serve_kit import call


def test_a_server_that_asks_for_no_token_gives_an_empty_ticket(server: Server) -> None:
    assert call(server.url, "POST", "/v1/tickets").json()["ticket"] == ""
