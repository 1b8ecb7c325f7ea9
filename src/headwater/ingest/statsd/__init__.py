"""StatsD over UDP: datagrams in bulk, parsed a block at a time, aggregated or kept as they are."""
