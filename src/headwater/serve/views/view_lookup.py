"""Which view a request means: its name, and its pipeline's where several have one of that name."""

from __future__ import annotations

from anyio.to_thread import run_sync
from starlette.requests import HTTPConnection

from headwater.errors import UnknownView, UsageError, nearest
from headwater.serve.http.served import Served, served
from headwater.serve.http.view_stores import ViewStores
from headwater.views import Views


def store_of(connection: HTTPConnection) -> tuple[str, Views]:
    """Return the name of the view of a request's path, and the store that it is in."""
    name = str(connection.path_params["view"])
    pipeline = connection.query_params.get("pipeline")
    return name, found(served(connection), name, pipeline)


async def locate(connection: HTTPConnection) -> tuple[str, Views]:
    """Do the same in the event loop: where a store has to be opened or asked, that is done in a thread."""
    views, pipeline = served(connection).views, connection.query_params.get("pipeline")
    opened = views.opened() if isinstance(views, ViewStores) else views
    chosen = [store for owner, store in (opened or {}).items() if pipeline in (None, owner)]
    if len(chosen) == 1:
        return str(connection.path_params["view"]), chosen[0]
    return await run_sync(store_of, connection)


def found(what: Served, name: str, pipeline: str | None) -> Views:
    """Return the store that a view is in; one that is in none, or in several, is refused."""
    if pipeline is not None:
        stores = {pipeline: what.views[pipeline]} if pipeline in what.views else {}
    else:
        stores = dict(what.views)
    if len(stores) == 1:  # reading it says whether it has the view
        return next(iter(stores.values()))
    holding = {owner: views for owner, views in stores.items() if _has(views, name)}
    if len(holding) == 1:
        return next(iter(holding.values()))
    if holding:
        listed = ", ".join(sorted(holding))
        raise UsageError(
            f'several pipelines have a view "{name}": {listed}', hint="name one with ?pipeline=NAME"
        )
    names = {each for views in stores.values() for each in views.names()}
    raise UnknownView(f'no view "{name:.200}"', hint=nearest(name, names))


def _has(views: Views, name: str) -> bool:
    try:
        return any(views.versions(name).values())
    except UnknownView:
        return False
