"""Which texts may be names, label keys and values, ports, …, with the exact texts that the API server refuses others with.

Each rule takes a text and returns None when it is fine, otherwise what is wrong with it. Upstream lists some faults
separately (too long *and* wrong characters); such a text has one fault a line, and `faults` or `errors` takes it apart.
Mirrors apimachinery's ``pkg/api/validate/content``, ``pkg/util/validation`` and ``pkg/api/validation`` (1.36).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from kubemini.machinery.errors import FieldError, invalid, required

NameRule = Callable[..., str | None]
"""A rule for names: called with the name and ``prefix=True`` when it is a generateName."""

GENERATED_SUFFIX_LENGTH = 5
MAX_GENERATED_PREFIX = 58

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = _LABEL + r"(\." + _LABEL + ")*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_WILDCARD = r"\*\." + _SUBDOMAIN
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = "(" + _KEY + ")?"
_C_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_PERCENT = "[0-9]+%"
_HEADER = "[-A-Za-z0-9]+"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_CONDITION_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"

_label_ok = re.compile(_LABEL).fullmatch
_subdomain_ok = re.compile(_SUBDOMAIN).fullmatch
_label_1035_ok = re.compile(_LABEL_1035).fullmatch
_wildcard_ok = re.compile(_WILDCARD).fullmatch
_key_ok = re.compile(_KEY).fullmatch
_value_ok = re.compile(_VALUE).fullmatch
_c_identifier_ok = re.compile(_C_IDENTIFIER).fullmatch
_percent_ok = re.compile(_PERCENT).fullmatch
_header_ok = re.compile(_HEADER).fullmatch
_config_key_ok = re.compile(_CONFIG_KEY).fullmatch
_condition_reason_ok = re.compile(_CONDITION_REASON).fullmatch
_http_path_ok = re.compile(_HTTP_PATH).fullmatch
_port_characters_ok = re.compile("[-a-z0-9]+").fullmatch

_ALPHANUMERIC_ENDS = "and must start and end with an alphanumeric character"
_KEY_CHARACTERS = f"must consist of alphanumeric characters, '-', '_' or '.', {_ALPHANUMERIC_ENDS}"


def faults(problem: str | None) -> list[str]:
    """Return the separate faults that a rule reported; none for None."""
    return problem.split("\n") if problem else []


def errors(field: str, value: str, problem: str | None) -> list[FieldError]:
    """Return one `Invalid value` per fault of a rule's answer."""
    return [invalid(field, value, each) for each in problem.split("\n")] if problem else []


def too_long_text(limit: int, unit: str = "characters") -> str:
    """Return the text for a name of more than `limit` bytes."""
    return f"must be no more than {limit} {unit}"


def between_text(low: int, high: int) -> str:
    """Return the text for a number outside of a closed range."""
    return f"must be between {low} and {high}, inclusive"


def pattern_text(rule: str, pattern: str, *examples: str) -> str:
    """Return the text for a violated pattern: rule, examples, regular expression."""
    if not examples:
        return f"{rule} (regex used for validation is '{pattern}')"
    listed = " or ".join(f"'{each}', " for each in examples)
    return f"{rule} (e.g. {listed}regex used for validation is '{pattern}')"


_LABEL_TEXT = pattern_text(
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ALPHANUMERIC_ENDS}", _LABEL, "my-name", "123-abc"
)
_SUBDOMAIN_TEXT = pattern_text(
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_ALPHANUMERIC_ENDS}", _SUBDOMAIN, "example.com"
)
_LABEL_1035_TEXT = pattern_text(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character",
    _LABEL_1035,
    "my-name",
    "abc-123",
)
_WILDCARD_TEXT = pattern_text(
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case "
    "alphanumeric characters, '-' or '.' and end with an alphanumeric character",
    _WILDCARD,
    "*.example.com",
)
_KEY_TEXT = pattern_text(_KEY_CHARACTERS, _KEY, "MyName", "my.name", "123-abc")
_VALUE_TEXT = pattern_text(
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', {_ALPHANUMERIC_ENDS}",
    _VALUE,
    "MyValue",
    "my_value",
    "12345",
)


def _longer(text: str, limit: int) -> bool:
    """Tell whether a text has more than `limit` bytes."""
    return len(text) > limit or (not text.isascii() and len(text.encode("utf-8", "surrogatepass")) > limit)


def _joined(found: list[str]) -> str | None:
    return "\n".join(found) or None


def _masked(name: str, prefix: bool) -> str:
    """Return a generateName as its rule sees it: a trailing dash may stand, since a suffix follows."""
    return name[:-2] + "a" if prefix and len(name) > 1 and name.endswith("-") else name


# ----------------------------------------------------------------------------------------------- names of objects


def dns1123_subdomain(name: str, *, prefix: bool = False) -> str | None:
    """Check a DNS-1123 subdomain of at most 253 bytes: the rule for most kinds.

    >>> dns1123_subdomain("a.b-1")
    >>> dns1123_subdomain("a-", prefix=True)
    >>> dns1123_subdomain("Bad_")[:42]
    'a lowercase RFC 1123 subdomain must consis'
    """
    name = _masked(name, prefix)
    if len(name) <= 253 and _subdomain_ok(name):
        return None
    found = [too_long_text(253)] if _longer(name, 253) else []
    if not _subdomain_ok(name):
        found.append(_SUBDOMAIN_TEXT)
    return _joined(found)


def dns1123_label(name: str, *, prefix: bool = False) -> str | None:
    """Check a DNS-1123 label of at most 63 bytes (namespaces, services, containers, volumes)."""
    name = _masked(name, prefix)
    if len(name) <= 63 and _label_ok(name):
        return None
    found = [too_long_text(63)] if _longer(name, 63) else []
    if not _label_ok(name):
        found.append("must not contain dots" if _subdomain_ok(name) else _LABEL_TEXT)
    return _joined(found)


def dns1035_label(name: str, *, prefix: bool = False) -> str | None:
    """Check a DNS-1035 label: like a DNS-1123 label, but starting with a letter."""
    name = _masked(name, prefix)
    found = [too_long_text(63)] if _longer(name, 63) else []
    if not _label_1035_ok(name):
        found.append(_LABEL_1035_TEXT)
    return _joined(found)


def path_segment(name: str, *, prefix: bool = False) -> str | None:
    """Check that a name can stand in a URL path: no ``.`` or ``..``, no ``/`` or ``%`` (roles, bindings; the fallback for every kind)."""
    if not prefix and name in {".", ".."}:
        return f"may not be '{name}'"
    return _joined([f"may not contain '{each}'" for each in ("/", "%") if each in name])


def wildcard_subdomain(name: str) -> str | None:
    """Check ``*.`` followed by a DNS-1123 subdomain (ingress hosts)."""
    found = [too_long_text(253)] if _longer(name, 253) else []
    if not _wildcard_ok(name):
        found.append(_WILDCARD_TEXT)
    return _joined(found)


def generated(prefix: str, suffix: str) -> str:
    """Return the name made of a generateName: the prefix is cut so that name and suffix fit into 63 characters."""
    return prefix[:MAX_GENERATED_PREFIX] + suffix


# ----------------------------------------------------------------------------------------------- labels

_KEYS_SEEN: dict[str, str | None] = {}
_SEEN_LIMIT = 8192


def qualified_name(key: str) -> str | None:
    """Check a label key: ``[DNS-1123 subdomain/]name``; the rule for annotations (lower-cased), finalizers and condition types too."""
    if key in _KEYS_SEEN:
        return _KEYS_SEEN[key]
    if len(_KEYS_SEEN) >= _SEEN_LIMIT:
        _KEYS_SEEN.clear()
    found = _KEYS_SEEN[key] = _joined(_key_faults(key))
    return found


def _key_faults(key: str) -> list[str]:
    parts = key.split("/")
    if len(parts) > 2:
        return [f"a valid label key {_KEY_TEXT} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    found: list[str] = []
    if len(parts) == 2:
        if not parts[0]:
            found.append("prefix part must be non-empty")
        else:
            found += [f"prefix part {each}" for each in faults(_prefix_problem(parts[0]))]
    name = parts[-1]
    if not name:
        found.append("name part must be non-empty")
    elif _longer(name, 63):
        found.append(f"name part {too_long_text(63, 'bytes')}")
    if not _key_ok(name):
        found.append(f"name part {_KEY_TEXT}")
    return found


def _prefix_problem(prefix: str) -> str | None:
    """Check the domain of a key; upstream counts bytes here and characters elsewhere, in the text only."""
    problem = dns1123_subdomain(prefix)
    return problem and problem.replace(too_long_text(253), too_long_text(253, "bytes"))


_VALUES_SEEN: dict[str, str | None] = {"": None}


def label_value(value: str) -> str | None:
    """Check a label value: empty, or at most 63 bytes of alphanumerics, ``-``, ``_`` and ``.`` with alphanumeric ends."""
    if value in _VALUES_SEEN:
        return _VALUES_SEEN[value]
    if len(_VALUES_SEEN) >= _SEEN_LIMIT:
        _VALUES_SEEN.clear()
    found = [too_long_text(63, "bytes")] if _longer(value, 63) else []
    if not _value_ok(value):
        found.append(_VALUE_TEXT)
    problem = _VALUES_SEEN[value] = _joined(found)
    return problem


# ----------------------------------------------------------------------------------------------- other texts


def port_name(name: str) -> str | None:
    """Check an IANA service name (names of ports): at most 15 of ``[-a-z0-9]``, with a letter, no hyphen at an end or twice in a row."""
    found = [too_long_text(15)] if _longer(name, 15) else []
    if not _port_characters_ok(name):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= each <= "z" for each in name):
        found.append("must contain at least one letter (a-z)")
    if "--" in name:
        found.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return _joined(found)


def port_number(port: int) -> str | None:
    """Check a port number: 1 to 65535."""
    return None if 1 <= port <= 65535 else between_text(1, 65535)


def c_identifier(name: str) -> str | None:
    """Check an identifier of the C language."""
    if _c_identifier_ok(name):
        return None
    rule = "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'"
    return pattern_text(rule, _C_IDENTIFIER, "my_name", "MY_NAME", "MyName")


def env_var_name(name: str) -> str | None:
    """Check the name of an environment variable: printable ASCII without ``=`` (the relaxed rule, on since 1.32)."""
    found = [] if name else ["environment variable name must be non-empty"]
    if not name.isascii() or not name.isprintable() or "=" in name:
        found.append("a valid environment variable name must consist only of printable ASCII characters other than '='")
    return _joined(found)


def config_map_key(key: str) -> str | None:
    """Check a key of a ConfigMap or Secret."""
    found = [too_long_text(253)] if _longer(key, 253) else []
    if not _config_key_ok(key):
        rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        found.append(pattern_text(rule, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    if key in {".", ".."}:
        found.append(f"must not be '{key}'")
    elif key.startswith(".."):
        found.append("must not start with '..'")
    return _joined(found)


def http_header_name(name: str) -> str | None:
    """Check the name of an HTTP header."""
    if _header_ok(name):
        return None
    return pattern_text("a valid HTTP header must consist of alphanumeric characters or '-'", _HEADER, "X-Header-Name")


def percent(text: str) -> str | None:
    """Check a percentage such as ``25%``."""
    if _percent_ok(text):
        return None
    return pattern_text("a valid percent string must be a numeric string followed by an ending '%'", _PERCENT, "1%", "93%")


def condition_reason(text: str) -> str | None:
    """Check the reason of a condition (characters only)."""
    if _condition_reason_ok(text):
        return None
    rule = (
        "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters "
        "or '_,:', and must end with an alphanumeric character or '_'"
    )
    return pattern_text(rule, _CONDITION_REASON, "my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB")


def domain_prefixed_path(field: str, path: str) -> list[FieldError]:
    """Check ``domain/path`` (Job's managedBy, controller names, device drivers)."""
    if not path:
        return [required(field)]
    host, slash, rest = path.partition("/")
    if not slash or not host or not rest:
        return [invalid(field, path, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    found = errors(field, host, dns1123_subdomain(host))
    if not _http_path_ok(rest):
        found.append(invalid(field, rest, pattern_text("Invalid path", _HTTP_PATH)))
    return found


def fully_qualified_name(field: str, name: str) -> list[FieldError]:
    """Check a domain of at least three segments (names of admission webhooks)."""
    if not name:
        return [required(field)]
    problem = dns1123_subdomain(name)
    if problem:
        return [invalid(field, name, ",".join(faults(problem)))]
    if len(name.split(".")) < 3:
        return [invalid(field, name, "should be a domain with at least three segments separated by dots")]
    return []
