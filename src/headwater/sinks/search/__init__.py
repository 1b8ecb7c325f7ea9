"""Full-text search: a node's rows as an index, embedded in a directory or in an OpenSearch server.

``SearchSink`` keeps the embedded one and ``open`` reads it; ``opensearch/`` keeps one on a server.
"""

from headwater.sinks.search.embedded.reading import SearchIndex, open
from headwater.sinks.search.embedded.sink import SearchSink

__all__ = ["SearchIndex", "SearchSink", "open"]
