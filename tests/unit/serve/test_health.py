"""Whether a server lives and can work."""

from headwater import Server
from serve_kit import call


def test_a_server_says_that_it_lives_and_is_ready(server: Server) -> None:
    assert call(server.url, "GET", "/v1/health").json() == {"status": "alive"}
    assert call(server.url, "GET", "/v1/ready").json() == {"status": "ready"}
