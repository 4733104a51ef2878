# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Writes python/warifu/case.py from crates/core/model/case.schema.json, which a test of the Rust
types writes. `make golden` runs both; a test checks that what is committed is current."""

from __future__ import annotations

import itertools
import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "crates" / "core" / "model" / "case.schema.json"
MODULE = ROOT / "python" / "warifu" / "case.py"

HEAD = '''\
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A case: one point of a study, every choice resolved.

Generated from the Rust types by scripts/generate_case.py: change those, then run `make golden`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from warifu.typed_json import JsonError, read

VERSION = {version}
"""The version of the canonical form that this module reads."""
'''

TAIL = '''\
    @staticmethod
    def from_json(text: str) -> Case:
        """From the canonical form. Raises JsonError, which names the key, for anything else."""
        try:
            value = json.loads(text)
        except ValueError as error:
            raise JsonError(f"the case is not JSON: {error}") from None
        # The first version of the form did not say so.
        version = value.pop("version", 1) if isinstance(value, dict) else VERSION
        if version != VERSION:
            raise JsonError(
                f"version is {version!r}: this program reads cases of version {VERSION}; "
                "predict and measure the study again"
            )
        return read(Case, value)
'''

SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
WIDTH = 100


def module(document: dict[str, Any]) -> str:
    """The Python module of a schema."""
    definitions = dict(document["schema"]["$defs"])
    case = {key: value for key, value in document["schema"].items() if key != "$defs"}
    parts = [HEAD.format(version=document["version"])]
    for name in _in_order(definitions):
        parts += _definition(name, definitions[name])
    parts.append(_dataclass("Case", case) + "\n" + TAIL)
    text = ""
    for before, part in itertools.pairwise(["", *parts]):
        is_class = "@dataclass" in (before[:10], part[:10])
        text += "\n" * (3 if is_class else 2) * bool(before) + part.rstrip("\n")
    return text + "\n"


def _in_order(definitions: dict[str, Any]) -> Iterator[str]:
    """Every definition after those that it names: an alias is evaluated when it is read."""
    seen: set[str] = set()

    def visit(name: str) -> Iterator[str]:
        if name in seen:
            return
        seen.add(name)
        for other in sorted(set(re.findall(r'"#/\$defs/(\w+)"', json.dumps(definitions[name])))):
            yield from visit(other)
        yield name

    for name in sorted(definitions):
        yield from visit(name)


def _definition(name: str, schema: dict[str, Any]) -> list[str]:
    """The statements that define a type: an alias, a dataclass, or several and their union."""
    if schema.get("type") == "object":
        return [_dataclass(name, schema)]
    variants = schema.get("oneOf", [])
    if variants and "properties" in variants[0]:
        return _union(name, schema)
    return [_alias(name, schema)]


def _union(name: str, schema: dict[str, Any]) -> list[str]:
    """A dataclass for each variant, named by its tag, and their union."""
    statements, members = [], []
    for variant in schema["oneOf"]:
        words = [one["const"] for one in variant["properties"].values() if "const" in one]
        member = "".join(word.title() for word in words[0].split("_")).replace("None", "No") + name
        members.append(member)
        statements.append(_dataclass(member, variant))
    return [*statements, f"{name} = {' | '.join(members)}\n{_doc(schema, '')}"]


def _alias(name: str, schema: dict[str, Any]) -> str:
    words = schema.get("enum") or [one["const"] for one in schema.get("oneOf", [])]
    if not words and "const" in schema:
        words = [schema["const"]]
    if words:
        kind = f"Literal[{', '.join(json.dumps(word) for word in words)}]"
        if len(name) + 3 + len(kind) > WIDTH:
            lines = "".join(f"    {json.dumps(word)},\n" for word in words)
            kind = f"Literal[\n{lines}]"
    else:
        kind = SCALARS[schema["type"]]
    return f"{name} = {kind}\n{_doc(schema, '')}"


def _dataclass(name: str, schema: dict[str, Any]) -> str:
    lines = ["@dataclass(frozen=True)", f"class {name}:"]
    lines.append(_doc(schema, "    ") + "\n")
    required = schema.get("required", [])
    # Fields with defaults come last; those without stand in the order of the Rust type.
    for key in [*required, *(key for key in schema["properties"] if key not in required)]:
        value = schema["properties"][key]
        default = "" if key in required else f" = {_default(value)}"
        lines.append(f"    {key}: {_type(value)}{default}")
        if "description" in value:
            lines.append(_doc(value, "    "))
    return "\n".join(lines) + "\n"


def _default(value: dict[str, Any]) -> str:
    default = value.get("default")
    return json.dumps(default) if isinstance(default, str) else repr(default)


def _type(schema: dict[str, Any]) -> str:
    if "const" in schema:
        return f"Literal[{json.dumps(schema['const'])}]"
    if "$ref" in schema:
        return _named(schema["$ref"])
    if "anyOf" in schema:
        return " | ".join(_type(one) for one in schema["anyOf"])
    kind = schema["type"]
    if isinstance(kind, list):
        return " | ".join("None" if one == "null" else SCALARS[one] for one in kind)
    if kind == "null":
        return "None"
    if kind == "array":
        return f"tuple[{_type(schema['items'])}, ...]"
    return SCALARS[kind]


def _named(reference: str) -> str:
    return reference.rpartition("/")[2]


def _doc(schema: dict[str, Any], indent: str) -> str:
    """A docstring of Rust's documentation."""
    # Links to other items, and Rust's word for nothing.
    text = " ".join(schema.get("description", "").split()).replace("`None`", "None")
    text = re.sub(r"\[(`?)(\w+)`?\]", r"\1\2\1", text)
    wrapped = textwrap.wrap(
        text, WIDTH - len(indent) - 6, break_on_hyphens=False, break_long_words=False
    )
    return f'{indent}"""' + f"\n{indent}".join(wrapped) + '"""'


def main() -> None:
    """Writes the module."""
    MODULE.write_text(module(json.loads(SCHEMA.read_text())))


if __name__ == "__main__":
    main()
