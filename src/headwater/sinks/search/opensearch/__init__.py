"""An index on an OpenSearch server, or one of Elasticsearch, kept through its REST interface alone."""
