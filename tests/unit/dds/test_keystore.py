# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Keystores: their layout, who may read them, what openssl says of them."""

from __future__ import annotations

import datetime
import re
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from support.commands import Run, one_line
from warifu import tools
from warifu.cli.errors import OK, USAGE
from warifu.dds.governance import Basic, Governance, Protection
from warifu.dds.keystore import Enclave, KeystoreRefused, create

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)


def openssl(*arguments: str | Path) -> str:
    done = subprocess.run(
        [tools.find("openssl"), *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout


def signed(enclave: Enclave, document: Path) -> ET.Element:
    """A document whose signature is the permissions CA's."""
    text = openssl(
        "smime", "-verify", "-text", "-in", document,
        "-CAfile", enclave.permissions_ca, "-purpose", "any",
    )  # fmt: skip
    return ET.fromstring(text.strip())


@pytest.fixture
def made(tmp_path: Path) -> dict[str, Enclave]:
    # Validity is looked at by openssl, which has the real clock alone.
    now = datetime.datetime.now(datetime.UTC)
    return create(tmp_path / "keys", ["/talker", "/fleet/car_1"], Governance(), now=now)


def test_the_layout_is_that_of_sros2(tmp_path: Path, made: dict[str, Enclave]) -> None:
    files = {
        str(path.relative_to(tmp_path / "keys"))
        for path in (tmp_path / "keys").rglob("*")
        if path.is_file()
    }
    of_enclave = {
        "cert.pem", "key.pem", "identity_ca.cert.pem", "permissions_ca.cert.pem",
        "governance.p7s", "permissions.p7s", "permissions.xml",
    }  # fmt: skip
    assert files == {
        *(f"public/{ca}.cert.pem" for ca in ("identity_ca", "permissions_ca")),
        *(f"private/{ca}.key.pem" for ca in ("identity_ca", "permissions_ca")),
        "enclaves/governance.xml",
        "enclaves/governance.p7s",
        *(f"enclaves/{name}/{file}" for name in ("talker", "fleet/car_1") for file in of_enclave),
    }
    assert set(made) == {"/talker", "/fleet/car_1"}


def test_private_keys_are_their_owners_alone(tmp_path: Path, made: dict[str, Enclave]) -> None:
    keys = [enclave.key for enclave in made.values()]
    keys += (tmp_path / "keys" / "private").iterdir()
    assert len(keys) == 4
    for key in keys:
        assert key.stat().st_mode & 0o777 == 0o600
        assert "prime256v1" in openssl("pkey", "-in", key, "-noout", "-text")


def test_certificates_name_the_enclave_and_are_the_identity_cas(made: dict[str, Enclave]) -> None:
    for name, enclave in made.items():
        subject = openssl("x509", "-in", enclave.certificate, "-noout", "-subject",
                          "-nameopt", "rfc2253")  # fmt: skip
        assert subject.strip() == f"subject=CN={name}"
        openssl("verify", "-CAfile", enclave.identity_ca, enclave.certificate)
        of_key = openssl("pkey", "-in", enclave.key, "-pubout")
        assert of_key == openssl("x509", "-in", enclave.certificate, "-noout", "-pubkey")


def test_permissions_are_for_the_certificates_subject_and_allow_partitions(
    made: dict[str, Enclave],
) -> None:
    for name, enclave in made.items():
        grant = signed(enclave, enclave.permissions).find("permissions/grant")
        assert grant is not None
        assert grant.findtext("subject_name") == f"CN={name}"
        for direction in ("publish", "subscribe"):
            assert grant.findtext(f"allow_rule/{direction}/topics/topic") == "*"
            assert grant.findtext(f"allow_rule/{direction}/partitions/partition") == "*"
        assert grant.findtext("default") == "DENY"


def test_governance_says_what_was_asked_for(tmp_path: Path) -> None:
    governance = Governance(
        data=Basic.SIGN,
        metadata=Protection.SIGN_WITH_ORIGIN_AUTHENTICATION,
        rtps=Protection.ENCRYPT,
        discovery=Protection.NONE,
        liveliness=Protection.SIGN,
    )
    now = datetime.datetime.now(datetime.UTC)
    (enclave,) = create(tmp_path, ["/a"], governance, now=now).values()
    rule = signed(enclave, enclave.governance).find("domain_access_rules/domain_rule")
    assert rule is not None
    topic = rule.find("topic_access_rules/topic_rule")
    assert topic is not None
    assert topic.findtext("data_protection_kind") == "SIGN"
    assert topic.findtext("metadata_protection_kind") == "SIGN_WITH_ORIGIN_AUTHENTICATION"
    assert topic.findtext("enable_discovery_protection") == "false"
    assert topic.findtext("enable_liveliness_protection") == "true"
    assert rule.findtext("rtps_protection_kind") == "ENCRYPT"
    assert rule.findtext("discovery_protection_kind") == "NONE"
    assert rule.findtext("liveliness_protection_kind") == "SIGN"
    assert rule.findtext("allow_unauthenticated_participants") == "false"


def test_a_second_call_adds_enclaves_and_signs_governance_for_all(
    tmp_path: Path, made: dict[str, Enclave]
) -> None:
    folder = tmp_path / "keys"
    ca = (folder / "private" / "identity_ca.key.pem").read_bytes()
    key = made["/talker"].key.read_bytes()
    now = datetime.datetime.now(datetime.UTC)
    create(folder, ["/late"], Governance(rtps=Protection.ENCRYPT), now=now)
    assert (folder / "private" / "identity_ca.key.pem").read_bytes() == ca
    assert made["/talker"].key.read_bytes() == key
    for name in ("talker", "fleet/car_1", "late"):
        enclave = Enclave(folder / "enclaves" / name)
        found = signed(enclave, enclave.governance).find(".//rtps_protection_kind")
        assert found is not None
        assert found.text == "ENCRYPT"


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(KeystoreRefused, match="is no keystore"):
        create(tmp_path, ["/talker"], Governance(), now=NOW)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


@pytest.mark.parametrize("name", ["talker", "/", "/a/", "/../a", "/1a", "/a b", "/" + "a" * 64])
def test_a_name_that_is_no_enclaves_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(KeystoreRefused, match=re.escape(repr(name))):
        create(tmp_path / "keys", [name], Governance(), now=NOW)
    assert not (tmp_path / "keys").exists()


def test_permissions_begin_an_hour_earlier_and_end_with_the_days(tmp_path: Path) -> None:
    (enclave,) = create(tmp_path, ["/a"], Governance(), now=NOW, days=10).values()
    validity = ET.parse(enclave.folder / "permissions.xml").getroot().find(".//validity")
    assert validity is not None
    assert validity.findtext("not_before") == "2026-01-02T02:04:05"
    assert validity.findtext("not_after") == "2026-01-12T03:04:05"


def test_the_command_makes_one_and_says_where(warifu: Run, tmp_path: Path, elsewhere: None) -> None:
    code, out, _ = warifu("dds", "keystore", "keys", "-e", "/a", "-e", "/b", "--rtps", "none")
    assert code == OK
    lines = out.splitlines()
    assert [line.split(" (")[0] for line in lines] == ["/a: keys/enclaves/a", "/b: keys/enclaves/b"]
    assert all("(new; valid until " in line for line in lines)
    text = (tmp_path / "keys" / "enclaves" / "governance.xml").read_text()
    assert "<rtps_protection_kind>NONE<" in text


def test_the_command_refuses_in_one_line(warifu: Run, elsewhere: None) -> None:
    code, _, err = warifu("dds", "keystore", "keys", "-e", "a")
    assert code == USAGE
    assert "enclave 'a'" in one_line(err)
