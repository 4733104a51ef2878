# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Governance and permissions documents (DDS Security 1.1, sections 9.4.1.2 and 9.4.1.3)."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from xml.sax.saxutils import escape

_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
_DDS = (
    '<dds xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    'xsi:noNamespaceSchemaLocation="http://www.omg.org/spec/DDS-SECURITY/20170901/{schema}.xsd">\n'
)
#: All that there can be (DDS Security 1.1, section 9.4.1.2.3).
_DOMAINS = "<id_range><min>0</min><max>230</max></id_range>"


class Basic(StrEnum):
    """How samples are protected: data_protection_kind."""

    NONE = "NONE"
    SIGN = "SIGN"
    ENCRYPT = "ENCRYPT"


class Protection(StrEnum):
    """How messages are protected: the other protection kinds."""

    NONE = "NONE"
    SIGN = "SIGN"
    ENCRYPT = "ENCRYPT"
    SIGN_WITH_ORIGIN_AUTHENTICATION = "SIGN_WITH_ORIGIN_AUTHENTICATION"
    ENCRYPT_WITH_ORIGIN_AUTHENTICATION = "ENCRYPT_WITH_ORIGIN_AUTHENTICATION"


class DocumentRefused(Exception):  # noqa: N818 - what happened, not what it is
    """A document that would not work; the text is one line, without the file's name."""


@dataclass(frozen=True)
class Governance:
    """What is protected, and how, in all domains and topics. The defaults are SROS2's."""

    data: Basic = Basic.ENCRYPT
    metadata: Protection = Protection.ENCRYPT
    rtps: Protection = Protection.SIGN
    discovery: Protection = Protection.ENCRYPT
    liveliness: Protection = Protection.ENCRYPT

    def kinds(self) -> dict[str, Basic | Protection]:
        """Each by its field's name."""
        return {field: getattr(self, field) for field in FIELDS}

    def xml(self) -> str:
        """The document, to be signed."""
        discovered = _boolean(self.discovery != Protection.NONE)
        alive = _boolean(self.liveliness != Protection.NONE)
        return f"""{_HEAD}{_DDS.format(schema="omg_shared_ca_governance")}  <domain_access_rules>
    <domain_rule>
      <domains>{_DOMAINS}</domains>
      <allow_unauthenticated_participants>false</allow_unauthenticated_participants>
      <enable_join_access_control>true</enable_join_access_control>
      <discovery_protection_kind>{self.discovery}</discovery_protection_kind>
      <liveliness_protection_kind>{self.liveliness}</liveliness_protection_kind>
      <rtps_protection_kind>{self.rtps}</rtps_protection_kind>
      <topic_access_rules>
        <topic_rule>
          <topic_expression>*</topic_expression>
          <enable_discovery_protection>{discovered}</enable_discovery_protection>
          <enable_liveliness_protection>{alive}</enable_liveliness_protection>
          <enable_read_access_control>true</enable_read_access_control>
          <enable_write_access_control>true</enable_write_access_control>
          <metadata_protection_kind>{self.metadata}</metadata_protection_kind>
          <data_protection_kind>{self.data}</data_protection_kind>
        </topic_rule>
      </topic_access_rules>
    </domain_rule>
  </domain_access_rules>
</dds>
"""


def permissions(subject: str, not_before: datetime, not_after: datetime) -> str:
    """The document that lets a certificate's subject write and read every topic in every domain and
    partition, to be signed. The times are UTC."""
    # Without partitions nothing but the default one is allowed (section 9.4.1.3.2.3.1.3).
    all_topics = (
        "<topics><topic>*</topic></topics><partitions><partition>*</partition></partitions>"
    )
    name = escape(subject).removeprefix("CN=").replace("/", "_").strip("_") or "enclave"
    return f"""{_HEAD}{_DDS.format(schema="omg_shared_ca_permissions")}  <permissions>
    <grant name="{escape(name, {'"': "&quot;"})}">
      <subject_name>{escape(subject)}</subject_name>
      <validity>
        <not_before>{not_before:%Y-%m-%dT%H:%M:%S}</not_before>
        <not_after>{not_after:%Y-%m-%dT%H:%M:%S}</not_after>
      </validity>
      <allow_rule>
        <domains>{_DOMAINS}</domains>
        <publish>{all_topics}</publish>
        <subscribe>{all_topics}</subscribe>
      </allow_rule>
      <default>DENY</default>
    </grant>
  </permissions>
</dds>
"""


FIELDS = ("data", "metadata", "rtps", "discovery", "liveliness")
"""Those of `Governance`; a document has each as FIELD_protection_kind."""


def kinds_of(text: str) -> dict[str, tuple[str, ...]]:
    """What a governance document says, by field, as often as it says it: a document has one data
    and metadata kind for each topic rule. Raises DocumentRefused for one that no middleware
    reads."""
    root = _parsed(text)
    if root.tag != "dds" or root.find("domain_access_rules/domain_rule") is None:
        raise DocumentRefused("has no <domain_rule> in <dds><domain_access_rules>")
    found = {}
    for field in FIELDS:
        values = [(one.text or "").strip() for one in root.iter(_element(field))]
        known: type[StrEnum] = Basic if field == "data" else Protection
        for value in values:
            if value not in list(known):
                raise DocumentRefused(
                    f"{_element(field)} is {value!r}: expected {', '.join(known)}"
                )
        if not values:
            raise DocumentRefused(f"has no <{_element(field)}>: add it")
        found[field] = tuple(values)
    return found


def changed(text: str, kinds: Mapping[str, StrEnum]) -> str:
    """A governance document with these kinds in the place of its own, and nothing else changed:
    somebody may have edited it. Raises DocumentRefused where a line stands there several times,
    since which of them is meant is not known, and where it is so written that XML says otherwise
    afterwards."""
    _parsed(text)
    for field, kind in kinds.items():
        values = {_element(field): str(kind)}
        if field in _ENABLED:
            # Endpoints' own switches, which stand with the topics (section 9.4.1.2.5).
            values[_ENABLED[field]] = _boolean(kind != "NONE")
        for element, value in values.items():
            text = _with(text, element, value, f"--{field}")
    return text


_ENABLED = {
    "discovery": "enable_discovery_protection",
    "liveliness": "enable_liveliness_protection",
}


def _element(field: str) -> str:
    return f"{field}_protection_kind"


def _with(text: str, element: str, value: str, flag: str) -> str:
    lines = re.finditer(rf"<{element}\s*>([^<\0]*)</{element}\s*>", _without_comments(text))
    places = [match.span(1) for match in lines]
    if len(places) != 1:
        raise DocumentRefused(
            f"has {len(places) or 'no'} <{element}>, so that {flag} cannot say which is meant: "
            f"edit the file, then run the command without {flag}"
        )
    ((start, end),) = places
    text = text[:start] + value + text[end:]
    said = [(one.text or "").strip() for one in _parsed(text).iter(element)]
    # What was found may have stood where XML has no element: in a processing instruction.
    if said != [value]:
        raise DocumentRefused(
            f"has its <{element}> where {flag} does not reach it: write it as "
            f"<{element}>{value}</{element}>, then run the command without {flag}"
        )
    return text


def _without_comments(text: str) -> str:
    """The same with zeros, which XML has nowhere, for comments, so that places stay; in one
    pass."""
    parts, at = [], 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        parts += [text[at:start], "\0" * (end + 3 - start)]
        at = end + 3
    return "".join([*parts, text[at:]])


def doubt_of_permissions(text: str, subject: str, now: datetime) -> str | None:
    """Why every participant would refuse this subject by this permissions document: it has no
    grant, or its permissions are over. None where neither is so. `now` is UTC. Raises
    DocumentRefused for what no middleware reads."""
    grants = list(_parsed(text).iter("grant"))
    named = [(one.findtext("subject_name") or "").strip() for one in grants]
    if subject not in named:
        have = ", ".join(map(repr, named)) or "none"
        return f"has no <grant> whose <subject_name> is {subject} (it has {have}): edit it"
    ends = (grants[named.index(subject)].findtext("validity/not_after") or "").strip()
    # What precedes a zone, which may be left out for UTC (section 9.4.1.3).
    if ends[:19] < f"{now:%Y-%m-%dT%H:%M:%S}":
        return f"its <not_after> is {ends!r}, which is over: set a later one, and run this again"
    return None


def _parsed(text: str) -> ET.Element:
    # In either, what looks like an element may be none, or stand for something else; no document of
    # DDS Security needs them, and a middleware's own parser need not know them.
    for begin in ("<![CDATA[", "<!DOCTYPE"):
        if begin in text:
            raise DocumentRefused(
                f"has {begin}, which DDS implementations read differently: remove it"
            )
    declared = re.match(r"\s*<\?xml[^>]*?\sencoding\s*=\s*[\"']([^\"']*)", text.lstrip("\ufeff"))
    if declared and declared[1].lower() not in {"utf-8", "us-ascii"}:
        raise DocumentRefused(
            f"declares the encoding {declared[1]!r}: save it in UTF-8, and declare that"
        )
    try:
        return ET.fromstring(text.encode(), ET.XMLParser(encoding="utf-8"))
    except ET.ParseError as error:
        raise DocumentRefused(f"is not XML that can be read ({error})") from None


def _boolean(value: bool) -> str:
    return "true" if value else "false"
