"""Measurements of devices whose clocks are wrong: when did it happen, really?

A device says when it measured and when it sent that, both by its own clock; we know when it arrived.
How far its clock is off is the difference between sending and arrival, less the way, which is short.

The clock of the pipeline knows the times of arrival only. A device that was offline tells of what
happened long before, so the windows are corrected, for up to a day.
"""

from pyspark.sql import functions as F

from headwater import Pipeline, agg, clock, windows

plant = Pipeline("devices", log="file:./data")
plant.source(
    "measurements",
    "device STRING, value DOUBLE, occurred TIMESTAMP, sent TIMESTAMP, received TIMESTAMP",
    event_time="received",
)


@plant.stream(event_time="at", key="device")
def corrected(measurements):
    """Each measurement with the time at which it happened, as well as that can be known."""
    known = clock.correct(F.col("occurred"), F.col("sent"), F.col("received"))
    return measurements.withColumn("clock", known).select("device", "value", "clock.at", "clock.trusted")


@plant.view(key=["device", "window_start"])
def by_minute(corrected):
    """The mean of each device, minute by minute, of what can be trusted."""
    return corrected.filter("trusted").transform(
        windows.tumbling(
            "1 minute", by="device", mean=agg.mean("value"), n=agg.count(), late="correct", keep="1 day"
        )
    )
