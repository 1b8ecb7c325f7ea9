"""Answers in JSON."""

from headwater.serve.http.answer import json_response


def test_an_answer_says_that_it_is_json() -> None:
    answer = json_response({"a": 1}, 202)
    assert (answer.body, answer.status_code, answer.media_type) == (b'{"a":1}', 202, "application/json")
