"""The user's line, in messages and in errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.errors import PipelineError, UsageError
from headwater.pipeline.source_line import SourceLine, caller, errors_at, origin


def test_a_line_is_named_as_short_as_it_can_be_found_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert str(SourceLine(str(tmp_path / "shop.py"), 3)) == "shop.py:3"
    assert str(SourceLine("/far/shop.py", 3)) == "/far/shop.py:3"
    assert str(SourceLine("<stdin>", 3)) == "<stdin>:3"


def test_a_caller_is_the_line_that_called_the_function() -> None:
    def declare() -> SourceLine:
        return caller()

    first, second = declare(), declare()
    assert first.file == __file__
    assert first.line == second.line > declare.__code__.co_firstlineno


def test_a_function_begins_with_its_decorators() -> None:
    def unchanged(function):  # type: ignore[no-untyped-def]
        return function

    @unchanged
    def decorated() -> None: ...

    def plain() -> None: ...

    assert origin(plain).line - origin(decorated).line == 3


def test_an_error_names_the_line_and_keeps_its_words() -> None:
    with pytest.raises(PipelineError) as told, errors_at(SourceLine("/far/shop.py", 3)):
        raise UsageError("no", detail="because", hint="do")
    error = told.value
    assert (error.message, error.location, error.hint) == ("no", "/far/shop.py:3", "do")
    assert "because" in str(error)


def test_an_error_keeps_the_line_that_it_had() -> None:
    with pytest.raises(PipelineError) as told, errors_at(SourceLine("/far/shop.py", 3)):
        raise PipelineError("no", location="/near/shop.py:7")
    assert told.value.location == "/near/shop.py:7"
    with pytest.raises(ZeroDivisionError), errors_at(SourceLine("/far/shop.py", 3)):
        raise ZeroDivisionError
