"""Files that cannot serve with TLS are told before a server listens, and by their names."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from certificate_kit import WebCertificates, make_certificates
from headwater import ServeSettings
from headwater.errors import UsageError
from headwater.serve.security.certificate import check_certificate


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> WebCertificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def settings(made: WebCertificates, **files: Path | None) -> ServeSettings:
    return replace(ServeSettings(certificate=made.certificate, key=made.key), **files)


def test_a_certificate_with_its_key_is_right_and_so_is_none(made: WebCertificates) -> None:
    check_certificate(settings(made))
    check_certificate(settings(made, certificate=None, key=None))


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"key": None}, "needs a certificate and its key"),
        ({"certificate": None}, "needs a certificate and its key"),
        ({"certificate": Path("nowhere.pem")}, 'no file "nowhere.pem"'),
        ({"key": Path("/")}, 'no file "/"'),
        ({"certificate": "key"}, 'key.pem" is no certificate'),
        ({"certificate": "text"}, 'text.pem" is no certificate'),
        ({"key": "text"}, "cannot be served with the key in"),
        ({"key": "other_key"}, "is not that of the certificate in"),
        ({"key": "locked_key"}, "behind a password"),
    ],
)
def test_what_cannot_serve_is_told_by_its_file(
    made: WebCertificates, files: dict[str, Path | str | None], words: str
) -> None:
    text = made.ca.with_name("text.pem")
    text.write_text("secret words\n")
    named = {
        name: text if file == "text" else getattr(made, file) if isinstance(file, str) else file
        for name, file in files.items()
    }
    with pytest.raises(UsageError, match=words) as refused:
        check_certificate(settings(made, **named))
    assert refused.value.hint and "secret words" not in str(refused.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read_is_told(made: WebCertificates, tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.touch(0o000)
    with pytest.raises(UsageError, match="cannot be read") as refused:
        check_certificate(settings(made, key=key))
    assert refused.value.detail == "Permission denied"
