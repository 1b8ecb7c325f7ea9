"""Where secrets come from, and where they do not go."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.errors import UsageError
from headwater.ingest.webhook.secrets import read_secrets


def test_secrets_come_from_the_environment_and_from_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK", "one secret with spaces\n")
    (tmp_path / "hook").write_text("new-secret\nold-secret\n")
    assert read_secrets("env:HOOK").values == ("one secret with spaces",)
    assert read_secrets(f"file:{tmp_path / 'hook'}").values == ("new-secret", "old-secret")
    assert "secret" not in repr(read_secrets("env:HOOK")).lower().replace("secrets(1)", "")


@pytest.mark.parametrize(
    "source", ["env:MISSING", "file:/nowhere/hook", "hunter2hunter2", "env:", "env:SHORT"]
)
def test_what_holds_none_is_refused_without_showing_it(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHORT", "brief")
    with pytest.raises(UsageError) as refused:
        read_secrets(source)
    assert "hunter2" not in str(refused.value)
    assert "brief" not in str(refused.value)
