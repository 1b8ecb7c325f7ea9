"""Opening a server, for programs and the command line: which log it serves, which views and pipelines."""

from __future__ import annotations

from headwater.api.subject import Subject, log_of, pipeline_of
from headwater.log.open import open as open_log
from headwater.serve.http.served import Served
from headwater.serve.http.view_stores import ViewStores
from headwater.serve.server import Server
from headwater.serve.settings import ServeSettings


def open_server(*pipelines: Subject, log: str | None = None, settings: ServeSettings | None = None) -> Server:
    """Serve a log, its topics and views over HTTP, in a thread of its own, until the server is closed.

    ``pipelines`` are pipelines or paths of their files, all on one log. Without any, the log named by ``log``
    is served (``file:./data`` if none is), with the views of all pipelines beside it. It starts no Spark, and
    lives on while pipelines are run, stopped and rebuilt. ``settings`` say where it listens, on loopback and
    without tokens unless they say otherwise, and within which limits.

    >>> import headwater, tempfile, urllib.request
    >>> url = "file:" + tempfile.mkdtemp()
    >>> with headwater.open_server(log=url, settings=headwater.ServeSettings(port=0)) as server:
    ...     urllib.request.urlopen(server.url + "/v1/health").read()
    b'{"status":"alive"}'
    """
    known = [pipeline_of(each) for each in pipelines]
    url = log_of(known, log)
    settings = settings or ServeSettings()
    named = {each.name: each for each in known}
    served = Served(open_log(url), named, ViewStores(named, None if known else url), settings)
    try:
        return Server(served)
    except BaseException:
        served.close()
        raise
