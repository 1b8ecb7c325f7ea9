"""Runs pipelines on Spark: the data source, the bucket runtime, the runner, and the batch oracle."""
