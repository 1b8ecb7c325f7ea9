"""Commands are imported when they are called, and listed as they describe themselves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from headwater.cli import main
from headwater.cli.lazy_group import LazyGroup

FILE = """
from headwater.sourcing import unique
names = unique("username")
names.open("file:log").claim("ada", "me")
"""
CODE = """
import sys
from headwater.cli import main
try:
    main()
finally:
    print("loaded:", *sorted({"pandas", "pyspark"} & set(sys.modules)), file=sys.stderr)
"""


@pytest.mark.parametrize("name", main.list_commands(click.Context(main)))
def test_the_list_says_of_a_command_what_the_command_does(name: str) -> None:
    assert isinstance(main, LazyGroup)
    command = main.get_command(click.Context(main), name)
    assert command is not None and command.name == name
    assert command.get_short_help_str(1000) == main.lazy[name].help


@pytest.mark.parametrize(
    "words",
    [
        "--help",
        "topic list",
        "topic create orders --schema id\\ BIGINT",
        "produce --help",
        "queue list",
        "lag",
        "events ada --decider names.py",
    ],
)
def test_a_light_command_loads_neither_pandas_nor_spark(tmp_path: Path, words: str) -> None:
    (tmp_path / "names.py").write_text(FILE)
    subprocess.run([sys.executable, "names.py"], cwd=tmp_path, check=True)
    given = [word.replace("\\", " ") for word in words.replace("\\ ", "\\").split()]
    command = [sys.executable, "-c", CODE, *given, *([] if "--help" in given else ["--log", "file:log"])]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1].strip() == "loaded:"
