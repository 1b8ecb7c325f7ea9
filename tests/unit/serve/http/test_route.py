"""Routes as they are declared."""

from headwater.serve.app import ROUTES


def test_what_changes_something_needs_a_scope_of_its_own() -> None:
    for route in ROUTES:
        if route.method == "POST" and route.path != "/tickets":  # which shows a token to get a ticket
            assert route.scope in ("send", "operate"), route.path


def test_a_subject_is_a_parameter_of_the_path() -> None:
    assert all(route.subject is None or f"{{{route.subject}" in route.path for route in ROUTES)
