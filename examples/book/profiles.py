"""What users do, with who they are: each activity with the profile as it is known when it comes in.

The pipeline keeps a copy of the profiles of its own, which the changes of the table keep current, so no
database is asked while activities come in.
"""

from headwater import Pipeline, joins

site = Pipeline("profiles", log="file:./data")
site.source("activity", "user BIGINT, page STRING, at TIMESTAMP", event_time="at")
site.table("users", "id BIGINT, name STRING, country STRING", key="id")


@site.stream()
def enriched(activity, users):
    """Each activity with its user's name and country; nobody is left out for having no profile."""
    return activity.transform(joins.lookup(users, on={"user": "id"}, how="left"))
