"""Rules of names and other texts: what is fine, and the exact words for what is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kubemini.machinery import names

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character "
    "(e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
    r"character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
KEY = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)

LABEL_1035 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an "
    "alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)


@pytest.mark.parametrize(
    "rule,text,problem",
    [
        (names.dns1123_subdomain, "a.b-1.c", None),
        (names.dns1123_subdomain, "a" * 253, None),
        (names.dns1123_subdomain, "a" * 254, "must be no more than 253 characters"),
        (names.dns1123_subdomain, "Bad_Name", SUBDOMAIN),
        (names.dns1123_subdomain, "a\n", SUBDOMAIN),
        (names.dns1123_subdomain, "A" * 254, f"must be no more than 253 characters\n{SUBDOMAIN}"),
        (names.dns1123_label, "a-1", None),
        (names.dns1123_label, "a" * 64, "must be no more than 63 characters"),
        (names.dns1123_label, "a.b", "must not contain dots"),
        (names.dns1123_label, "-a", LABEL),
        (names.dns1035_label, "a1", None),
        (
            names.dns1035_label,
            "1a",
            LABEL_1035,
        ),
        (names.path_segment, "system:node", None),
        (names.path_segment, "..", "may not be '..'"),
        (names.path_segment, "a/b%", "may not contain '/'\nmay not contain '%'"),
        (names.qualified_name, "example.com/Name_1.x", None),
        (names.qualified_name, "", f"name part must be non-empty\nname part {KEY}"),
        (names.qualified_name, "/x", "prefix part must be non-empty"),
        (names.qualified_name, "A/x", f"prefix part {SUBDOMAIN}"),
        (names.qualified_name, "a" * 254 + "/x", "prefix part must be no more than 253 bytes"),
        (names.qualified_name, "x" * 64, "name part must be no more than 63 bytes"),
        (names.qualified_name, "a/b/c", f"a valid label key {KEY} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"),
        (names.label_value, "", None),
        (names.label_value, "A_b.c-1", None),
        (names.port_name, "http-1", None),
        (names.port_name, "a" * 16, "must be no more than 15 characters"),
        (
            names.port_name,
            "-1--2",
            "must contain at least one letter (a-z)\nmust not contain consecutive hyphens\nmust not begin or end with a hyphen",
        ),
        (names.port_name, "Http", "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"),
        (names.env_var_name, "a b", None),
        (names.env_var_name, "", "environment variable name must be non-empty"),
        (names.env_var_name, "a=b", "a valid environment variable name must consist only of printable ASCII characters other than '='"),
        (names.config_map_key, "a.b_c-D", None),
        (names.config_map_key, "..", "must not be '..'"),
        (names.config_map_key, "..a", "must not start with '..'"),
        (names.percent, "25%", None),
    ],
)
def test_texts(rule: Callable[[str], str | None], text: str, problem: str | None) -> None:
    """Each rule accepts what upstream accepts and answers the rest in upstream's words, one fault a line."""
    assert rule(text) == problem


def test_lengths_count_bytes() -> None:
    """A text of 32 characters and 64 bytes is too long."""
    assert names.faults(names.label_value("é" * 32))[0] == "must be no more than 63 bytes"


def test_a_generate_name_may_end_in_a_dash() -> None:
    """The prefix of a generated name is checked as if its last dash were a letter."""
    assert names.dns1123_subdomain("job-", prefix=True) is None
    assert names.dns1123_subdomain("job-") is not None
    assert names.dns1123_label("job_", prefix=True) is not None


def test_a_generated_name_fits_into_a_label() -> None:
    """The prefix is cut to 58 characters before the suffix."""
    assert names.generated("x" * 70, "abcde") == "x" * 58 + "abcde"


def test_each_fault_is_an_error_of_its_own() -> None:
    """A text with two faults makes two field errors."""
    assert [each.body for each in names.errors("f", "a/b%", names.path_segment("a/b%"))] == [
        "Invalid value: \"a/b%\": may not contain '/'",
        "Invalid value: \"a/b%\": may not contain '%'",
    ]
    assert names.errors("f", "a", None) == []


def test_domain_prefixed_paths() -> None:
    """A path needs a domain, a slash and something behind it."""
    assert names.domain_prefixed_path("f", "example.com/a/b") == []
    assert [each.body for each in names.domain_prefixed_path("f", "")] == ["Required value"]
    assert [each.body for each in names.domain_prefixed_path("f", "a")] == [
        'Invalid value: "a": must be a domain-prefixed path (such as "acme.io/foo")'
    ]
    assert len(names.domain_prefixed_path("f", "A/ ")) == 2


def test_fully_qualified_names() -> None:
    """A webhook's name has at least three segments."""
    assert names.fully_qualified_name("f", "a.example.com") == []
    assert [each.body for each in names.fully_qualified_name("f", "a.b")] == [
        'Invalid value: "a.b": should be a domain with at least three segments separated by dots'
    ]
