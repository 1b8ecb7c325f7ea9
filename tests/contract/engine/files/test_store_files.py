"""Files in a store whose requests fail: tried again, and never half taken for whole."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from faulty_http import Fault, FaultyServer
from headwater.engine.files import store_clients
from headwater.engine.files.home_files import HomeFiles
from headwater.engine.files.opening import open_files
from headwater.engine.files.store_files import StoreFiles
from headwater.engine.state.bucket import BucketMeta
from headwater.engine.state.chunk_files import Files
from headwater.engine.state.run_files import StateRunFiles
from headwater.engine.state.state_manifests import StateManifests
from headwater.errors import Fenced, HeadwaterError, SinkRefused, SinkUnavailable, UsageError, is_transient
from headwater.operators.memory.operator_memory import StoredMemory
from headwater.operators.memory.run import Stretch
from headwater.operators.memory.sorted_runs import StoredRuns

pytestmark = pytest.mark.slow
NAME = "0123456789abcdef"
LARGE = pa.table({"a": list(range(2_000_000))})
KINDS = ["slow", "500", "503", "cut", "lost"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_put_that_fails_is_tried_again(faulty: HomeFiles, proxy: FaultyServer, kind: str) -> None:
    proxy.faults.waiting = [Fault(kind, "PUT")] * 2
    faulty.create(NAME, b"data" * 100)
    assert faulty.read(Stretch(NAME, 400)) == b"data" * 100
    assert proxy.faults.happened == (1 if kind in ("slow", "cut") else 2)  # those answers count as answers


@pytest.mark.parametrize("kind", KINDS)
def test_a_fetch_that_fails_is_tried_again(faulty: HomeFiles, proxy: FaultyServer, kind: str) -> None:
    faulty.create(NAME, b"data" * 100)
    proxy.faults.waiting = [Fault(kind, "GET")] * 4
    assert faulty.read(Stretch(NAME, 8, 4)) == b"datadata"
    assert proxy.faults.happened == (1 if kind == "slow" else 4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_large_run_comes_whole_through_failures(
    faulty: HomeFiles, proxy: FaultyServer, machine: Path, kind: str
) -> None:
    runs = StateRunFiles(faulty, Files(faulty))
    proxy.faults.waiting = [Fault(kind, "PUT"), Fault(kind, "POST")]
    stretch = runs.put_mapped(LARGE)
    shutil.rmtree(machine)
    proxy.faults.waiting = [Fault(kind, "GET"), Fault(kind, "GET")]
    assert runs.map(stretch).equals(LARGE)


@pytest.mark.parametrize("kind", KINDS)
def test_a_list_whose_answer_fails_is_committed_once(
    faulty: HomeFiles, proxy: FaultyServer, kind: str
) -> None:
    proxy.faults.waiting = [Fault(kind, "PUT")] * 2
    assert faulty.commit("1.json", b"this list")
    assert not faulty.commit("1.json", b"another")
    assert faulty.listed("1.json") == b"this list"


@pytest.mark.parametrize("kind", ["500", "503", "lost"])
def test_a_store_that_stays_away_is_waited_for_by_the_node(
    faulty: HomeFiles, proxy: FaultyServer, kind: str
) -> None:
    proxy.faults.always = Fault(kind)
    with pytest.raises(SinkUnavailable, match="cannot be reached") as caught:
        faulty.create(NAME, b"data")
    assert is_transient(caught.value)
    assert "wonderland" not in str(caught.value)
    with pytest.raises(SinkUnavailable, match="cannot be reached") as caught:
        faulty.commit("1.json", b"data")
    assert "wonderland" not in str(caught.value)


def test_a_store_that_refuses_is_told_at_once(faulty: HomeFiles, proxy: FaultyServer) -> None:
    proxy.faults.always = Fault("403")
    with pytest.raises(SinkRefused, match="refuses what a pipeline keeps there"):
        faulty.commit("1.json", b"data")
    with pytest.raises(SinkRefused):
        faulty.create(NAME, b"data")


def test_a_body_that_stays_cut_is_never_taken_for_whole(
    faulty: HomeFiles, proxy: FaultyServer, machine: Path
) -> None:
    faulty.create(NAME, b"data" * 100)
    proxy.faults.always = Fault("cut", "GET")
    with pytest.raises(HeadwaterError):
        faulty.read(Stretch(NAME, 4))
    assert list(machine.iterdir()) == [], "nothing was kept of it"
    proxy.faults.always = None
    assert faulty.read(Stretch(NAME, 4)) == b"data"


@pytest.mark.parametrize("left", [b"", b"data", b"data" * 50])
def test_an_object_that_was_cut_in_the_store_is_refused(s3: Any, faulty: StoreFiles, left: bytes) -> None:
    faulty.create(NAME, b"data" * 100)
    system = store_clients.file_system(s3.endpoint, None)
    with system.open_output_stream(f"{faulty.address.bucket}/shop/state/{NAME}") as file:
        file.write(left)
    with pytest.raises(HeadwaterError, match="is damaged"):
        faulty.read(Stretch(NAME, 4))


def test_a_state_goes_on_through_failures_of_any_kind(
    faulty: HomeFiles, proxy: FaultyServer, machine: Path
) -> None:
    states = StateManifests(faulty)
    states.begin()
    for number in range(6):
        proxy.faults.waiting = [Fault(KINDS[(number + each) % len(KINDS)]) for each in range(3)]
        states.commit(
            number,
            {number: _bucket(Files(faulty).put(b"%d" % number))},
        )
    proxy.faults.waiting = [Fault(kind) for kind in KINDS]
    shutil.rmtree(machine, ignore_errors=True)
    again = StateManifests(faulty)
    again.begin()
    read = {number: faulty.read(meta.stored[0]) for number, meta in again.before(6).items()}
    assert read == {number: b"%d" % number for number in range(6)}
    with pytest.raises(Fenced):
        states.commit(6, {})


def test_a_file_is_fetched_once(faulty: HomeFiles, proxy: FaultyServer) -> None:
    faulty.create(NAME, b"data")
    for _ in range(5):
        faulty.read(Stretch(NAME, 4))
    assert sum(each.startswith("GET") and NAME in each for each in proxy.faults.requests) == 1


def test_a_small_file_is_one_request(faulty: HomeFiles, proxy: FaultyServer) -> None:
    faulty.create(NAME, b"data")
    assert [each.split()[0] for each in proxy.faults.requests] == ["PUT"]


def test_a_server_that_ignores_conditions_is_refused(
    faulty: HomeFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty.make()

    def put_always(address: Any, name: str, data: bytes) -> bool:
        return True

    monkeypatch.setattr(store_clients, "put_if_absent", put_always)
    with pytest.raises(SinkRefused, match="has no conditional put"):
        faulty.make()


def test_a_bucket_that_is_not_there_is_told(proxy: FaultyServer) -> None:
    files = open_files(f"s3://no-such-bucket/shop?endpoint={proxy.endpoint}")
    with pytest.raises(SinkRefused):
        files.make()


def test_credentials_in_an_address_are_refused() -> None:
    with pytest.raises(UsageError, match="has credentials in it") as caught:
        open_files("s3://key:wonderland-7391@bucket/shop")
    assert "wonderland" not in str(caught.value)


def _bucket(chunk: Stretch) -> BucketMeta:
    return BucketMeta(StoredMemory({"rows": StoredRuns((chunk,))}))
