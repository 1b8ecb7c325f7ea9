"""The public test kit: what users and backends need to test what they build on Headwater."""
