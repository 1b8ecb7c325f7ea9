"""The small files of a home as one value: what is in it, and that it is written back as it was."""

from __future__ import annotations

from pathlib import Path

from headwater.engine.files.home_snapshot import HomeSnapshot, collect, restore


def home_in(folder: Path) -> Path:
    home = folder / "home"
    for name in (
        "nodes/a/v1/definition.json",
        "queries/own-1/offsets/0",
        "queries/own-1/metadata",
        "places.json",
    ):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(name)
    (home / "nodes/a/v1/checkpoint").symlink_to("../../../queries/own-1")
    return home


def test_a_home_is_written_back_as_it_was(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    snapshot = collect(home, home)
    assert snapshot.links == {"nodes/a/v1/checkpoint": "../../../queries/own-1"}
    other = tmp_path / "other"
    (other / "nodes/b").mkdir(parents=True)
    (other / "nodes/b/left over").write_text("of before")
    (other / "views.db").write_text("of the machine")
    restore(other, HomeSnapshot.from_json(snapshot.to_json()))
    assert collect(other, other) == snapshot
    assert (other / "nodes/a/v1/checkpoint/offsets/0").read_text() == "queries/own-1/offsets/0"
    assert (other / "views.db").exists()
    assert not (other / "nodes/b").exists()


def test_what_is_of_the_machine_alone_is_left_out(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    before = collect(home, home)
    for name in ("spark.log", "views.db", "runner.json", "nodes/a/outbox.db", "nodes/a/rebuild.lock"):
        (home / name).write_text("x")
    (home / "queries/own-1/offsets/.0.crc").write_bytes(b"\xff")
    (home / "queries/own-2.draft").mkdir()
    (home / "queries/own-2.draft/metadata").write_text("{}")
    assert collect(home, home) == before


def test_one_folder_is_brought_up_to_date_with_what_is_gone_there(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    before = collect(home, home)
    (home / "queries/own-1/offsets/0").unlink()
    (home / "queries/own-1/offsets/1").write_text("1")
    (home / "nodes/a/v1/definition.json").write_text("changed")
    query = home / "queries/own-1"
    after = before.updated("queries/own-1", collect(home, query))
    assert after.files == {
        "nodes/a/v1/definition.json": "nodes/a/v1/definition.json",
        "places.json": "places.json",
        "queries/own-1/metadata": "queries/own-1/metadata",
        "queries/own-1/offsets/1": "1",
    }
    assert after.updated(".", collect(home, home)) == collect(home, home)
    assert before.updated("queries/own", HomeSnapshot()) == before, "it is another folder"
