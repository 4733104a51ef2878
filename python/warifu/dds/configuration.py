# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How programs are told of an enclave: Cyclone DDS's configuration, Fast DDS's profiles, the
variables of ROS 2."""

from __future__ import annotations

import shlex
from enum import StrEnum
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from warifu.dds.keystore import Enclave, KeystoreRefused
from warifu.dds.middlewares import cyclone_folders

_OURS = "libwarifu_dds_crypto.so"


class Show(StrEnum):
    """What `warifu dds keystore --show` prints."""

    CYCLONEDDS = "cyclonedds"
    CYCLONEDDS_WARIFU = "cyclonedds-warifu"
    FASTDDS = "fastdds"
    ROS2 = "ros2"


def shown(what: Show, folder: Path, name: str, enclave: Enclave) -> str:
    """The text for one enclave. Raises KeystoreRefused, and ToolMissing without our plugin."""
    absolute = Enclave(enclave.folder.resolve())
    # Cyclone DDS 0.10 and Fast DDS 2.9 take what follows `file:` as it stands, and Cyclone
    # replaces `$` by variables of the environment.
    if any(sign in str(absolute.folder) for sign in "$%\n\r"):
        raise KeystoreRefused(
            f"{absolute.folder}: its path has a character that middlewares do not take as it "
            "stands ($, %, or the end of a line): move the keystore to another folder"
        )
    match what:
        case Show.CYCLONEDDS:
            return cyclone(absolute, name)
        case Show.CYCLONEDDS_WARIFU:
            from warifu.tools import find

            return cyclone(absolute, name, (str(find(_OURS)), "init_crypto"))
        case Show.FASTDDS:
            return fast_dds(absolute, name)
        case Show.ROS2:
            return ros2(folder.resolve(), name)


def cyclone(enclave: Enclave, name: str, crypto: tuple[str, str] | None = None) -> str:
    """A whole configuration, as CYCLONEDDS_URI=file://PATH takes it; `crypto` as in `security`."""
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<!-- {name}: CYCLONEDDS_URI=file://THIS-FILE -->
<CycloneDDS xmlns="https://cdds.io/config">
  <Domain Id="any">
{security(enclave, crypto)}
  </Domain>
</CycloneDDS>
"""


def security(enclave: Enclave, crypto: tuple[str, str] | None = None) -> str:
    """What a domain of Cyclone's is given; `crypto` is another cryptographic plugin: its library
    and the function that begins it."""
    authentication, access = "dds_security_auth", "dds_security_ac"
    path, init = crypto or (_library("dds_security_crypto"), "init_crypto")
    return f"""    <Security>
      <Authentication>
        {_loads(_library(authentication), "init_authentication", "finalize_authentication")}
        <IdentityCA>{_file(enclave.identity_ca)}</IdentityCA>
        <IdentityCertificate>{_file(enclave.certificate)}</IdentityCertificate>
        <PrivateKey>{_file(enclave.key)}</PrivateKey>
        <!-- Fast DDS as a peer needs them. -->
        <IncludeOptionalFields>true</IncludeOptionalFields>
      </Authentication>
      <AccessControl>
        {_loads(_library(access), "init_access_control", "finalize_access_control")}
        <PermissionsCA>{_file(enclave.permissions_ca)}</PermissionsCA>
        <Governance>{_file(enclave.governance)}</Governance>
        <Permissions>{_file(enclave.permissions)}</Permissions>
      </AccessControl>
      <Cryptographic>
        {_loads(path, init, "finalize_crypto")}
      </Cryptographic>
    </Security>"""


def properties(enclave: Enclave) -> dict[str, str]:
    """Of a participant of Fast DDS (its documentation, Security), and of DDS Security's own
    names where those are the same (section 9)."""
    authentication = "dds.sec.auth.builtin.PKI-DH"
    access = "dds.sec.access.builtin.Access-Permissions"
    return {
        "dds.sec.auth.plugin": "builtin.PKI-DH",
        f"{authentication}.identity_ca": f"file://{enclave.identity_ca}",
        f"{authentication}.identity_certificate": f"file://{enclave.certificate}",
        f"{authentication}.private_key": f"file://{enclave.key}",
        "dds.sec.access.plugin": "builtin.Access-Permissions",
        f"{access}.permissions_ca": f"file://{enclave.permissions_ca}",
        f"{access}.governance": f"file://{enclave.governance}",
        f"{access}.permissions": f"file://{enclave.permissions}",
        "dds.sec.crypto.plugin": "builtin.AES-GCM-GMAC",
    }


def fast_dds(enclave: Enclave, name: str) -> str:
    """A default profile, as FASTRTPS_DEFAULT_PROFILES_FILE=PATH takes it (Fast DDS 2; Fast DDS 3:
    FASTDDS_DEFAULT_PROFILES_FILE); its properties are those that a program may set itself."""
    lines = "\n".join(
        f"          <property><name>{name}</name><value>{escape(value)}</value></property>"
        for name, value in properties(enclave).items()
    )
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<!-- {name}: FASTRTPS_DEFAULT_PROFILES_FILE=THIS-FILE -->
<profiles xmlns="http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles">
  <participant profile_name="secured" is_default_profile="true">
    <rtps>
      <propertiesPolicy>
        <properties>
{lines}
        </properties>
      </propertiesPolicy>
    </rtps>
  </participant>
</profiles>
"""


def ros2(folder: Path, name: str) -> str:
    """Lines for a shell: the variables of SROS2, and how a node is given its enclave."""
    return f"""export ROS_SECURITY_KEYSTORE={shlex.quote(str(folder))}
export ROS_SECURITY_ENABLE=true
export ROS_SECURITY_STRATEGY=Enforce  # a node without an enclave does not start
# ros2 run PACKAGE NODE --ros-args --enclave {name}
"""


def _library(name: str) -> str:
    """By its path where Debian has it, in a folder that no program looks into by itself."""
    paths = (folder / f"lib{name}.so" for folder in cyclone_folders())
    return next((str(path) for path in paths if path.exists()), name)


def _loads(path: str, init: str, finalize: str) -> str:
    return (
        f"<Library path={quoteattr(path)}\n"
        f'                 initFunction="{init}" finalizeFunction="{finalize}"/>'
    )


def _file(path: Path) -> str:
    return f"file:{escape(str(path))}"
