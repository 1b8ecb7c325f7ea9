"""Pandas is kept out of Arrow until it is asked for, and known as ever from then on."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
from headwater.cli import lazy_pandas
lazy_pandas.keep_out()
import pyarrow as pa
assert pa.array([1, None]).to_pylist() == [1, None]
assert "pandas" not in sys.modules
lazy_pandas.let_in()
import pandas as pd
assert pa.array(pd.Series([1.0, None])).null_count == 1
lazy_pandas.keep_out()
assert pa.array(pd.Series([1.0, None])).null_count == 1, "it is loaded, and stays known"
"""


def test_arrow_finds_pandas_when_it_is_let_in() -> None:
    subprocess.run([sys.executable, "-c", CODE], check=True)
