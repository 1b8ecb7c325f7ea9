"""Events as text of a response, and as messages."""

from __future__ import annotations

import json

from headwater.serve.push.wire import SSE, WEBSOCKET


def test_an_event_is_three_lines_and_an_empty_one() -> None:
    assert SSE.event("row", b"{}", "7") == b"id: 7\nevent: row\ndata: {}\n\n"
    assert SSE.event("row", b"{}") == b"event: row\ndata: {}\n\n"


def test_line_breaks_between_the_tokens_of_free_json_do_not_end_an_event() -> None:
    event = SSE.event("row", b'{"a":\r\n 1,\n"b": "x\\n"}').decode()
    [data] = [line for line in event.split("\n") if line.startswith("data: ")]
    assert json.loads(data.removeprefix("data: ")) == {"a": 1, "b": "x\n"} and event.count("\n") == 3


def test_a_message_is_a_json_object() -> None:
    assert json.loads(WEBSOCKET.event("row", b"[1]", "7")) == {"event": "row", "id": "7", "data": [1]}
    assert json.loads(WEBSOCKET.progress("7")) == {"event": "heartbeat", "id": "7"}
