"""Definitions are refused for the reasons, at the paths and in the words of the API server."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.server.kinds.crd.validation import validate_crd
from tests.unit.crd.definitions import definition, established, spec_of, version

STRING: Tree = {"type": "string"}
LABEL = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an "
    "alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
MIXED = f"may have mixed case, but should otherwise match: {LABEL}"
APPROVAL = "metadata.annotations[api-approved.kubernetes.io]"
PULL = "see https://github.com/kubernetes/enhancements/pull/1111"
ROOT = "spec.validation.openAPIV3Schema"
FIELD = f"{ROOT}.properties[spec].properties[a]"


def texts(crd: Tree, old: Tree | None = None, **more: Any) -> list[str]:
    """Return the errors of a definition, or of an update of it."""
    return [str(error) for error in validate_crd(crd, old, **more)]


def field(schema: Tree) -> Tree:
    """Return a definition whose objects have a field with a schema."""
    return definition(version(schema=spec_of({"a": schema})))


def rules(*rules: Tree, **schema: Any) -> Tree:
    """Return a definition with rules at a short string."""
    return field({"type": "string", "maxLength": 10, "x-kubernetes-validations": list(rules), **schema})


@pytest.mark.parametrize(
    "crd",
    [
        definition(),
        definition(version(schema={"type": "object", "x-kubernetes-preserve-unknown-fields": True})),
        definition(version("v1"), version("v2", storage=False, served=False)),
        definition(version(deprecated=True, deprecationWarning="use cogs")),
        definition(version(subresources={"status": {}, "scale": {"specReplicasPath": ".spec.x", "statusReplicasPath": ".status.x"}})),
        definition(conversion={"strategy": "None"}),
        definition(name="gears.x-k8s.io", group="x-k8s.io"),
        field({"x-kubernetes-int-or-string": True}),
        field({"type": "string", "nullable": True, "default": None}),
        rules({"rule": "self != 'x'", "message": "no", "reason": "FieldValueForbidden"}),
    ],
)
def test_sound_definitions(crd: Tree) -> None:
    """What is sound is accepted."""
    assert texts(crd) == []


@pytest.mark.parametrize(
    "crd, wanted",
    [
        (definition(name="cogs.example.com"), ['metadata.name: Invalid value: "cogs.example.com": must be spec.names.plural+"."+spec.group']),
        (definition(name="gears.", group=""), ["spec.group: Required value"]),
        (definition(name="gears.example", group="example"), ['spec.group: Invalid value: "example": should be a domain with at least one dot']),
        (definition(scope=""), ["spec.scope: Required value"]),
        (definition(scope="Galaxy"), ['spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"']),
        (definition(name=".example.com", names={}), [f"spec.names.{key}: Required value" for key in ("plural", "singular", "kind", "listKind")]),
        (
            definition(
                name="Gears.example.com",
                names={
                    "plural": "Gears",
                    "singular": "g_",
                    "kind": "G_",
                    "listKind": "G_",
                    "shortNames": ["a", "B"],
                    "categories": ["all", "C"],
                },
            ),
            [
                f'spec.names.plural: Invalid value: "Gears": {LABEL}',
                f'spec.names.singular: Invalid value: "g_": {LABEL}',
                f'spec.names.kind: Invalid value: "G_": {MIXED}',
                f'spec.names.listKind: Invalid value: "G_": {MIXED}',
                f'spec.names.shortNames[1]: Invalid value: "B": {LABEL}',
                'spec.names.listKind: Invalid value: "G_": kind and listKind may not be the same',
                f'spec.names.categories[1]: Invalid value: "C": {LABEL}',
            ],
        ),
        (definition(version(schema=None)), ["spec.versions[0].schema.openAPIV3Schema: Required value"]),
        (definition(version("V_1")), [f'spec.versions[0].name: Invalid value: "V_1": {LABEL}', f'spec.version: Invalid value: "V_1": {LABEL}']),
        (
            definition(version(deprecationWarning="x")),
            ['spec.versions[0].deprecationWarning: Invalid value: "x": can only be set for deprecated versions'],
        ),
        (
            definition(version(deprecated=True, deprecationWarning="")),
            ['spec.versions[0].deprecationWarning: Invalid value: "": must not be an empty string'],
        ),
        (
            definition(version(deprecated=True, deprecationWarning="a\tb")),
            [
                (
                    'spec.versions[0].deprecationWarning: Invalid value: "a\\tb": '
                    "must only contain printable UTF-8 characters; non-printable character found at index 1"
                )
            ],
        ),
        (
            definition(preserveUnknownFields=True),
            [
                (
                    "spec.preserveUnknownFields: Invalid value: true: cannot set to true, "
                    "set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
                )
            ],
        ),
        (definition(status={"storedVersions": []}), ["status.storedVersions: Invalid value: []: must have at least one stored version"]),
    ],
)
def test_names_and_versions(crd: Tree, wanted: list[str]) -> None:
    """Names, scope and versions follow the rules."""
    assert texts(crd) == wanted


def test_versions_as_a_set() -> None:
    """Version names differ, and exactly one version is stored."""
    twice = validate_crd(definition(version(), version(storage=False)))
    assert [(each.field, each.reason) for each in twice] == [("spec.versions", "FieldValueInvalid")]
    assert str(twice[0]).endswith("]: must contain unique version names")
    for crd in (definition(version("v1"), version("v2")), definition(version(storage=False), status={"storedVersions": ["v1"]})):
        assert [text.rpartition("]: ")[2] for text in texts(crd)] == ["must have exactly one version marked as storage version"]


@pytest.mark.parametrize(
    "said, wanted",
    [
        (None, f'{APPROVAL}: Required value: protected groups must have approval annotation "api-approved.kubernetes.io", {PULL}'),
        (
            "soon",
            (
                f'{APPROVAL}: Invalid value: "soon": protected groups must have approval annotation "api-approved.kubernetes.io" '
                f'with either a URL or a reason starting with "unapproved", {PULL}'
            ),
        ),
        ("unapproved, a test", None),
        ("https://github.com/kubernetes/kubernetes/pull/1", None),
    ],
)
def test_protected_groups(said: str | None, wanted: str | None) -> None:
    """Groups of Kubernetes need an approval, or a reason why there is none."""
    meta = {} if said is None else {"annotations": {"api-approved.kubernetes.io": said}}
    assert texts(definition(name="gears.odd.k8s.io", group="odd.k8s.io", meta=meta)) == ([] if wanted is None else [wanted])


@pytest.mark.parametrize(
    "parts, wanted",
    [
        (
            {"subresources": {"scale": {}}},
            ["spec.subresources.scale.specReplicasPath: Required value", "spec.subresources.scale.statusReplicasPath: Required value"],
        ),
        (
            {"subresources": {"scale": {"specReplicasPath": "spec.x", "statusReplicasPath": ".spec.x", "labelSelectorPath": ".metadata.x"}}},
            [
                'spec.subresources.scale.specReplicasPath: Invalid value: "spec.x": must be a simple json path starting with .',
                'spec.subresources.scale.statusReplicasPath: Invalid value: ".spec.x": should be a json path under .status',
                'spec.subresources.scale.labelSelectorPath: Invalid value: ".metadata.x": should be a json path under either .spec or .status',
            ],
        ),
        (
            {
                "additionalPrinterColumns": [
                    {"name": "", "type": "", "jsonPath": ""},
                    {"name": "a", "type": "foo", "format": "bar", "jsonPath": "{.x}"},
                ]
            },
            [
                "spec.additionalPrinterColumns[0].name: Required value",
                "spec.additionalPrinterColumns[0].type: Required value: must be one of boolean,date,integer,number,string",
                "spec.additionalPrinterColumns[0].JSONPath: Required value",
                'spec.additionalPrinterColumns[1].type: Invalid value: "foo": must be one of boolean,date,integer,number,string',
                'spec.additionalPrinterColumns[1].format: Invalid value: "bar": must be one of byte,date,date-time,double,float,int32,int64,password',
                'spec.additionalPrinterColumns[1].JSONPath: Invalid value: "{.x}": must be a simple json path starting with .',
            ],
        ),
        (
            {"selectableFields": [{"jsonPath": path} for path in (".spec.a", ".spec.a", ".spec.o", "", ".spec.zz")]},
            [
                'spec.selectableFields[1].jsonPath: Duplicate value: ".spec.a"',
                (
                    'spec.selectableFields[2].jsonPath: Invalid value: ".spec.o": must point to a field of type string, boolean or integer. '
                    "Enum string fields and strings with formats are allowed."
                ),
                "spec.selectableFields[3].jsonPath: Required value",
                'spec.selectableFields[4].jsonPath: Invalid value: ".spec.zz": is an invalid path: does not refer to a valid field',
            ],
        ),
        (
            {"selectableFields": [{"jsonPath": f".spec.f{index}"} for index in range(9)]},
            ["spec.selectableFields: Too many: 9: must have at most 8 items"],
        ),
    ],
)
def test_parts_of_versions(parts: Tree, wanted: list[str]) -> None:
    """Paths of scale, columns and selectable fields lead where they may."""
    schema = spec_of({"a": STRING, "o": {"type": "object"}, **{f"f{index}": STRING for index in range(9)}})
    assert texts(definition(version(schema=schema, **parts))) == wanted


@pytest.mark.parametrize(
    "conversion, wanted",
    [
        ({"strategy": "Foo"}, ['spec.conversion.strategy: Unsupported value: "Foo": supported values: "None", "Webhook"']),
        (
            {"strategy": "Webhook"},
            [
                "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
                "spec.conversion.conversionReviewVersions: Required value",
            ],
        ),
        (
            {"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://a/b"}}},
            [
                "spec.conversion.webhookClientConfig: Forbidden: should not be set when strategy is not set to Webhook",
                "spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook",
            ],
        ),
        (
            {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "http://u:p@/b?q#f"}}},
            [
                (
                    "spec.conversion.webhookClientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; "
                    "desired format: https://host[/path]"
                ),
                'spec.conversion.webhookClientConfig.url: Invalid value: "": host must be specified; desired format: https://host[/path]',
                'spec.conversion.webhookClientConfig.url: Invalid value: "u:p": user information is not permitted in the URL',
                'spec.conversion.webhookClientConfig.url: Invalid value: "f": fragments are not permitted in the URL',
                'spec.conversion.webhookClientConfig.url: Invalid value: "q": query parameters are not permitted in the URL',
            ],
        ),
        (
            {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v2"], "clientConfig": {"service": {"port": 0, "path": "x"}}}},
            [
                "spec.conversion.webhookClientConfig.service.name: Required value",
                "spec.conversion.webhookClientConfig.service.namespace: Required value",
                "spec.conversion.webhookClientConfig.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive",
                "spec.conversion.webhookClientConfig.service.path: Invalid value: \"x\": must start with a '/'",
                'spec.conversion.conversionReviewVersions: Invalid value: ["v2"]: must include at least one of v1, v1beta1',
            ],
        ),
        (
            {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1", "v1"], "clientConfig": {}}},
            [
                "spec.conversion.webhookClientConfig: Required value: exactly one of url or service is required",
                'spec.conversion.conversionReviewVersions[1]: Invalid value: "v1": duplicate version',
            ],
        ),
    ],
)
def test_conversion(conversion: Tree, wanted: list[str]) -> None:
    """A webhook is described where there is one, and only there."""
    assert texts(definition(conversion=conversion)) == wanted


# ---------------------------------------------------------------------------------------------------------- schemas


@pytest.mark.parametrize(
    "schema, wanted",
    [
        ({}, ["{}.type: Required value: must not be empty for specified object fields"]),
        ({"type": "array"}, ["{}.items: Required value: must be specified"]),
        (
            {"type": "null"},
            [
                '{}.type: Unsupported value: "null": supported values: "array", "boolean", "integer", "number", "object", "string"',
                "{}.type: Forbidden: type cannot be set to null, use nullable as an alternative",
            ],
        ),
        (
            {"type": "array", "items": STRING, "uniqueItems": True},
            ["{}.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic"],
        ),
        (
            {"type": "object", "properties": {"b": STRING}, "additionalProperties": STRING},
            ["{}.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"],
        ),
        ({"type": "object", "$ref": "#/x"}, ["{}.$ref: Forbidden: $ref is not supported"]),
        (
            {"type": "string", "pattern": "("},
            ['{}.pattern: Invalid value: "(": must be a valid regular expression, but isn\'t: error parsing regexp: missing closing ): `(`'],
        ),
        (
            {"type": "string", "anyOf": [{"type": "string"}, {"description": "x"}, {"default": 1}]},
            [
                "{}.anyOf[0].type: Forbidden: must be empty to be structural",
                "{}.anyOf[1].description: Forbidden: must be empty to be structural",
                "{}.anyOf[2].default: Forbidden: must be undefined to be structural",
            ],
        ),
        (
            {"type": "object", "x-kubernetes-embedded-resource": True},
            [
                "{}.properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
            ],
        ),
        (
            {"type": "object", "x-kubernetes-preserve-unknown-fields": False},
            ["{}.x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"],
        ),
        (
            {"type": "string", "x-kubernetes-list-type": "set"},
            ['{}.type: Invalid value: "string": must be array if x-kubernetes-list-type is specified'],
        ),
        (
            {"type": "array", "items": STRING, "x-kubernetes-list-type": "bag"},
            ['{}.x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map"'],
        ),
        (
            {"type": "object", "x-kubernetes-map-type": "odd"},
            ['{}.x-kubernetes-map-type: Unsupported value: "odd": supported values: "atomic", "granular"'],
        ),
        (
            {"type": "array", "items": {"type": "string", "nullable": True}, "x-kubernetes-list-type": "set"},
            ["{}.items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set"],
        ),
        (
            {"type": "array", "items": STRING, "x-kubernetes-list-type": "map"},
            [
                "{}.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
                '{}.items.type: Invalid value: "string": must be object if parent array\'s x-kubernetes-list-type is map',
            ],
        ),
        (
            {
                "type": "array",
                "items": {"type": "object", "properties": {"k": STRING}},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
            },
            [
                (
                    "{}.items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, "
                    "so it must have a default or be a required property"
                )
            ],
        ),
        ({"type": "string", "default": 5}, ['{}.default: Invalid value: "integer":  in body must be of type string: "integer"']),
        (
            {"type": "object", "properties": {"b": STRING}, "default": {"c": 1}},
            ['{}.default: Invalid value: {{"c":1}}: must not have unknown fields'],
        ),
    ],
)
def test_schema_of_a_field(schema: Tree, wanted: list[str]) -> None:
    """Schemas are structural, and their extensions consistent. The path is that of a common schema, also with one version."""
    assert texts(field(schema)) == [text.format(FIELD) for text in wanted]


@pytest.mark.parametrize(
    "schema, wanted",
    [
        ({"type": "array", "items": STRING}, ['{}.type: Invalid value: "array": must be object at the root']),
        ({"type": "object", "nullable": True}, ["{}.nullable: Forbidden: nullable cannot be true at the root"]),
        ({"type": "object", "definitions": {"x": {}}}, ["{}.definitions: Forbidden: definitions is not supported"]),
        (
            {"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}},
            ["{}.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified"],
        ),
        (
            {"type": "object", "properties": {"metadata": STRING, "kind": {"type": "integer"}}},
            [
                '{}.properties[kind].type: Invalid value: "integer": must be string',
                '{}.properties[metadata].type: Invalid value: "string": must be object',
            ],
        ),
    ],
)
def test_schema_of_the_root(schema: Tree, wanted: list[str]) -> None:
    """The root is an object whose metadata is what it always is."""
    assert texts(definition(version(schema=schema))) == [text.format(ROOT) for text in wanted]


def test_versions_that_differ_have_their_own_paths() -> None:
    """Where versions differ, errors are told for each; where they agree, once."""
    missing = "type: Required value: must not be empty for specified object fields"
    differ = definition(version("v1", spec_of({"a": {}})), version("v2", spec_of({"b": {}}), storage=False))
    assert texts(differ) == [
        f"spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[a].{missing}",
        f"spec.versions[1].schema.openAPIV3Schema.properties[spec].properties[b].{missing}",
    ]
    agree = definition(version("v1", spec_of({"a": {}})), version("v2", spec_of({"a": {}}), storage=False))
    assert texts(agree) == [f"{FIELD}.{missing}"]


# ---------------------------------------------------------------------------------------------------------- CEL rules


@pytest.mark.parametrize(
    "rule, wanted",
    [
        ({"rule": ""}, ".rule: Required value: rule is not specified"),
        ({"rule": "true", "message": "a\nb"}, '.message: Invalid value: "a\\nb": must not contain line breaks'),
        ({"rule": "true ||\nfalse"}, ".message: Required value: message must be specified if rule contains line breaks"),
        (
            {"rule": "true", "reason": "Nope"},
            (
                '.reason: Unsupported value: "Nope": supported values: '
                '"FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"'
            ),
        ),
        ({"rule": "true", "fieldPath": ".x"}, '.fieldPath: Invalid value: ".x": must be a valid path'),
        ({"rule": "true", "optionalOldSelf": True}, ".optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule"),
    ],
)
def test_form_of_rules(rule: Tree, wanted: str) -> None:
    """The parts of a rule are consistent."""
    assert texts(rules(rule)) == [f"{FIELD}.x-kubernetes-validations[0]{wanted}"]


@pytest.mark.parametrize(
    "rule, place, wanted",
    [
        ({"rule": "self +"}, "rule", "compilation failed: ERROR: <input>:1:7: Syntax error: mismatched input '<EOF>'"),
        ({"rule": "self.nope"}, "rule", "compilation failed: ERROR: <input>:1:5: type 'string' does not support field selection"),
        ({"rule": "self"}, "rule", "cel expression must evaluate to a bool"),
        ({"rule": "true", "messageExpression": "1"}, "messageExpression", "messageExpression must evaluate to a string"),
    ],
)
def test_rules_compile(rule: Tree, place: str, wanted: str) -> None:
    """A rule compiles to a bool and its message to a string; the error shows the rule."""
    (error,) = validate_crd(rules(rule))
    assert (error.field, error.reason) == (f"{FIELD}.x-kubernetes-validations[0].{place}", "FieldValueInvalid")
    assert wanted in str(error)
    assert f'"Rule":"{rule["rule"]}"' in str(error)


def test_costs_of_rules() -> None:
    """Rules over lists and strings without bounds are refused, one by one and all together."""
    one = {"type": "string", "x-kubernetes-validations": [{"rule": "self.matches('^a*$')"}]}
    errors = validate_crd(field({"type": "array", "items": {"type": "array", "items": one}}))
    place = f"{FIELD}.items.items.x-kubernetes-validations[0].rule"
    assert sorted((each.field, each.reason) for each in errors) == [
        (ROOT, "FieldValueForbidden"),
        (place, "FieldValueForbidden"),
        (place, "FieldValueForbidden"),
    ]
    assert "estimated rule cost exceeds budget by factor of more than 100x" in str(errors[0])
    bounded = {**one, "maxLength": 10}
    assert texts(field({"type": "array", "maxItems": 5, "items": {"type": "array", "maxItems": 5, "items": bounded}})) == []


def test_rules_that_look_back_need_correlation() -> None:
    """In a list whose elements have no identity there is no old value to look at."""
    looking = {
        "type": "object",
        "properties": {"n": {"type": "string", "maxLength": 5}},
        "x-kubernetes-validations": [{"rule": "self.n == oldSelf.n"}],
    }
    errors = texts(field({"type": "array", "maxItems": 5, "items": looking}))
    assert errors == [
        (
            f'{FIELD}.items.x-kubernetes-validations[0].rule: Invalid value: "self.n == oldSelf.n": '
            f"oldSelf cannot be used on the uncorrelatable portion of the schema within {FIELD}"
        )
    ]


# ---------------------------------------------------------------------------------------------------------- updates


def changed(crd: Tree, **spec: Any) -> Tree:
    """Return a definition with parts of its spec replaced."""
    return {**crd, "spec": {**crd["spec"], **spec}}


def test_what_may_not_change() -> None:
    """Group and plural never change; scope and kind do not once the kind is established."""
    old = established(definition())
    names = {**old["spec"]["names"], "plural": "cogs", "kind": "Cog"}
    new = changed(old, scope="Cluster", group="example.org", names=names)
    always = ['spec.group: Invalid value: "example.org": field is immutable', 'spec.names.plural: Invalid value: "cogs": field is immutable']
    assert texts(new, old, established=True) == [
        'spec.scope: Invalid value: "Cluster": field is immutable',
        'spec.names.kind: Invalid value: "Cog": field is immutable',
        *always,
    ]
    assert texts(new, old) == always


def test_stored_versions_stay() -> None:
    """A version of which objects may be stored stays among the versions."""
    old = established(definition())
    new = {**changed(old, versions=[version("v2")]), "status": {**old["status"], "storedVersions": ["v1", "v2"]}}
    assert texts(new, old, established=True) == [
        (
            'status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a storage version, and must remain in '
            "spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions"
        )
    ]


def test_known_schemas_are_not_looked_at_again() -> None:
    """A schema that was accepted once does not stand in the way of other changes; a change of it is checked."""
    broken = spec_of({"a": {"type": "array"}})
    old = established(definition(version(schema=broken)))
    column = {"name": "A", "type": "string", "jsonPath": ".spec.a"}
    assert texts(changed(old, versions=[version(schema=broken, additionalPrinterColumns=[column])]), old, established=True) == []
    other = spec_of({"a": {"type": "array"}, "b": STRING})
    assert texts(changed(old, versions=[version(schema=other)]), old, established=True) == [f"{FIELD}.items: Required value: must be specified"]
