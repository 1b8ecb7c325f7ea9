"""Web push: a row is a notification in the browsers of people who have asked for it."""
