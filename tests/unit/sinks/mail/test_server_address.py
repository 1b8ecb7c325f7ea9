"""URLs of mail servers, and addresses."""

from __future__ import annotations

import pytest

from headwater.errors import UsageError
from headwater.sinks.mail.server_address import PASSWORD, MailServer, mail_address, mail_server


def test_a_server_is_encrypted_unless_it_is_this_machine() -> None:
    assert mail_server("smtps://mail.example") == MailServer("mail.example", 465, "tls")
    assert mail_server("smtp://127.0.0.1:2525").encryption == "none"
    assert mail_server("smtp://relay.internal?tls=none").encryption == "none"
    assert mail_server("smtp://relay.internal").encryption == "starttls"


def test_a_password_comes_from_the_url_or_the_environment_and_is_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(PASSWORD, "of the environment")
    assert mail_server("smtp://a%40b.example@mail.example").password == "of the environment"
    server = mail_server("smtp://ada:p%40ss@mail.example")
    assert (server.user, server.password) == ("ada", "p@ss")
    assert "p@ss" not in repr(server)
    assert mail_server("smtp://mail.example").password is None


@pytest.mark.parametrize(
    "url",
    [
        "mail.example",
        "http://a",
        "smtp://",
        "smtp://a:port",
        "smtp://a?b=c",
        "smtp://u:p@far.example?tls=none",
    ],
)
def test_what_is_no_server_is_refused(url: str) -> None:
    with pytest.raises(UsageError):
        mail_server(url)


@pytest.mark.parametrize("text", ["", "ops", "a@b\r\nBcc: c@d", "a@b, c@d", "Ops <a@b>", "a@b>", "ä@b"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        mail_address(text, "recipient")
