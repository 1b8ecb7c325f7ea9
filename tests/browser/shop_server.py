"""The shop of ``examples/shop`` at work in processes of its own: a pipeline that runs, and a server.

Invariant: when a ``with`` block is left, both are gone.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

import headwater
from headwater import Pipeline, open_views
from headwater.api.session import create_topics
from headwater.errors import HeadwaterError
from headwater.pipeline.node import ViewNode
from headwater_server import HeadwaterServer, start_headwater, wait_until
from server_process import stop
from shop_kit import SHOP, fresh_shop_modules

EVENTS = 4000


@contextmanager
def running_shop(folder: Path) -> Iterator[HeadwaterServer]:
    """Run the shop, give it some events, and serve it as soon as every view has rows."""
    shop, file = load_shop(folder), str(SHOP / "shop.py")
    create_topics(shop)
    _python(folder, "crm.py")
    pipeline, server = start_headwater(folder, "run", file), HeadwaterServer(folder, file)
    try:
        _python(folder, "feed.py", "--events", str(EVENTS))
        wait_until(lambda: _has_rows(shop, pipeline))
        server.start()
        yield server
    finally:
        server.stop()
        stop(pipeline, 30)


def load_shop(folder: Path) -> Pipeline:
    """Return the shop, with its log and views in a folder."""
    with chdir(folder), fresh_shop_modules():  # its files are declared from here on
        return headwater.load(SHOP / "shop.py")


def _python(folder: Path, program: str, *arguments: str) -> None:
    command = [sys.executable, str(SHOP / program), *arguments]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def _has_rows(shop: Pipeline, process: subprocess.Popen[bytes]) -> bool:
    """Tell whether every view has rows."""
    assert process.poll() is None, "the pipeline has ended"
    wanted = [node.name for node in shop.nodes if isinstance(node, ViewNode)]
    try:
        with open_views(shop) as views:
            return all(views[name].count() for name in wanted)
    except HeadwaterError:  # not yet
        return False
