"""The topics of a directory: names that are no paths, declarations that read back, and killed processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

import headwater
from headwater import topic
from headwater.errors import DamagedLog, NotALog, TopicError
from headwater.log.embedded.catalog import EmbeddedCatalog


@pytest.mark.parametrize("name", ["../../b/topics/t", "..", ".lock", "x\0y", "x" * 300, "", "a/b"])
def test_a_name_that_would_be_a_path_is_refused_before_any_file_is_touched(tmp_path: Path, name: str) -> None:
    with headwater.open(f"file:{tmp_path / 'a'}") as a, headwater.open(f"file:{tmp_path / 'b'}") as b:
        a.create_topic("mine", "n INT")
        b.create_topic("t", "n INT")
        for call in (a.topic, a.describe, a.read, a.producer, a.delete_topic, a.alter_topic, a.compact):
            with pytest.raises(TopicError, match="invalid topic name"):
                call(name)
        assert [each.name for each in b.topics()] == ["t"]


def test_a_directory_without_a_declaration_is_no_topic(tmp_path: Path) -> None:
    with headwater.open(f"file:{tmp_path / 'log'}") as log:
        log.create_topic("t", "n INT")
        (tmp_path / "log" / "topics" / "lost+found").mkdir()
        assert [each.name for each in log.topics()] == ["t"]


@pytest.mark.parametrize(
    "text", ["", "{", "{}", "[]", '{"schemas": 5}', '{"schemas": [], "id": 5, "name": "t"}']
)
def test_a_damaged_declaration_is_an_error_that_names_the_file(tmp_path: Path, text: str) -> None:
    with headwater.open(f"file:{tmp_path / 'log'}") as log:
        log.create_topic("t", "n INT")
        declared = tmp_path / "log" / "topics" / "t" / "topic.json"
        declared.write_text(text)
        with pytest.raises(DamagedLog, match='topic "t"') as caught:
            log.topic("t")
        assert str(declared) in str(caught.value)


@pytest.mark.parametrize("text", ["[]", '{"format": "x"}', "{}", "", "5"])
def test_a_damaged_marker_is_an_error_that_names_the_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "headwater.json").write_text(text)
    with pytest.raises(NotALog) as caught:
        headwater.open(f"file:{tmp_path}")
    assert str(tmp_path / "headwater.json") in str(caught.value)


def test_a_declaration_that_would_not_read_back_is_never_stored(tmp_path: Path) -> None:
    catalog = EmbeddedCatalog(tmp_path / "log")
    good = topic.create("t", "n INT")
    for bad in (replace(good, retention=timedelta(days=-1)), replace(good, archive="\ud800")):
        with pytest.raises(TopicError, match="cannot be stored"):
            catalog.add(bad)
    assert catalog.names() == []
    added = catalog.add(good).topic
    assert replace(added, id=good.id) == good


def run(code: str, path: Path) -> int:
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code), str(path)], timeout=60).returncode


@pytest.mark.parametrize("deadly", ["os.replace", "os.mkdir"])
def test_a_process_killed_while_it_makes_a_log_leaves_a_directory_that_can_be_used(
    tmp_path: Path, deadly: str
) -> None:
    code = f"""
    import os, sys, headwater
    log = headwater.open(f"file:{{sys.argv[1]}}")
    real = {deadly}
    def dying(path, *rest, **named):
        if "{deadly}" == "os.mkdir":
            real(path, *rest, **named)
        os.kill(os.getpid(), 9)
    {deadly} = dying
    log.create_topic("t", "n INT")
    """
    assert run(code, tmp_path / "log") == -signal.SIGKILL
    assert (tmp_path / "log").is_dir()
    with headwater.open(f"file:{tmp_path / 'log'}") as log:
        log.create_topic("t", "n INT")
        assert [each.name for each in log.topics()] == ["t"]


def test_a_directory_with_only_the_parts_of_a_log_is_one_being_made(tmp_path: Path) -> None:
    for name in ("topics", "groups"):
        (tmp_path / name).mkdir()
    for name in ("state.db", "state.db-wal", ".headwater.json-0123"):
        (tmp_path / name).touch()
    assert headwater.open(f"file:{tmp_path}").topics() == []
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(NotALog, match="is not a log"):
        headwater.open(f"file:{tmp_path}")


@pytest.mark.slow
def test_several_processes_may_make_the_same_log_at_once(tmp_path: Path) -> None:
    code = """
    import os, sys, headwater
    sys.stdin.readline()
    for number in range(20):
        with headwater.open(f"file:{sys.argv[1]}/{number}") as log:
            try:
                log.create_topic("t", "who INT")
            except headwater.errors.TopicExists:
                pass
            with log.producer("t") as producer:
                producer.send({"who": os.getpid()})
    """
    started = [
        subprocess.Popen([sys.executable, "-c", textwrap.dedent(code), str(tmp_path)], stdin=subprocess.PIPE)
        for _ in range(4)
    ]
    for process in started:
        process.communicate(b"\n", timeout=60)
    assert [process.returncode for process in started] == [0, 0, 0, 0]
    for number in range(20):
        with headwater.open(f"file:{tmp_path}/{number}") as log:
            found = {row["who"] for batch in log.read("t") for row in batch.to_pylist()}
            assert found == {process.pid for process in started}


@pytest.mark.slow
def test_what_a_killed_deletion_has_left_is_swept_and_what_a_living_one_removes_is_not(
    tmp_path: Path,
) -> None:
    topics = tmp_path / "log" / "topics"
    with headwater.open(f"file:{tmp_path / 'log'}") as log:
        log.create_topic("t", "n INT")
        code = """
        import os, shutil, sys, headwater
        shutil.rmtree = lambda *_, **__: os.kill(os.getpid(), 9)
        headwater.open(f"file:{sys.argv[1]}").delete_topic("t")
        """
        assert run(code, tmp_path / "log") == -signal.SIGKILL
        assert len(list(topics.glob(".deleted-*"))) == 1
        log.create_topic("u", "n INT")
        assert list(topics.glob(".deleted-*")) == []
        assert _left_by_a_living_deletion(tmp_path / "log", log) == 1


def _left_by_a_living_deletion(root: Path, log: headwater.Log) -> int:
    """Stop a process in the middle of a deletion; return what another's change has left of it."""
    code = """
    import os, shutil, sys, headwater
    shutil.rmtree = lambda *_, **__: (print("removing", flush=True), sys.stdin.readline())
    headwater.open(f"file:{sys.argv[1]}").delete_topic("u")
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"removing\n"
        log.create_topic("v", "n INT")
        left = len(list((root / "topics").glob(".deleted-*")))
        process.kill()
    return left
