"""A timeline for each user: the posts of those whom the user follows, newest first.

Both posts and follows come and go. Each change becomes the rows of timelines that it adds, changes or
deletes, when it happens; to read a timeline is one look at one place.

>>> # views["timelines"].scan(prefix="ada", order="at", descending=True, limit=20)
"""

from headwater import Pipeline, joins

social = Pipeline("timelines", log="file:./data")
social.table("posts", "id BIGINT, author STRING, text STRING, at TIMESTAMP", key="id")
social.table("follows", "follower STRING, author STRING", key=["follower", "author"])


@social.view(key=["follower", "id"], order="at")
def timelines(posts, follows):
    """Every post of everybody whom somebody follows."""
    return posts.transform(joins.tables(follows, on="author"))
