"""What holds of the files of a state wherever they are: on a disk, and in a bucket of a real S3 server."""

from __future__ import annotations

import pickle
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.engine.files.home_files import HomeFiles
from headwater.engine.stage.bucket_step import StepContext, step_in_driver
from headwater.engine.state.bucket import BucketMeta
from headwater.engine.state.chunk_files import PACKED_BYTES, Files, Pack, new_name
from headwater.engine.state.rescale import Rescaling
from headwater.engine.state.run_files import StateRunFiles
from headwater.engine.state.state_manifests import RETAINED, StateManifests
from headwater.errors import Fenced, HeadwaterError
from headwater.operators.latest import Latest
from headwater.operators.memory.operator_memory import StoredMemory
from headwater.operators.memory.run import Stretch
from headwater.operators.memory.sorted_runs import StoredRuns
from headwater.schema import parse

TABLE = pa.table({"a": list(range(50_000)), "b": [f"text {number}" for number in range(50_000)]})
Opened = Callable[[], HomeFiles]


def test_a_file_is_read_in_stretches_as_it_was_created(files: HomeFiles, opened: Opened) -> None:
    files.create("0" * 16, b"first and second")
    for each in (files, opened(), pickle.loads(pickle.dumps(files))):
        assert each.read(Stretch("0" * 16, 5)) == b"first"
        assert each.read(Stretch("0" * 16, 6, 10)) == b"second"


def test_a_table_is_mapped_as_it_was_created_also_on_a_machine_that_has_to_fetch_it(
    files: HomeFiles, opened: Opened, machine: Path
) -> None:
    runs = StateRunFiles(files, Files(files))
    stretch = runs.put_mapped(TABLE)
    assert runs.map(stretch).equals(TABLE)
    shutil.rmtree(machine, ignore_errors=True)
    assert StateRunFiles(opened(), Files(files)).map(stretch).equals(TABLE)
    assert files.sizes()[stretch.file] == stretch.size


def test_what_is_packed_is_one_file(files: HomeFiles, opened: Opened) -> None:
    pack = Pack(files)
    chunks = [pack.put(bytes([number]) * 100) for number in range(20)]
    pack.write()
    large = pack.put(b"x" * PACKED_BYTES)
    assert [opened().read(chunk) for chunk in chunks] == [bytes([number]) * 100 for number in range(20)]
    assert {chunk.file for chunk in chunks} | {large.file} == _chunks(files)


def test_of_two_lists_of_one_name_the_first_counts(files: HomeFiles, opened: Opened) -> None:
    assert files.commit("1.json", b"first")
    assert not opened().commit("1.json", b"second")
    assert opened().listed("1.json") == b"first"


def test_of_many_who_commit_a_list_at_once_one_is_told_that_it_has(files: HomeFiles) -> None:
    told: dict[bytes, bool] = {}
    texts = [str(number).encode() for number in range(8)]
    threads = [threading.Thread(target=_commit, args=(files, text, told)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = [text for text, committed in told.items() if committed]
    assert files.listed("7.json") == winner
    assert len(told) == 8


def _commit(files: HomeFiles, text: bytes, told: dict[bytes, bool]) -> None:
    told[text] = files.commit("7.json", text)


def test_what_is_removed_is_gone(files: HomeFiles) -> None:
    files.create("1" * 16, b"data")
    files.commit("1.json", b"list")
    files.remove(["1" * 16, "1.json", "not there"])
    assert _chunks(files) == set()
    with pytest.raises(FileNotFoundError):
        files.listed("1.json")


def test_a_state_goes_on_after_a_restart_and_the_runner_before_is_fenced(
    files: HomeFiles, opened: Opened
) -> None:
    old = StateManifests(files)
    old.begin()
    for number in range(RETAINED + 2):
        old.commit(number, {0: _bucket(Files(files).put(b"%d" % number))})
    assert len(_chunks(files)) == RETAINED
    new = StateManifests(opened())
    new.begin()
    (chunk,) = new.before(100)[0].stored
    assert opened().read(chunk) == b"%d" % (RETAINED + 1)
    with pytest.raises(Fenced):
        old.commit(RETAINED + 2, {})
    new.commit(RETAINED + 2, {1: _bucket(Files(files).put(b"new"))})
    assert set(new.before(100)) == {0, 1}


def test_a_state_is_rescaled_as_a_whole(files: HomeFiles, opened: Opened) -> None:
    schema, key = parse("who BIGINT, at TIMESTAMP"), Latest(("who",), "at")
    rows = pa.table([pa.array(range(100)), pa.array(range(100))], names=schema.names).cast(schema)
    old = StateManifests(files)
    old.begin(3)
    done = step_in_driver(StepContext("node", key, schema, files, count=3), rows)
    old.commit(0, {each.bucket: each.meta for each in done})
    new = StateManifests(opened())
    new.begin()
    new.rescale(8, Rescaling(key, schema, new.files).run(new.before(1), 8))
    with pytest.raises(Fenced):
        old.commit(1, {})
    again = StateManifests(opened())
    again.begin()
    assert (again.count_before(1), again.count_before(0), again.last_batch) == (8, 3, 0)
    context = StepContext("again", key, schema, again.files, count=8, buckets=again.before(1))
    assert not any(each.out for each in step_in_driver(context, rows)), "no row is newer than those held"


def test_a_chunk_that_is_missing_is_refused_where_its_manifest_counts(files: HomeFiles) -> None:
    states = StateManifests(files)
    states.begin()
    chunk = Files(files).put(b"data")
    states.commit(0, {0: _bucket(chunk)})
    files.remove([chunk.file])
    again = StateManifests(files)
    again.begin()
    with pytest.raises(HeadwaterError, match="is damaged\ndetail: it is missing"):
        again.before(1)


def test_a_name_is_never_given_twice() -> None:
    assert len({new_name() for _ in range(1000)}) == 1000


def _chunks(files: HomeFiles) -> set[str]:
    return {name for name in files.sizes() if len(name) == 16}


def _bucket(chunk: Stretch) -> BucketMeta:
    return BucketMeta(StoredMemory({"rows": StoredRuns((chunk,))}))
