# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Governance and permissions documents (DDS Security 1.1, sections 9.4.1.2 and 9.4.1.3)."""

from __future__ import annotations

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


@dataclass(frozen=True)
class Governance:
    """What is protected, and how, in all domains and topics. The defaults are SROS2's."""

    data: Basic = Basic.ENCRYPT
    metadata: Protection = Protection.ENCRYPT
    rtps: Protection = Protection.SIGN
    discovery: Protection = Protection.ENCRYPT
    liveliness: Protection = Protection.ENCRYPT

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


def _boolean(value: bool) -> str:
    return "true" if value else "false"
