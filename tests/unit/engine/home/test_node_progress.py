"""The clock of a node with several inputs: silent ones do not hold it, and it never goes back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st
from tests.unit.engine.source.test_offset_plan import Feed, begin

from headwater.engine.home import checkpoint, node_progress
from headwater.engine.home.checkpoint import Input, InputProgress
from headwater.engine.home.node_progress import RETAINED, NodeProgress
from headwater.engine.source.watermark import NEVER, SourceProgress
from headwater.log import Position

SECOND = 1_000_000
NOW = 1_000_000 * SECOND
REST = 10 * SECOND


def heard(clock: int, lateness: int = 0, at: int = NOW) -> Input:
    return Input(Position("t", {0: 1}), clock, False, at, lateness, REST)


def silent(clock: int, lateness: int = 0, at: int = NOW) -> Input:
    return replace(heard(clock, lateness, at), silent=True)


def told(*inputs: Input) -> int | None:
    return InputProgress({str(number): each for number, each in enumerate(inputs)}).watermark


def test_the_input_that_is_furthest_behind_holds_the_clock() -> None:
    assert told(heard(100), heard(50)) == 50


def test_inputs_that_tell_no_time_do_not_count() -> None:
    assert told(Input(Position("t", {0: 1})), heard(50)) == 50
    assert told(Input(Position("t", {0: 1}))) is None


def test_a_silent_input_does_not_hold_the_others() -> None:
    assert told(heard(100), heard(90), silent(5)) == 90
    assert told(heard(100), silent(300)) == 100


def test_time_does_not_go_on_to_what_a_silent_input_may_have_under_way() -> None:
    assert told(heard(NOW), silent(5)) == NOW - REST
    assert told(heard(NOW, 5 * SECOND), silent(5, 60 * SECOND)) == NOW - REST - 60 * SECOND
    assert told(heard(NOW), silent(NOW - SECOND)) == NOW - SECOND, "it has said so itself"


def test_one_whose_clock_is_ahead_does_not_speak_for_a_silent_input() -> None:
    year = 365 * 86_400 * SECOND
    assert told(heard(NOW + 60 * SECOND), silent(5)) == NOW - REST
    assert told(silent(NOW + year, at=NOW - 50 * SECOND), silent(5, at=NOW)) == NOW


def test_where_all_are_silent_time_goes_to_the_newest() -> None:
    assert told(silent(100), silent(50)) == 100
    assert told(silent(NOW, at=NOW), silent(50, 30 * SECOND)) == NOW - 30 * SECOND


def test_the_input_that_others_wait_for_is_known() -> None:
    assert InputProgress({"a": heard(100), "b": heard(5), "c": silent(1)}).slowest == "b"
    assert InputProgress({"a": heard(100), "b": Input(Position("t", {0: 1}))}).slowest is None
    assert InputProgress({"a": heard(5), "b": heard(5)}).slowest is None
    assert InputProgress({"a": heard(NEVER), "b": silent(5)}).slowest == "a"
    assert InputProgress({"a": silent(5)}).slowest is None


def test_a_clock_does_not_go_back_and_a_repeated_batch_has_the_same(tmp_path: Path) -> None:
    far = InputProgress({"a": silent(100), "b": silent(50)})
    back = InputProgress({"a": silent(100), "b": heard(60)})
    done = NodeProgress().after(0, far)
    assert done.watermark(1, back) == 100
    after = done.after(1, back)
    home = tmp_path / "nodes" / "totals" / "v1"
    (home / "checkpoint").mkdir(parents=True)
    node_progress.write(home / "checkpoint", {home: after})
    again = node_progress.read(home)
    assert again == after
    assert (again.watermark(0, far), again.watermark(1, back)) == (100, 100)
    assert again.after(1, back) == after


def test_nodes_of_a_query_are_noted_together_and_one_that_is_away_stays(tmp_path: Path) -> None:
    query, homes = tmp_path / "query", [tmp_path / "nodes" / name / "v1" for name in "ab"]
    query.mkdir()
    for home in homes:
        home.mkdir(parents=True)
        (home / "checkpoint").symlink_to(query)
    assert node_progress.read(homes[0]) == NodeProgress()
    first = NodeProgress().after(0, InputProgress({"x": heard(5)}))
    node_progress.write(query, dict.fromkeys(homes, first))
    second = first.after(1, InputProgress({"x": heard(6)}))
    node_progress.write(query, {homes[0]: second})
    assert [node_progress.read(home) for home in homes] == [second, first]


def test_clocks_are_kept_as_long_as_offsets_are() -> None:
    done = NodeProgress()
    for batch in range(3 * RETAINED):
        done = done.after(batch, InputProgress({"a": heard(batch)}))
    assert list(done.clocks) == list(range(2 * RETAINED, 3 * RETAINED))


ORDERS, CLICKS = Position("orders", {0: 0}), Position("clicks", {0: 0})


def done(folder: Path, batch: int, **offsets: int) -> None:
    """Leave what Spark leaves of a micro-batch that is done."""
    told = {
        name: {"topic": name, "id": None, "timed": False, **SourceProgress({0: offset}).to_json()}
        for name, offset in offsets.items()
    }
    for kind, text in (("offsets", f"v1\n{{}}\n{json.dumps(told)}"), ("commits", "v1")):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        (folder / kind / str(batch)).write_text(text)


def test_a_start_that_came_to_nothing_does_not_keep_a_node_from_its_inputs(tmp_path: Path) -> None:
    checkpoint.write_start(tmp_path, {"orders": Position("orders", {0: 3})})
    checkpoint.write_start(tmp_path, {"orders": ORDERS, "clicks": CLICKS})
    assert checkpoint.read_start(tmp_path) == {"clicks": CLICKS, "orders": Position("orders", {0: 3})}
    done(tmp_path, 0, orders=5, clicks=5)
    checkpoint.write_start(tmp_path, {"orders": ORDERS, "clicks": CLICKS, "views": Position("views", {0: 0})})
    assert list(checkpoint.read_start(tmp_path)) == ["clicks", "orders"], "Spark counts the inputs of a query"


def test_a_node_whose_query_began_without_its_inputs_has_missed_them(tmp_path: Path) -> None:
    place = tmp_path / "checkpoint"
    checkpoint.write_start(place, {"orders": ORDERS})
    assert not node_progress.has_missed(NodeProgress(), place, ["clicks"]), "nothing has been done"
    done(place, 0, orders=0)
    assert not node_progress.has_missed(NodeProgress(), place, ["orders"]), "there was nothing to do"
    assert node_progress.has_missed(NodeProgress(), place, ["clicks"])
    assert node_progress.has_missed(NodeProgress(), place, ["orders", "clicks"])
    done(place, 1, orders=5)
    assert node_progress.has_missed(NodeProgress(), place, ["orders"])
    assert not node_progress.has_missed(NodeProgress(1, {"orders": "orders:0=5"}), place, ["orders"])


LATENESS = [0, 3 * SECOND, 30 * SECOND]
arrivals = st.lists(
    st.tuples(st.sampled_from([0, 1, 4, 15, 70]), st.integers(0, 30), st.sampled_from("xy")), max_size=12
)


@given(
    inputs=st.lists(st.tuples(arrivals, st.sampled_from(LATENESS)), min_size=2, max_size=3),
    pauses=st.lists(st.sampled_from([1, 2, 12, 40]), min_size=1, max_size=40),
)
@example(  # one is set aside before the other, and had come further
    inputs=[([(0, 0, "x")], 30 * SECOND), ([(1, 0, "x"), (1, 2, "y")], 30 * SECOND)], pauses=[12]
)
def test_nothing_is_late_that_keeps_to_its_lateness_whoever_is_silent(
    inputs: list[tuple[list[tuple[int, int, str]], int]], pauses: list[int]
) -> None:
    now, at, done = 1000, [begin() for _ in inputs], NodeProgress()
    newest = NEVER
    for batch, pause in enumerate([*pauses, *[11] * 60]):
        now += pause
        feeds = [_until(now, told, lateness) for told, lateness in inputs]
        reached = [
            feed.step(before, now=now * SECOND, lateness=lateness, silence=REST)
            for feed, before, (_, lateness) in zip(feeds, at, inputs, strict=True)
        ]
        before = done.watermark(batch - 1, _reached(at, inputs)) if batch else NEVER
        assert before is not None
        for feed, first, last in zip(feeds, at, reached, strict=True):
            times = [each.newest for each in feed.parts[0][first.offsets[0] : last.offsets[0]] if each.newest]
            assert all(time >= before for time in times)
            newest = max([newest, *times])
        done = done.after(batch, _reached(reached, inputs))
        clock = done.watermark(batch, _reached(reached, inputs))
        assert clock is not None
        assert clock >= before
        at = reached
    longest = max(lateness for _, lateness in inputs)
    everybody = all(arrived for arrived, _ in inputs)
    assert not everybody or clock >= newest - longest, "when all are silent, nothing is left to wait for"


def _until(now: int, told: list[tuple[int, int, str]], lateness: int) -> Feed:
    """Return what has arrived: at most as late as is allowed, after pauses."""
    feed, second = Feed(), 1000
    for pause, delay, producer in told:
        second += pause
        if second <= now:
            feed.append(producer, second * SECOND - min(delay * SECOND, lateness), at=second * SECOND)
    return feed


def _reached(at: list[SourceProgress], inputs: list[tuple[list[tuple[int, int, str]], int]]) -> InputProgress:
    return InputProgress(
        {
            str(number): Input(
                Position("t", each.offsets), each.watermark, each.silent, each.heard, lateness, REST
            )
            for number, (each, (_, lateness)) in enumerate(zip(at, inputs, strict=True))
        }
    )
