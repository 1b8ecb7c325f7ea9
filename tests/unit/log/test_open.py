"""Opening a log: what is refused, what is left untouched, and what a read-only place still allows."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater
from file_trees import tree
from headwater.errors import LogUnavailable, NotALog, TopicReplaced, UsageError


def run(code: str, *arguments: str) -> str:
    """Run code in another process and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that another user can reach."""
    with tempfile.TemporaryDirectory() as path:
        os.chmod(path, 0o755)
        yield Path(path)


@pytest.mark.parametrize("url", ["data", "file:", "memory:x", "http://example", ""])
def test_an_unknown_url_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="invalid log URL"):
        headwater.open(url)


def test_a_wrong_durability_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="durability"):
        headwater.open(f"file:{tmp_path / 'log'}", durability="maybe")


def test_a_wrong_compression_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match='compression is "lz4", "zstd" or "none", not "gzip"'):
        headwater.open(f"file:{tmp_path / 'log'}", compression="gzip")


def test_one_log_may_hold_batches_of_every_compression(tmp_path: Path) -> None:
    url, sizes = f"file:{tmp_path / 'log'}", []
    for number, compression in enumerate(("none", "lz4", "zstd")):
        with headwater.open(url, compression=compression) as log:
            log.create_topic("t", "n BIGINT, text STRING")
            before = log.describe("t").size or 0
            with log.producer("t") as producer:
                producer.send_batch([{"n": number, "text": "the same again"}] * 1000)
            sizes.append((log.describe("t").size or 0) - before)
    with headwater.open(url) as log:
        assert [row["n"] for batch in log.read("t") for row in batch.to_pylist()] == sorted([0, 1, 2] * 1000)
        assert log.verify().ok
    assert sizes[0] > 2 * max(sizes[1:])


def test_no_compression_takes_nearly_twice_the_space_and_zstd_a_third_less(tmp_path: Path) -> None:
    chance = random.Random(7)
    rows = [
        {
            "who": f"user-{chance.randrange(10_000)}",
            "url": f"/product/{chance.randrange(1000)}",
            "cents": cents,
        }
        for cents in (chance.randrange(100_000) / 100 for _ in range(30_000))
    ]
    sizes = {}
    for how in ("none", "lz4", "zstd"):
        with headwater.open(f"file:{tmp_path / how}", compression=how) as log:
            log.create_topic("t", "who STRING, url STRING, cents DOUBLE")
            with log.producer("t") as producer:
                producer.send_batch(rows)
            sizes[how] = log.describe("t").size or 0
    assert 1.5 < sizes["none"] / sizes["lz4"] < 2
    assert 0.55 < sizes["zstd"] / sizes["lz4"] < 0.75


def test_a_log_that_was_copied_while_nobody_appends_has_everything(tmp_path: Path) -> None:
    with headwater.open(f"file:{tmp_path / 'log'}") as log:
        log.create_topic("t", "n INT", partitions=2)
        with log.producer("t", id="p") as producer:
            producer.send_batch([{"n": n} for n in range(10)])
        with log.consumer("t", group="g") as consumer:
            while consumer.poll(timeout=1) is not None:
                consumer.commit()
        shutil.copytree(tmp_path / "log", tmp_path / "copy")
    with headwater.open(f"file:{tmp_path / 'copy'}") as log, log.producer("t", id="p") as producer:
        producer.send_batch([{"n": 10}])
        producer.flush()
        assert log.verify().ok
        assert sorted(row["n"] for batch in log.read("t") for row in batch.to_pylist()) == list(range(11))
        assert sum(each.records for each in log.lag("g")) == 1


def test_opening_makes_nothing_until_something_is_stored(tmp_path: Path) -> None:
    with headwater.open(f"file:{tmp_path / 'log'}") as log:
        assert log.topics() == []
    assert not (tmp_path / "log").exists()


def test_a_directory_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(NotALog, match="is not a log"):
        headwater.open(f"file:{tmp_path}")
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(NotALog, match="is a file"):
        headwater.open(f"file:{tmp_path / 'thesis.txt'}")


def test_a_log_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "headwater.json").write_text('{"format": 99}')
    with pytest.raises(NotALog, match="newer format") as caught:
        headwater.open(f"file:{tmp_path}")
    assert "99" in str(caught.value)
    (tmp_path / "headwater.json").write_text("{")
    with pytest.raises(NotALog, match="cannot be read"):
        headwater.open(f"file:{tmp_path}")


AS_NOBODY = """
    import os, sys, headwater
    headwater.open("memory:").close()  # imports everything while that is still allowed
    if os.getuid() == 0:
        os.setgid(65534); os.setuid(65534)
    log = headwater.open(f"file:{sys.argv[1]}")
"""


@pytest.mark.slow
def test_a_read_only_log_can_be_read_and_says_why_it_cannot_be_written(public: Path) -> None:
    with headwater.open(f"file:{public / 'log'}") as log:
        log.create_topic("t", "n BIGINT")
        with log.producer("t") as producer:
            producer.send({"n": 1})
        log.seek("reader", "t", 0)
    _read_only(public / "log")
    code = """
    print([row for batch in log.read("t") for row in batch.to_pylist()], log.verify().ok)
    print(log.groups(), [lag.records for lag in log.lag("reader")])
    producer = log.producer("t")
    producer.send_batch([{"n": 2}])
    for attempt in (producer.flush, lambda: log.create_topic("u", "n INT"), lambda: log.consumer("t", "g")):
        try:
            attempt()
        except headwater.HeadwaterError as error:
            print(type(error).__name__, error.message)
    """
    out = run(AS_NOBODY + code, str(public / "log")).splitlines()
    _writable(public / "log")
    assert out[0] == "[{'n': 1}] True"
    assert out[1] == "['reader'] [1]"
    assert len(out) == 5
    assert all(line.startswith("LogRefused") and "cannot" in line for line in out[2:])


def test_who_looks_at_a_topic_without_records_makes_nothing(tmp_path: Path) -> None:
    url = f"file:{tmp_path / 'log'}"
    with headwater.open(url) as log:
        log.create_topic("t", "n BIGINT")
    before = tree(tmp_path)
    with headwater.open(url) as log:
        assert list(log.read("t")) == []
        assert log.resolve("t", "latest").offsets == {0: 0}
        assert log.describe("t").topic.name == "t"
        assert log.verify().ok
    assert tree(tmp_path) == before


def _read_only(root: Path) -> None:
    for path in [root, *root.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)


def _writable(root: Path) -> None:
    for path in [root, *root.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


@pytest.mark.slow
def test_a_directory_that_cannot_be_made_is_an_error(public: Path) -> None:
    (public / "closed").mkdir(mode=0o555)
    code = """
    try:
        log.create_topic("t", "n INT")
    except headwater.HeadwaterError as error:
        print(type(error).__name__, error.message)
    """
    out = run(AS_NOBODY + code, str(public / "closed" / "log"))
    assert out.startswith("LogRefused") and "cannot be written: the directory may not be used" in out


@pytest.mark.slow
def test_a_full_disk_stores_nothing_of_the_batch_and_loses_no_row(tmp_path: Path) -> None:
    """The kernel refuses to let files grow, as a full disk would; then there is room again."""
    code = """
    import resource, sys, headwater
    log = headwater.open(f"file:{sys.argv[1]}")
    log.create_topic("t", "n BIGINT, text STRING", partitions=3)
    with log.producer("t") as producer:
        producer.send_batch([{"n": n} for n in range(10)])
        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, resource.RLIM_INFINITY))
        import random
        chance = random.Random(1)
        rows = [{"n": n, "text": chance.randbytes(900).hex()} for n in range(10, 200)]
        producer.send_batch(rows[:100])
        for row in rows[100:]:
            producer.send(row)
        for _ in range(2):
            try:
                producer.flush()
            except headwater.HeadwaterError as error:
                print(type(error).__name__, "|", error)
            print(sum(len(b) for b in log.read("t")), log.verify().ok)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(sorted(n for b in log.read("t") for n in b.column("n").to_pylist()) == list(range(200)))
    print(log.verify().ok)
    """
    out = run(code, str(tmp_path / "log"))
    assert out.count("LogUnavailable | cannot append to the log") == 2
    assert out.count("the records are kept and will be tried again") == 2
    assert out.splitlines().count("10 True") == 2
    assert out.splitlines()[-2:] == ["True", "True"]


@pytest.mark.slow
def test_a_private_log_is_gone_when_it_is_closed_or_its_process_is_killed() -> None:
    with headwater.open("memory:") as log:
        root: Path = log.root  # type: ignore[attr-defined]
        log.create_topic("t", "n INT")
        assert root.exists()
    assert not root.exists()
    code = """
    import os, signal, headwater
    log = headwater.open("memory:")
    log.create_topic("t", "n INT")
    print(log.root, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    left = Path(done.stdout.strip())
    assert left.exists()
    headwater.open("memory:").close()
    assert not left.exists()


def test_a_deleted_topic_is_noticed_by_those_who_have_it_open(tmp_path: Path) -> None:
    with headwater.open(f"file:{tmp_path}") as log:
        log.create_topic("t", "n INT")
        producer = log.producer("t")
        producer.send_batch([{"n": 1}])
        producer.flush()
        log.delete_topic("t")
        log.create_topic("t", "n INT")
        with pytest.raises(TopicReplaced, match='topic "t" is not the one'):
            producer.send_batch([{"n": 2}])
        with pytest.raises(TopicReplaced, match='topic "t" is not the one'):
            producer.close()
        assert list(log.read("t")) == []


def test_kafka_without_its_client_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in sys.modules if n.startswith(("confluent_kafka", "headwater.log.kafka"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(LogUnavailable, match="not installed") as caught:
        headwater.open("kafka://localhost:9092")
    assert "headwater[kafka]" in str(caught.value)


def test_a_log_stays_where_it_was_opened_when_the_program_goes_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    with headwater.open("file:./data") as log:
        log.create_topic("t", "n INT")
        monkeypatch.chdir(tmp_path / "other")
        with log.producer("t") as producer:
            producer.send_batch([{"n": 1}])
        with log.consumer("t", "g") as consumer:
            assert consumer.poll(5) is not None
            consumer.commit()
        with headwater.open(log.url) as again:
            assert [batch.to_pydict() for batch in again.read("t")] == [{"n": [1]}]
    assert os.listdir(tmp_path / "other") == []
