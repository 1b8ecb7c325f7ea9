"""What verification finds missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.log.embedded import EmbeddedLog


def make(path: Path, **settings: str) -> EmbeddedLog:
    log = EmbeddedLog(path / "log", segment_bytes=800)
    log.create_topic("t", "k STRING, n BIGINT", key="k", **settings)  # type: ignore[arg-type]
    fill(log)
    return log


def fill(log: EmbeddedLog) -> None:
    with log.producer("t") as producer:
        for n in range(10):
            producer.send_batch([{"k": f"k{i}", "n": n} for i in range(10)])
            producer.flush()


def segments(log: EmbeddedLog) -> list[Path]:
    return sorted((log.root / "topics/t/0").glob("*.log"))


def problems(log: EmbeddedLog) -> list[str]:
    return [finding.problem for finding in log.verify("t").findings]


def test_a_missing_active_segment_is_found(tmp_path: Path) -> None:
    log = make(tmp_path)
    assert problems(log) == []
    active = segments(log)[-1]
    active.unlink()
    (problem,) = problems(log)
    assert f"offsets {int(active.stem)} to 99 are missing" in problem


def test_a_missing_only_segment_is_found(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path / "log")
    log.create_topic("t", "k STRING, n BIGINT")
    fill(log)
    segments(log)[0].unlink()
    (problem,) = problems(log)
    assert "offsets 0 to 99 are missing" in problem


@pytest.mark.parametrize("missing", [1, 2, 3])
def test_a_missing_closed_segment_is_found_once(tmp_path: Path, missing: int) -> None:
    log = make(tmp_path)
    gone, following = segments(log)[missing : missing + 2]
    gone.unlink()
    (problem,) = problems(log)
    assert f"offsets {int(gone.stem)} to {int(following.stem) - 1} are missing" in problem


def test_a_gap_behind_a_compacted_segment_is_found(tmp_path: Path) -> None:
    log = make(tmp_path, cleanup="compact")
    log.compact("t")
    with log.producer("t") as producer:
        producer.send_batch([{"k": "a", "n": n} for n in range(50)])
        producer.flush()
        producer.send_batch([{"k": "a", "n": n} for n in range(50)])
    log.close()
    assert problems(log) == []
    compacted = next(path for path in segments(log) if "-" in path.stem)
    end = int(compacted.stem.split("-")[1])
    first = next(path for path in segments(log) if "-" not in path.stem)
    assert int(first.stem) == end
    first.unlink()
    (problem,) = problems(log)
    assert f"offsets {end} to" in problem
