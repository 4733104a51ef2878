# SPDX-License-Identifier: Apache-2.0 OR MIT
"""An SROS2 keystore for tests, made with openssl: KEYSTORE/enclaves/NAME with the six files that
ROS 2 looks for (design.ros2.org, ROS 2 DDS-Security integration)."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

_SINCE, _UNTIL = "2020-01-01T00:00:00", "2099-01-01T00:00:00"


@dataclass(frozen=True)
class Governance:
    """Protection kinds, in DDS Security's words (8.4.2.4)."""

    data: str = "ENCRYPT"
    metadata: str = "ENCRYPT"
    rtps: str = "NONE"
    discovery: str = "NONE"
    liveliness: str = "NONE"


def enclave(keystore: Path, name: str, governance: Governance) -> Path:
    """Makes an enclave, and the keystore's authority when it is the first; returns its folder."""
    public, private = keystore / "public", keystore / "private"
    if not public.exists():
        public.mkdir(parents=True)
        private.mkdir(mode=0o700)
        _authority(public / "ca.cert.pem", private / "ca.key.pem")
    folder = keystore / "enclaves" / name
    folder.mkdir(parents=True)
    ca, key = public / "ca.cert.pem", private / "ca.key.pem"
    (folder / "identity_ca.cert.pem").write_bytes(ca.read_bytes())
    (folder / "permissions_ca.cert.pem").write_bytes(ca.read_bytes())
    request = folder / "request.pem"
    _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", folder / "key.pem")
    _openssl("req", "-new", "-key", folder / "key.pem", "-subj", f"/CN={name}", "-out", request)
    _openssl(
        "x509", "-req", "-in", request, "-CA", ca, "-CAkey", key, "-CAcreateserial",
        "-days", "3650", "-sha256", "-out", folder / "cert.pem",
    )  # fmt: skip
    for stem, text in (
        ("governance", _governance(governance)),
        ("permissions", _permissions(f"CN={name}")),
    ):
        plain = folder / f"{stem}.xml"
        plain.write_text(text, encoding="utf-8")
        _openssl(
            "smime", "-sign", "-text", "-md", "sha256", "-in", plain, "-signer", ca, "-inkey", key,
            "-out", folder / f"{stem}.p7s",
        )  # fmt: skip
    return folder


def _authority(certificate: Path, key: Path) -> None:
    _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key)
    _openssl(
        "req", "-new", "-x509", "-key", key, "-subj", "/CN=test CA", "-days", "3650", "-sha256",
        "-out", certificate,
    )  # fmt: skip


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def _governance(kinds: Governance) -> str:
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<dds xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
  xsi:noNamespaceSchemaLocation="omg_shared_ca_governance.xsd">
  <domain_access_rules>
    <domain_rule>
      <domains><id_range><min>0</min><max>232</max></id_range></domains>
      <allow_unauthenticated_participants>false</allow_unauthenticated_participants>
      <enable_join_access_control>true</enable_join_access_control>
      <discovery_protection_kind>{kinds.discovery}</discovery_protection_kind>
      <liveliness_protection_kind>{kinds.liveliness}</liveliness_protection_kind>
      <rtps_protection_kind>{kinds.rtps}</rtps_protection_kind>
      <topic_access_rules>
        <topic_rule>
          <topic_expression>*</topic_expression>
          <enable_discovery_protection>{_said(kinds.discovery)}</enable_discovery_protection>
          <enable_liveliness_protection>{_said(kinds.liveliness)}</enable_liveliness_protection>
          <enable_read_access_control>true</enable_read_access_control>
          <enable_write_access_control>true</enable_write_access_control>
          <metadata_protection_kind>{kinds.metadata}</metadata_protection_kind>
          <data_protection_kind>{kinds.data}</data_protection_kind>
        </topic_rule>
      </topic_access_rules>
    </domain_rule>
  </domain_access_rules>
</dds>
"""


def _said(kind: str) -> str:
    return str(kind != "NONE").lower()


def _permissions(subject: str) -> str:
    criteria = "".join(
        f"<{verb}><topics><topic>*</topic></topics>"
        f"<partitions><partition>*</partition></partitions></{verb}>"
        for verb in ("publish", "subscribe")
    )
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<dds xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
  xsi:noNamespaceSchemaLocation="omg_shared_ca_permissions.xsd">
  <permissions>
    <grant name="test">
      <subject_name>{escape(subject)}</subject_name>
      <validity><not_before>{_SINCE}</not_before><not_after>{_UNTIL}</not_after></validity>
      <allow_rule>
        <domains><id_range><min>0</min><max>232</max></id_range></domains>
        {criteria}
      </allow_rule>
      <default>DENY</default>
    </grant>
  </permissions>
</dds>
"""
