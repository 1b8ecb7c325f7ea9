from __future__ import annotations

from tests.unit.cli.conftest import Run
from tests.unit.cli.contents import rows

from headwater import Log


def test_compact_keeps_the_newest_of_each_key_and_tells_the_sizes(run: Run, log: Log) -> None:
    log.create_topic("customers", "id BIGINT, name STRING", key="id", cleanup="compact")
    for name in ("Ann", "Bo", "Cy"):
        run("produce", "customers", input=f'{{"id": 1, "name": "{name}"}}\n')
    result = run("compact", "customers")
    assert result.exit_code == 0
    assert result.stdout.startswith('topic "customers": ')
    assert rows(log, "customers", "name")[-1] == "Cy"


def test_compact_tells_why_a_topic_has_grown(run: Run, log: Log) -> None:
    log.create_topic("customers", "id BIGINT, name STRING", key="id", cleanup="compact")
    run("produce", "customers", input='{"id": 1, "name": "Ann"}\n')
    result = run("compact", "customers")
    assert result.stderr.startswith("note: few records could be dropped")
