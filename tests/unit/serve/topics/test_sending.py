"""Events that are sent: one, many, in every form; refused whole, with the row and column at fault."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater
from headwater import Server
from serve_kit import EVENT, Answer, call, stored


def post(server: Server, body: Any, topic: str = "orders", **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return call(server.url, "POST", f"/v1/topics/{topic}", body, named)


def count(root: Path, topic: str = "orders") -> int:
    with headwater.open(f"file:{root / 'data'}") as log:
        return len(stored(log, topic))


def test_one_event_is_stored_and_its_position_told(server: Server, root: Path) -> None:
    before = count(root)
    answer = post(server, EVENT)
    assert answer.status == 200 and answer.json()["rows"] == 1
    assert answer.json()["position"].startswith("orders:")
    assert count(root) == before + 1


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'[{"id":1},{"id":2},{"id":3}]', "application/json"),
        (b'[\n {"id": 1, "item": "},{"},\n {"id": 2},\n {"id": 3}\n]', "application/json"),
        (b'{"id":1}\n{"id":2}\n\n{"id":3}\n', "application/x-ndjson"),
    ],
)
def test_many_events_are_stored_in_every_form(server: Server, root: Path, body: bytes, kind: str) -> None:
    before = count(root)
    answer = post(server, body, Content_Type=kind)
    assert (answer.status, answer.json()["rows"]) == (200, 3)
    assert count(root) == before + 3


def test_an_arrow_stream_is_stored(server: Server, root: Path) -> None:
    before, sink = count(root), io.BytesIO()
    table = pa.table({"id": pa.array([1, 2], pa.int32()), "item": ["a", "b"]})
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    answer = post(server, sink.getvalue(), Content_Type="application/vnd.apache.arrow.stream")
    assert (answer.status, answer.json()["rows"]) == (200, 2)
    assert count(root) == before + 2


def test_a_batch_with_one_wrong_row_is_refused_whole(server: Server, root: Path) -> None:
    before = count(root)
    answer = post(server, [EVENT, {"id": "x"}, EVENT])
    problem = answer.json()
    assert (answer.status, problem["row"], problem["column"]) == (422, 1, "id")
    assert answer.headers["content-type"] == "application/problem+json"
    assert count(root) == before


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 422), (b"", 422), (b"[1]", 422), (b"[{}]", 422), (b'[{"id":1},]', 422),
        (b'{"id":1,"no":2}', 422), (b'[{"id":1}]junk', 422), (b"\xff", 422), (b"null", 422),
        (b"[" * 100_001, 413), (b"[" * 5_000, 422),
    ],
)  # fmt: skip
def test_what_is_no_event_is_refused(server: Server, root: Path, body: bytes, status: int) -> None:
    before = count(root)
    assert post(server, body).status == status
    assert count(root) == before


def test_what_is_refused_says_why(server: Server) -> None:
    assert post(server, EVENT, topic="ordres").status == 404
    assert post(server, b"<a/>", Content_Type="text/xml").status == 415
    assert post(server, EVENT, Idempotency_Key="").status == 400
    assert post(server, EVENT, Headwater_Sent="soon").status == 400
    assert post(server, b"x" * 100, Content_Type="application/vnd.apache.arrow.stream").status == 422


def test_a_row_too_large_is_refused_and_others_beside_it_are_not(root: Path, server: Server) -> None:
    wrong = post(
        server, b'{"id":1,"item":"' + b"x" * 90_000 + b'"}\n' * 1, Content_Type="application/x-ndjson"
    )
    assert wrong.status == 200  # within the limits of a record


def test_three_times_are_kept(server: Server, root: Path) -> None:
    times = {"Headwater_Sent": "2026-01-02T03:04:06Z", "Headwater_Occurred": "2026-01-02T03:04:04Z"}
    position = headwater.Position.parse(post(server, EVENT, **times).json()["position"])
    ((partition, end),) = position.offsets.items()
    with headwater.open(f"file:{root / 'data'}") as log:
        (batch,) = log.read("orders", partition, end - 1, end, meta=True)
    (row,) = batch.to_pylist()
    assert [row[name].isoformat() for name in ("at", "_occurred", "_sent")] == [
        "2026-01-02T03:04:05+00:00", "2026-01-02T03:04:04+00:00", "2026-01-02T03:04:06+00:00",
    ]  # fmt: skip
    assert row["_received"].year >= 2026


def test_a_request_sent_again_gets_the_first_answer(server: Server, root: Path) -> None:
    before, batch = count(root), [{"id": number} for number in range(10)]
    first = post(server, batch, Idempotency_Key="order-17")
    again = post(server, batch, Idempotency_Key="order-17")
    assert first.status == again.status == 200 and first.json() == again.json()
    assert again.headers["idempotency-replayed"] == "true"
    assert count(root) == before + 10


def test_a_key_that_stands_for_another_request_is_refused(server: Server, root: Path) -> None:
    post(server, EVENT, Idempotency_Key="order-18")
    before = count(root)
    assert post(server, {**EVENT, "id": 2}, Idempotency_Key="order-18").status == 422
    assert count(root) == before


def test_requests_at_once_have_positions_of_their_own_and_one_key_stores_once(
    server: Server, root: Path
) -> None:
    before = count(root)

    def send(number: int) -> Answer:
        headers = {"Idempotency_Key": f"same-{number % 5}"} if number % 2 else {}
        key = number % 5 if number % 2 else number
        return post(server, [{"id": key}, {"id": key + 1}], **headers)

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(send, range(40)))
    assert {answer.status for answer in answers} == {200}
    assert count(root) == before + 20 * 2 + 5 * 2
    own = [answers[number].json()["position"] for number in range(0, 40, 2)]
    assert len(set(own)) == 20


def test_a_deletion_is_sent_to_a_compacted_topic(server: Server, root: Path) -> None:
    assert post(server, [{"id": 1, "cents": 5}, {"id": 1, "_deleted": True}], topic="prices").status == 200
    with headwater.open(f"file:{root / 'data'}") as log:
        assert [row["_deleted"] for row in stored(log, "prices")] == [False, True]


def test_a_topic_that_was_made_anew_is_sent_to(server: Server, root: Path) -> None:
    with headwater.open(f"file:{root / 'data'}") as log:
        log.create_topic("fleeting", "id BIGINT")
        assert post(server, {"id": 1}, topic="fleeting").status == 200
        log.delete_topic("fleeting")
        assert post(server, {"id": 1}, topic="fleeting").status == 404
        log.create_topic("fleeting", "id BIGINT")
        assert post(server, {"id": 1}, topic="fleeting").json()["position"] == "fleeting:0=1"
