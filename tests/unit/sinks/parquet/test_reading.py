"""Only what the manifest lists is read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from headwater.errors import SinkUnavailable, UsageError
from headwater.sinks import Batch
from headwater.sinks.parquet import ParquetSink
from headwater.sinks.parquet.reading import dataset, describe, read


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Two batches of two rows."""
    with ParquetSink(tmp_path, "id BIGINT NOT NULL") as sink:
        sink.begin()
        for number in (0, 1):
            sink.commit(Batch(number, pa.table({"id": [3 - number, 7 - number]})))
    return tmp_path


def test_rows_come_in_the_order_of_their_batches(archive: Path) -> None:
    assert read(archive)["id"].to_pylist() == [3, 7, 2, 6]
    assert read(str(archive)).num_rows == 4
    assert describe(archive).batch == 1


def test_another_file_in_the_directory_is_not_read(archive: Path) -> None:
    pq.write_table(pa.table({"id": [99]}), archive / "000000000002-theirs.parquet")
    assert 99 not in read(archive)["id"].to_pylist()


def test_a_dataset_is_filtered_while_it_is_read(archive: Path) -> None:
    assert dataset(archive).to_table(filter=pc.field("id") > 5)["id"].to_pylist() == [7, 6]


def test_where_no_sink_has_written_there_is_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no Parquet sink has written"):
        read(tmp_path)


def test_rows_are_not_left_out_where_a_file_is_missing(archive: Path) -> None:
    (archive / describe(archive).files[0].name).unlink()
    with pytest.raises(SinkUnavailable, match="is missing"):
        read(archive)
