"""Clients of a server: send, get, scan and follow over HTTP, from any program.

They need nothing else of Headwater than its vocabulary. The HTTP library is ``httpx2``: one API for blocking
and async programs, streams both ways, kept by the authors of Starlette and uvicorn, which the server is
made of; the standard library has no async client.
"""
