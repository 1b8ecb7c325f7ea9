"""Windows: ``clicks.transform(windows.tumbling("1 minute", by="url", clicks=agg.count()))``.

Invariant: what cannot be meant is refused when it is called; what depends on columns, when it meets a
DataFrame.
"""

from __future__ import annotations

from datetime import timedelta

from headwater import durations
from headwater.errors import UsageError
from headwater.operators.aggregates.aggregate import Aggregate
from headwater.operators.windows.hopping import Hopping
from headwater.operators.windows.session import Session
from headwater.operators.windows.sliding import Sliding
from headwater.transforms.rows import Names
from headwater.transforms.transform import Transform
from headwater.transforms.window_settings import (
    Emit,
    Late,
    Length,
    WindowSettings,
    comparison,
    early_interval,
    length_or_zero,
)


def tumbling(
    size: Length,
    by: Names | None = None,
    *,
    late: Late = "drop",
    keep: Length | None = None,
    emit: Emit = "final",
    every: Length | int | None = None,
    offset: Length | None = None,
    compare: Length | None = None,
    **aggregates: Aggregate,
) -> Transform:
    """Aggregate the rows of each key in windows of one length, side by side.

    - ``size``: how long a window is: ``"1 minute"``. Its start is in it, its end is not.
    - ``by=None``: the key: a column, or several; without it all rows are one key.
    - ``late="drop"``: what a row does whose window is published: ``"drop"`` and ``"side"`` leave it out and
      keep it in the topic ``PIPELINE.NODE.late`` (``"side"`` says that somebody reads it there);
      ``"correct"`` uses it and publishes the window again.
    - ``keep=None``: with ``late="correct"``, how long after its end a window is corrected: ``"1 hour"``.
    - ``emit="final"``: ``"early"`` also publishes windows that are not finished, with ``complete`` false.
    - ``every=None``: with ``emit="early"``, how often: a length of event time, ``"10 seconds"``, or a
      number of rows of a window, ``100``; ``verify`` leaves out a node that goes by rows.
    - ``offset=None``: moves the windows, which begin at multiples of ``size`` since 1970 UTC: ``"9 hours"``.
    - ``compare=None``: puts beside each window the one of its key that began so long before, ``"1 week"``, a
      multiple of ``size``: ``NAME_before``, ``NAME_change`` and ``NAME_ratio`` for each number. Not with
      ``emit="early"``.
    - ``**aggregates``: the columns out and what fills each, at least one: ``clicks=agg.count()``.

    Out: the columns of ``by``, ``window_start``, ``window_end``, the aggregates, ``revision`` (0 at the first
    publication of a window, then 1, 2, …) and ``complete``; when the watermark comes to the window's end. A
    window without rows does not exist. The key and ``window_start`` tell results apart; the event time of a
    result is its ``window_start``.
    Order: of one micro-batch by window, then by key, whatever the order of arrival.
    Late: a row whose window has ended by the watermark (with ``late="correct"``: ``keep`` ago), or without an
    event time. It is counted, and has ``late_by`` and ``late_window_start`` in its topic.
    State: a partial result for each key and window, not the rows, until the window is published; with
    ``late="correct"`` for ``keep`` longer, with ``compare`` for that much longer.
    Restart: the state is as it was; what was published is not published again.

    >>> from headwater import agg
    >>> from headwater.transforms.sample import sample
    >>> rows = [("/a", "12:00:10"), ("/a", "12:00:50"), ("/a", "12:01:00")]
    >>> clicks = sample("url STRING, at TIMESTAMP", *rows, event_time="at")
    >>> per_minute = clicks.transform(tumbling("1 minute", by="url", clicks=agg.count()))
    >>> per_minute.show("url", "window_start", "clicks", "complete")
    url  window_start  clicks  complete
    /a   12:00:00      2       True
    /a   12:01:00      1       True

    More in ``docs/operators/tumbling.md`` and ``docs/operators/aggregates.md``.
    """
    length = durations.interval(size)
    before = comparison("tumbling", compare, length, emit)
    early, moved = early_interval("tumbling", emit, every), length_or_zero(offset)
    settings = WindowSettings("tumbling", by, late, keep, aggregates, length)
    return settings.transform(lambda common: Hopping(common, length, length, moved, early, before))


def hopping(
    size: Length,
    hop: Length,
    by: Names | None = None,
    *,
    late: Late = "drop",
    keep: Length | None = None,
    emit: Emit = "final",
    every: Length | int | None = None,
    offset: Length | None = None,
    compare: Length | None = None,
    **aggregates: Aggregate,
) -> Transform:
    """Aggregate the rows of each key in windows of one length that begin every ``hop``, and overlap.

    - ``size``: how long a window is: ``"1 hour"``. Its start is in it, its end is not.
    - ``hop``: how far apart windows begin: ``"5 minutes"``, not more than ``size``.
    - ``by=None``: the key: a column, or several; without it all rows are one key.
    - ``late="drop"``: what a row does whose window is published: ``"drop"`` and ``"side"`` leave it out and
      keep it in the topic ``PIPELINE.NODE.late`` (``"side"`` says that somebody reads it there);
      ``"correct"`` uses it and publishes the window again.
    - ``keep=None``: with ``late="correct"``, how long after its end a window is corrected: ``"1 hour"``.
    - ``emit="final"``: ``"early"`` also publishes windows that are not finished, with ``complete`` false.
    - ``every=None``: with ``emit="early"``, how often: a length of event time, ``"10 seconds"``, or a
      number of rows of a window, ``100``; ``verify`` leaves out a node that goes by rows.
    - ``offset=None``: moves the windows, which begin at multiples of ``hop`` since 1970 UTC: ``"9 hours"``.
    - ``compare=None``: puts beside each window the one of its key that began so long before, ``"1 week"``, a
      multiple of ``hop``: ``NAME_before``, ``NAME_change`` and ``NAME_ratio`` for each number. Not with
      ``emit="early"``.
    - ``**aggregates``: the columns out and what fills each, at least one: ``clicks=agg.count()``.

    Out: the columns of ``by``, ``window_start``, ``window_end``, the aggregates, ``revision`` (0 at the first
    publication of a window, then 1, 2, …) and ``complete``; when the watermark comes to the window's end. A
    window without rows does not exist. The key and ``window_start`` tell results apart; the event time of a
    result is its ``window_start``.
    Order: of one micro-batch by window, then by key, whatever the order of arrival.
    Late: a row for which the first of its windows has ended by the watermark (with ``late="correct"``:
    ``keep`` ago), or without an event time; it is used for none of its windows. It is counted, and has
    ``late_by`` and ``late_window_start`` in its topic.
    State: a partial result for each key and pane (the longest stretch without an edge of a window), not the
    rows, until the last window with it is published; with ``late="correct"`` for ``keep`` longer, with
    ``compare`` for that much longer.
    Restart: the state is as it was; what was published is not published again.

    >>> from headwater import agg
    >>> from headwater.transforms.sample import sample
    >>> rows = [("/a", "12:00:10"), ("/a", "12:01:10")]
    >>> clicks = sample("url STRING, at TIMESTAMP", *rows, event_time="at")
    >>> recent = clicks.transform(hopping("2 minutes", "1 minute", by="url", clicks=agg.count()))
    >>> recent.show("url", "window_start", "window_end", "clicks")
    url  window_start  window_end  clicks
    /a   11:59:00      12:01:00    1
    /a   12:00:00      12:02:00    2
    /a   12:01:00      12:03:00    1

    More in ``docs/operators/hopping.md`` and ``docs/operators/aggregates.md``.
    """
    length, step = durations.interval(size), durations.interval(hop)
    if step > length:
        raise UsageError(
            f'hopping windows of "{size}" cannot begin every "{hop}"',
            detail="rows between two windows would be in none",
            hint="choose a hop that is not longer than the window",
        )
    before = comparison("hopping", compare, step, emit)
    early, moved = early_interval("hopping", emit, every), length_or_zero(offset)
    settings = WindowSettings("hopping", by, late, keep, aggregates, length)
    return settings.transform(lambda common: Hopping(common, length, step, moved, early, before))


def sliding(
    size: Length,
    by: Names | None = None,
    *,
    late: Late = "drop",
    keep: Length | None = None,
    emit: Emit = "final",
    every: int | None = None,
    **aggregates: Aggregate,
) -> Transform:
    """Aggregate, at each event, the events of its key that are less than ``size`` before it, and itself.

    - ``size``: how far back a window goes: ``"10 minutes"``. An event exactly so long ago is not in it.
    - ``by=None``: the key: a column, or several; without it all rows are one key.
    - ``late="drop"``: what an event from before the watermark does: ``"drop"`` and ``"side"`` leave it out
      and keep it in the topic ``PIPELINE.NODE.late`` (``"side"`` says that somebody reads it there);
      ``"correct"`` uses it and publishes again every result that it is part of.
    - ``keep=None``: with ``late="correct"``, how far behind the watermark an event may be: ``"1 hour"``.
    - ``emit="final"``: ``"early"`` also publishes an event when it comes, with ``complete`` false.
    - ``every=None``: with ``emit="early"``, after how many more rows in its window; ``1`` for at once.
      ``verify`` leaves out such a node.
    - ``**aggregates``: the columns out and what fills each, at least one: ``clicks=agg.count()``.

    Out: the columns of ``by``, ``window_start`` (``size`` before the event), ``window_end`` (the event's
    time), the aggregates, ``revision`` (0, then 1, 2, … when it is published again) and ``complete``; when
    the watermark has passed the event. Events of a key at one time make one result. The key and
    ``window_start`` tell results apart; the event time of a result is its ``window_end``.
    Order: of one micro-batch by time, then by key, whatever the order of arrival.
    Late: an event from before the watermark (with ``late="correct"``: less ``keep``), or without an event
    time. It is counted, and has ``late_by`` and ``late_window_start`` in its topic.
    State: a partial result for each key and time, until the watermark is ``size`` (and ``keep``) ahead of it.
    Restart: the state is as it was; what was published is not published again.

    >>> from headwater import agg
    >>> from headwater.transforms.sample import sample
    >>> rows = [("c1", 5, "12:00"), ("c1", 7, "12:04"), ("c1", 1, "12:10")]
    >>> payments = sample("card STRING, amount BIGINT, at TIMESTAMP", *rows, event_time="at")
    >>> use = payments.transform(sliding("10 minutes", by="card", spent=agg.sum("amount")))
    >>> use.show("card", "window_end", "spent")
    card  window_end  spent
    c1    12:00:00    5
    c1    12:04:00    12
    c1    12:10:00    8

    More in ``docs/operators/sliding.md`` and ``docs/operators/aggregates.md``.
    """
    length, early = durations.interval(size), early_interval("sliding", emit, every)
    if isinstance(early, timedelta):
        raise UsageError(
            f'sliding windows cannot be published early every "{every}"',
            detail="each is finished as soon as the clock has passed its event",
            hint="name a number of rows: every=1 publishes each event at once",
        )
    settings = WindowSettings("sliding", by, late, keep, aggregates, length)
    return settings.transform(lambda common: Sliding(common, length, early))


def session(
    gap: Length,
    by: Names | None = None,
    *,
    late: Late = "drop",
    keep: Length | None = None,
    emit: Emit = "final",
    every: Length | int | None = None,
    **aggregates: Aggregate,
) -> Transform:
    """Aggregate the rows of each key that follow each other in less than ``gap``.

    - ``gap``: how long nothing comes until a session ends: ``"30 minutes"``. Rows exactly so far apart are in
      two sessions.
    - ``by=None``: the key: a column, or several; without it all rows are one key.
    - ``late="drop"``: what a row of a session that has ended does: ``"drop"`` and ``"side"`` leave it out
      and keep it in the topic ``PIPELINE.NODE.late`` (``"side"`` says that somebody reads it there);
      ``"correct"`` uses it and publishes the session again.
    - ``keep=None``: with ``late="correct"``, how long after its end a session is corrected: ``"1 hour"``.
    - ``emit="final"``: ``"early"`` also publishes sessions that have not ended, with ``complete`` false.
    - ``every=None``: with ``emit="early"``, how often: a length of event time, ``"1 minute"``, or a number of
      rows of a session, ``100``; ``verify`` leaves out a node that goes by rows.
    - ``**aggregates``: the columns out and what fills each, at least one: ``clicks=agg.count()``.

    Out: the columns of ``by``, ``window_start`` (the first event), ``window_end`` (``gap`` after the last
    one), the aggregates, ``revision`` and ``complete``; when the watermark comes to the end. With
    ``late="correct"`` or ``emit="early"`` also ``_deleted``: true retracts a session that has got another
    start or is part of another now. The key and ``window_start`` tell results apart; the event time of a
    result is its ``window_end``.
    Order: of one micro-batch by start, end and key, whatever the order of arrival.
    Late: a row of a session that has ended by the watermark (with ``late="correct"``: ``keep`` ago), or
    without an event time. It is counted, and has ``late_by`` and ``late_window_start`` in its topic.
    State: a partial result for each session, until ``gap`` (and ``keep``) after its end.
    Restart: the state is as it was; what was published is not published again.

    >>> from headwater import agg
    >>> from headwater.transforms.sample import sample
    >>> rows = [("eve", "12:00"), ("eve", "12:20"), ("eve", "13:00")]
    >>> clicks = sample("visitor STRING, at TIMESTAMP", *rows, event_time="at")
    >>> visits = clicks.transform(session("30 minutes", by="visitor", pages=agg.count()))
    >>> visits.show("visitor", "window_start", "window_end", "pages")
    visitor  window_start  window_end  pages
    eve      12:00:00      12:50:00    2
    eve      13:00:00      13:30:00    1

    More in ``docs/operators/session.md`` and ``docs/operators/aggregates.md``.
    """
    length, early = durations.interval(gap), early_interval("session", emit, every)
    settings = WindowSettings("session", by, late, keep, aggregates, length=None)
    return settings.transform(lambda common: Session(common, length, early))
