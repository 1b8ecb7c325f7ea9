"""Timelines: posts joined with follows, and how many each reader has, against dicts and loops.

Posts are sent and deleted, authors are followed and unfollowed; a reader's timeline has the posts of
the authors that the reader follows now.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.event_time import NEVER
from headwater.operators.spec import Side
from headwater.operators.tables import retracting as agg
from headwater.schema import parse
from headwater.transforms import tables
from headwater.transforms.joins import tables as joined_tables
from soaking import examples
from unit.operators.stepping import Restarts, Row, listed
from unit.operators.tables.tabling import (
    Key,
    Made,
    Turn,
    batch,
    change,
    changes_of,
    now,
    play,
    sender,
    told,
    turns,
)

POSTS = parse("id BIGINT, author STRING, text STRING, at TIMESTAMP, _deleted BOOLEAN")
FOLLOWS = parse("follower STRING, author STRING, _deleted BOOLEAN")
POST, FOLLOW = ("id",), ("follower", "author")
TIMELINE: Any = joined_tables(None, on="author").build(Side(POSTS, None, POST), Side(FOLLOWS, None, FOLLOW))
SENT = sender(TIMELINE.pairing, POSTS, FOLLOWS)
CHANGES = TIMELINE.output_schema(SENT([]).schema)
READERS: Any = tables.group("follower", posts=agg.count(), newest=agg.greatest("id", 2)).build(
    Side(CHANGES, None, TIMELINE.identity)
)
MADE = changes_of(
    0, POST, {"id": [1, 2, 3, 4], "author": ["ada", "bob", None], "text": ["x", "y"], "at": [1, 2]}
) | changes_of(1, FOLLOW, {"follower": ["eve", "joe", "ada"], "author": ["ada", "bob"]})


def timelines(changes: list[Made]) -> dict[Key, Row]:
    posts: dict[Key, Row] = {}
    follows: dict[Key, Row] = {}
    for made in changes:
        change(*((posts, POST), (follows, FOLLOW))[made.side], made.row)
    return {
        (post["id"], follow["follower"]): {
            **{name: post[name] for name in ("id", "author", "text", "at")},
            "follower": follow["follower"],
            "_deleted": False,
        }
        for post in posts.values()
        for follow in follows.values()
        if post["author"] == follow["author"]
    }


def readers(rows: dict[Key, Row]) -> dict[Key, Row]:
    found: dict[Key, Row] = {}
    for reader in {row["follower"] for row in rows.values()}:
        ids = sorted((row["id"] for row in rows.values() if row["follower"] == reader), reverse=True)
        found[reader,] = {"follower": reader, "posts": len(ids), "newest": ids[:2], "_deleted": False}
    return found


@examples(50)
@given(turns(MADE))
def test_a_timeline_has_the_posts_of_those_followed_after_each_step(plan: list[Turn]) -> None:
    play(TIMELINE, plan, SENT, timelines)
    together = [made for turn in plan for made in turn.changes]
    assert told(batch(TIMELINE, SENT(together))) == told(timelines(together))


@examples(50)
@given(turns(MADE))
def test_what_comes_out_of_one_operator_goes_into_the_next_as_a_table(plan: list[Turn]) -> None:
    state, counted = TIMELINE.initial_state(SENT([]).schema), READERS.initial_state(CHANGES)
    seen: list[Made] = []
    table: dict[Key, Row] = {}
    for turn in plan:
        seen += turn.changes
        out = TIMELINE.step(state, SENT(turn.changes), NEVER).out
        step = READERS.step(counted, out, NEVER)
        table = now(listed(step.out), READERS.identity, table)
        assert told(table) == told(readers(timelines(seen)))


def test_results_are_told_apart_by_the_post_and_the_follower() -> None:
    assert TIMELINE.identity == ("id", "follower")
    assert CHANGES.names == ["id", "author", "text", "at", "follower", "_deleted"]
    assert TIMELINE.key == ()  # a deletion of a post does not tell its author


def changed(rng: np.random.Generator, users: int) -> list[Made]:
    """A few hundred changes of many users, nearly all around one author."""
    made = []
    for _ in range(int(rng.integers(1, 300))):
        author, deleted = f"u{int(rng.integers(users) * rng.integers(2))}", bool(rng.random() < 0.3)
        if rng.random() < 0.1:
            post = {"id": int(rng.integers(40)), "author": author, "text": "t", "at": int(rng.integers(9))}
            kept = {"id": post["id"], "author": None, "text": None, "at": None}
            made.append(Made(0, {**(kept if deleted else post), "_deleted": deleted}))
        else:
            follower = f"u{int(rng.integers(users))}"
            made.append(Made(1, {"follower": follower, "author": author, "_deleted": deleted}))
    return made


@examples(3)
@given(st.integers(0, 10**6))
def test_many_followers_of_one_author_stay_right_through_many_changes(seed: int) -> None:
    rng, seen = np.random.default_rng(seed), list[Made]()
    state, table = TIMELINE.initial_state(SENT([]).schema), dict[Key, Row]()
    restarts = Restarts(TIMELINE, SENT([]).schema)
    for turn in range(12):
        restart = ("snapshot" if turn == 7 else "chunks") if turn % 4 == 3 else None
        state = restarts.before_step(state, restart)
        made = changed(rng, 200)
        step = TIMELINE.step(state, SENT(made), NEVER)
        seen += made
        table = now(listed(step.out), TIMELINE.identity, table)
        assert told(table) == told(timelines(seen))
