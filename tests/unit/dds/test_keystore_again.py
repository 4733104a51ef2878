# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A keystore that is there: what a second run keeps, changes and refuses."""

from __future__ import annotations

import datetime
import fcntl
import os
import shlex
import subprocess
import time
from pathlib import Path

import pytest

from support import needs
from support.commands import Run, one_line
from warifu import tools
from warifu.cli.errors import OK, USAGE
from warifu.dds.governance import DocumentRefused, Governance, Protection, changed, kinds_of
from warifu.dds.keystore import KeystoreRefused, enclaves, make
from warifu.dds.keystore_files import private

DAY = datetime.timedelta(days=1)


def now() -> datetime.datetime:
    """openssl has the real clock alone."""
    return datetime.datetime.now(datetime.UTC)


def openssl(*arguments: str | Path) -> str:
    done = subprocess.run(
        [tools.find("openssl"), *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout


def content(folder: Path) -> dict[str, bytes]:
    """Of what no flag may change: keys and certificates."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*.pem")
        if path.is_file()
    }


def signed(document: Path, ca: Path) -> str:
    return openssl("smime", "-verify", "-text", "-in", document, "-CAfile", ca, "-purpose", "any")


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    folder = tmp_path / "keys"
    kinds = {"metadata": Protection.NONE, "rtps": Protection.ENCRYPT}
    make(folder, ["/talker", "/fleet/car_1"], kinds, now=now(), days=30)
    return folder


def governance(folder: Path) -> dict[str, tuple[str, ...]]:
    """What every enclave was given, by its signature."""
    found = [
        kinds_of(signed(one.governance, one.permissions_ca).strip())
        for one in enclaves(folder).values()
    ]
    assert found.count(found[0]) == len(found)
    return found[0]


def test_what_no_flag_names_is_kept(keys: Path) -> None:
    before = content(keys)
    again = make(keys, ["/talker"], {"rtps": Protection.SIGN}, now=now())
    assert content(keys) == before
    assert not again.new
    assert governance(keys) == {
        "data": ("ENCRYPT",),
        "metadata": ("NONE",),
        "rtps": ("SIGN",),
        "discovery": ("ENCRYPT",),
        "liveliness": ("ENCRYPT",),
    }


def test_discovery_and_liveliness_switch_their_topics_as_well(keys: Path) -> None:
    make(keys, [], {"discovery": Protection.NONE}, now=now())
    text = (keys / "enclaves" / "governance.xml").read_text()
    assert "<enable_discovery_protection>false<" in text
    assert "<enable_liveliness_protection>true<" in text
    make(keys, [], {"discovery": Protection.SIGN}, now=now())
    assert text.replace(">false</enable_disc", ">true</enable_disc") == (
        keys / "enclaves" / "governance.xml"
    ).read_text().replace("discovery_protection_kind>SIGN", "discovery_protection_kind>NONE")


def test_edited_documents_are_signed_as_they_were_edited(keys: Path) -> None:
    edits = {
        keys / "enclaves" / "governance.xml": ("<max>230</max>", "<max>7</max>"),
        keys / "enclaves" / "talker" / "permissions.xml": (
            "<topic>*</topic>", "<topic>rt/chatter</topic>",
        ),
    }  # fmt: skip
    for file, (old, new) in edits.items():
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))
    make(keys, ["/late"], {"metadata": Protection.SIGN}, now=now())
    for file, (_, new) in edits.items():
        assert new in file.read_text()
    for name, enclave in enclaves(keys).items():
        assert "<max>7</max>" in signed(enclave.governance, enclave.permissions_ca)
        allowed = signed(enclave.permissions, enclave.permissions_ca)
        assert ("<topic>rt/chatter</topic>" in allowed) == (name == "/talker")
    assert governance(keys)["metadata"] == ("SIGN",)


@pytest.mark.parametrize("kind", ["key", "certificate"])
@pytest.mark.parametrize("ca", ["identity_ca", "permissions_ca"])
def test_half_a_ca_is_refused_and_not_made_anew(keys: Path, ca: str, kind: str) -> None:
    halves = {"key": keys / "private" / f"{ca}.key.pem",
              "certificate": keys / "public" / f"{ca}.cert.pem"}  # fmt: skip
    halves[kind].unlink()
    before = content(keys)
    with pytest.raises(KeystoreRefused, match=r"is missing, while .* restore it") as refused:
        make(keys, ["/late"], {}, now=now())
    assert str(halves[kind]) in str(refused.value)
    assert content(keys) == before


def test_enclaves_without_any_ca_get_no_new_one(keys: Path) -> None:
    for path in (
        keys / "private" / "identity_ca.key.pem",
        keys / "public" / "identity_ca.cert.pem",
    ):
        path.unlink()
    with pytest.raises(KeystoreRefused, match="a new CA would not know the 2 enclaves"):
        make(keys, ["/late"], {}, now=now())


def test_key_of_another_ca_is_refused(keys: Path, tmp_path: Path) -> None:
    make(tmp_path / "other", ["/a"], {}, now=now())
    key = "private/permissions_ca.key.pem"
    (keys / key).write_bytes((tmp_path / "other" / key).read_bytes())
    with pytest.raises(KeystoreRefused, match="is not the key of"):
        make(keys, [], {}, now=now())


@pytest.mark.parametrize(
    "name",
    ["private/identity_ca.key.pem", "public/permissions_ca.cert.pem", "enclaves/talker/cert.pem"],
)
def test_key_or_certificate_that_is_damaged_is_named(keys: Path, name: str) -> None:
    text = (keys / name).read_text()
    (keys / name).write_text(text[: len(text) // 2])
    with pytest.raises(KeystoreRefused, match=r"restore it from a copy") as refused:
        make(keys, ["/talker", "/late"], {}, now=now())
    assert str(refused.value).startswith(f"{keys / name}: openssl ")
    assert "/late" not in enclaves(keys)


@pytest.mark.parametrize("half", ["key.pem", "cert.pem"])
def test_half_an_enclave_is_refused_and_not_made_anew(keys: Path, half: str) -> None:
    (keys / "enclaves" / "talker" / half).unlink()
    with pytest.raises(KeystoreRefused, match=f"talker/{half}: is missing"):
        make(keys, ["/talker"], {}, now=now())
    assert not (keys / "enclaves" / "talker" / half).exists()


def test_enclave_below_another_is_made_beside_it(keys: Path) -> None:
    car = content(keys / "enclaves" / "fleet" / "car_1")
    make(keys, ["/fleet"], {}, now=now())
    assert content(keys / "enclaves" / "fleet" / "car_1") == car
    assert set(enclaves(keys)) == {"/fleet", "/fleet/car_1", "/talker"}


def test_new_enclave_does_not_outlive_its_ca(keys: Path) -> None:
    made = make(keys, ["/late"], {}, now=now(), days=3650)
    (note,) = made.notes
    assert "_ca.cert.pem: expires on" in note
    for ca in ("identity_ca", "permissions_ca"):
        until = openssl("x509", "-in", keys / "public" / f"{ca}.cert.pem", "-noout", "-enddate")
        end = datetime.datetime.strptime(until.strip(), "notAfter=%b %d %H:%M:%S %Y GMT")
        assert made.ends["/late"] <= end.replace(tzinfo=datetime.UTC)
    assert made.ends["/late"] > now() + 29 * DAY
    text = (keys / "enclaves" / "late" / "permissions.xml").read_text()
    not_after = text.split("<not_after>")[1].split("<")[0]
    assert not_after <= f"{made.ends['/late']:%Y-%m-%dT%H:%M:%S}"


@pytest.mark.parametrize(
    ("later", "says"),
    [(30.5, "expires within a day"), (32, "expired on")],
)
def test_ca_that_is_over_makes_no_enclave(keys: Path, later: float, says: str) -> None:
    with pytest.raises(KeystoreRefused, match=f"{says}.* another folder"):
        make(keys, ["/late"], {}, now=now() + later * DAY)
    assert "/late" not in enclaves(keys)


def test_enclave_that_is_over_is_told(keys: Path) -> None:
    made = make(keys, ["/talker"], {}, now=now() + 30.5 * DAY)
    assert any("talker/cert.pem: expired on" in note for note in made.notes)
    assert any("talker/permissions.xml: its <not_after>" in note for note in made.notes)


def test_permissions_of_somebody_else_are_told(keys: Path) -> None:
    theirs = keys / "enclaves" / "fleet" / "car_1" / "permissions.xml"
    (keys / "enclaves" / "talker" / "permissions.xml").write_bytes(theirs.read_bytes())
    (note,) = make(keys, [], {}, now=now()).notes
    assert "talker/permissions.xml: has no <grant> whose <subject_name> is CN=/talker" in note
    assert "'CN=/fleet/car_1'" in note


@pytest.mark.parametrize(
    "place", ["enclaves", "enclaves/talker", "enclaves/talker/key.pem", "enclaves/governance.xml",
              "private/identity_ca.key.pem", "public"],
)  # fmt: skip
def test_links_in_the_folder_are_not_followed(keys: Path, tmp_path: Path, place: str) -> None:
    moved = tmp_path / "moved"
    (keys / place).rename(moved)
    (keys / place).symlink_to(moved)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(KeystoreRefused, match="is a link") as refused:
        make(keys, ["/late"], {"rtps": Protection.NONE}, now=now())
    assert str(keys / place) in str(refused.value)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


_WRITABLE = [
    ".", "enclaves", "enclaves/governance.xml", "enclaves/talker/permissions.xml", "private",
    "public/permissions_ca.cert.pem",
]  # fmt: skip


def refused_until_it_is_done(folder: Path, says: str) -> None:
    """Nothing is signed; what the message advises, last, makes it work again."""
    signature = folder / "enclaves" / "governance.p7s"
    before = signature.read_bytes()
    with pytest.raises(KeystoreRefused, match=says) as refused:
        make(folder, [], {"rtps": Protection.NONE}, now=now())
    assert signature.read_bytes() == before
    subprocess.run(shlex.split(str(refused.value).split("`")[1]), check=True)
    make(folder, [], {"rtps": Protection.NONE}, now=now())
    assert signature.read_bytes() != before


@pytest.mark.parametrize("right", [0o020, 0o002], ids=["group", "everybody"])
@pytest.mark.parametrize("place", _WRITABLE)
def test_what_others_can_change_is_not_signed(keys: Path, place: str, right: int) -> None:
    path = keys / place
    path.chmod(path.stat().st_mode | right)
    refused_until_it_is_done(keys, f"{path}: is writable by its group or by others")


@needs.root
@pytest.mark.parametrize("place", _WRITABLE)
def test_what_somebody_else_has_made_is_not_signed(keys: Path, place: str) -> None:
    os.chown(keys / place, 65534, 65534)
    refused_until_it_is_done(keys, f"{keys / place}: belongs to user 65534, and the CA would")


def test_mask_that_leaves_new_folders_to_the_group(tmp_path: Path) -> None:
    mask = os.umask(0o002)
    try:
        (tmp_path / "empty").mkdir()
        for folder in (tmp_path / "empty", tmp_path / "above" / "keys"):
            make(folder, ["/fleet/car_1"], {}, now=now())
            make(folder, ["/late"], {}, now=now())
            assert set(enclaves(folder)) == {"/fleet/car_1", "/late"}
    finally:
        os.umask(mask)
    for name in ("empty", "above"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o755, name


def test_rights_are_taken_through_no_link(tmp_path: Path) -> None:
    aim, link = tmp_path / "aim", tmp_path / "link"
    aim.touch(0o644)
    link.symlink_to(aim)
    with pytest.raises(OSError, match="link"):
        private(link)
    assert aim.stat().st_mode & 0o777 == 0o644


def test_pipe_in_the_place_of_a_file_is_refused(keys: Path) -> None:
    file = keys / "enclaves" / "governance.xml"
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(KeystoreRefused, match=r"governance\.xml: is neither a file nor a folder"):
        make(keys, [], {}, now=now())


@pytest.mark.parametrize("name", ["private/identity_ca.key.pem", "enclaves/talker/cert.pem"])
def test_key_or_certificate_of_gigabytes_is_refused_at_once(keys: Path, name: str) -> None:
    with (keys / name).open("r+b") as sparse:
        sparse.truncate(20 * 2**30)
    with pytest.raises(KeystoreRefused, match=f"{name}: is longer than"):
        make(keys, ["/talker"], {}, now=now())


def test_folder_that_no_enclave_can_be_called_is_told(keys: Path) -> None:
    (keys / "enclaves" / "talker").rename(keys / "enclaves" / "talker--> copy")
    with pytest.raises(KeystoreRefused, match="enclave '/talker--> copy': expected"):
        make(keys, [], {}, now=now())


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (">SIGN<", ">SIGNED<", "is 'SIGNED': expected NONE, SIGN"),
        ("</dds>", "", "is not XML"),
        ("<data_protection_kind>ENCRYPT</data_protection_kind>", "", "has no <data_protection"),
        ("domain_access_rules", "rules", "has no <domain_rule>"),
    ],
)
def test_governance_that_no_middleware_reads_is_not_signed(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    keys = tmp_path / "keys"
    make(keys, ["/talker"], {}, now=now())
    file = keys / "enclaves" / "governance.xml"
    before = (keys / "enclaves" / "governance.p7s").read_bytes()
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    with pytest.raises(KeystoreRefused, match=says) as refused:
        make(keys, [], {}, now=now())
    assert str(refused.value).startswith(f"{file}: ")
    assert (keys / "enclaves" / "governance.p7s").read_bytes() == before


def test_flag_for_a_line_that_is_there_twice_is_refused() -> None:
    text = Governance().xml()
    rule = text[text.index("<topic_rule>") : text.index("</topic_rule>") + len("</topic_rule>")]
    twice = text.replace(rule, rule.replace("*", "rt/open") + rule)
    assert kinds_of(twice)["data"] == ("ENCRYPT", "ENCRYPT")
    with pytest.raises(DocumentRefused, match="has 2 <data_protection_kind>, so that --data"):
        changed(twice, {"data": Protection.NONE})
    # What stands in a comment is nobody's.
    comment = text.replace(
        "<dds ", "<!-- <data_protection_kind>SIGN</data_protection_kind> -->\n<dds "
    )
    assert kinds_of(changed(comment, {"data": Protection.NONE}))["data"] == ("NONE",)
    assert "<data_protection_kind>SIGN<" in changed(comment, {"data": Protection.NONE})


_DATA = "<data_protection_kind>ENCRYPT</data_protection_kind>"


def test_flag_finds_a_line_that_xml_writes_with_spaces() -> None:
    text = Governance().xml().replace(_DATA, _DATA.replace("kind>", "kind\n >"))
    assert kinds_of(changed(text, {"data": Protection.NONE}))["data"] == ("NONE",)


@pytest.mark.parametrize(
    ("real", "copy", "says"),
    [
        # XML takes the line with an attribute for the element, and a copy is all that is found.
        ('kind a="">', f"<![CDATA[{_DATA}]]>", r"has <!\[CDATA\["),
        ('kind a="">', f"<?copy {_DATA}?>", "where --data does not reach it"),
        ('kind a="">', f"<!-- {_DATA} -->", "has no <data_protection_kind>"),
        ("kind><!-- -->", "", "has no <data_protection_kind>"),
    ],
    ids=["CDATA", "processing instruction", "comment", "comment inside"],
)
def test_flag_that_would_not_be_followed_is_refused(real: str, copy: str, says: str) -> None:
    line = _DATA.replace("kind>", real, 1)
    text = Governance().xml().replace(_DATA, f"{copy}{line}")
    with pytest.raises(DocumentRefused, match=says):
        changed(text, {"data": Protection.NONE})


@pytest.mark.parametrize("encoding", ["UTF-7", "utf-16", "ISO-8859-1", ""])
def test_document_in_another_encoding_is_not_signed(encoding: str) -> None:
    text = Governance().xml()
    head = f"<?xml version='1.0' encoding = '{encoding}'?>\n"
    body = text[text.index("<dds") :]
    with pytest.raises(DocumentRefused, match=f"declares the encoding '{encoding}'"):
        kinds_of(head + body)
    assert kinds_of(head.replace(encoding, "utf-8", 1) + body if encoding else text)


def test_entities_are_not_signed() -> None:
    text = Governance().xml().replace("<dds ", '<!DOCTYPE dds [<!ENTITY e "NONE">]>\n<dds ')
    with pytest.raises(DocumentRefused, match="has <!DOCTYPE"):
        kinds_of(text.replace(_DATA, _DATA.replace("ENCRYPT", "&e;")))


def test_beginnings_of_comments_without_end_take_no_time() -> None:
    """Each was looked for to the end of the document: minutes."""
    text = Governance().xml().replace("<dds ", f"<?x {'<!-- ' * 100_000}?>\n<dds ")
    began = time.process_time()
    assert kinds_of(changed(text, {"data": Protection.NONE}))["data"] == ("NONE",)
    assert time.process_time() - began < 10


def test_governance_that_is_missing_is_not_guessed(keys: Path) -> None:
    file = keys / "enclaves" / "governance.xml"
    text = file.read_text()
    file.unlink()
    with pytest.raises(KeystoreRefused, match=r"governance\.xml: is missing") as refused:
        make(keys, [], {}, now=now())
    # What it advises to do does it.
    command = str(refused.value).split("`")[1]
    subprocess.run(command.split(), check=True, capture_output=True)
    assert file.read_text().split() == text.split()
    make(keys, [], {}, now=now())


def test_two_at_a_time_are_refused(keys: Path) -> None:
    descriptor = os.open(keys, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        with pytest.raises(KeystoreRefused, match="another `warifu dds keystore`"):
            make(keys, [], {}, now=now())
    finally:
        os.close(descriptor)


def test_files_are_their_owners_alone(keys: Path) -> None:
    for path in [keys, *keys.rglob("*")]:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
    # Whoever has opened them to others keeps that, but for keys.
    opened = keys / "enclaves" / "governance.p7s"
    opened.chmod(0o644)
    key = keys / "enclaves" / "talker" / "key.pem"
    key.chmod(0o644)
    make(keys, [], {}, now=now())
    assert opened.stat().st_mode & 0o777 == 0o644
    assert key.stat().st_mode & 0o777 == 0o600


def test_command_says_what_it_kept(warifu: Run, elsewhere: None) -> None:
    assert warifu("dds", "keystore", "keys", "-e", "/a", "--rtps", "none", "--days", "9")[0] == OK
    code, out, err = warifu("dds", "keystore", "keys", "-e", "/a", "-e", "/b", "--data", "sign")
    assert code == OK
    assert "/a: keys/enclaves/a (kept; valid until " in out
    assert "/b: keys/enclaves/b (new; valid until " in out
    assert "so the new enclaves do, after 9 days, not 3650" in err
    said = "data SIGN, metadata ENCRYPT, rtps NONE, discovery ENCRYPT, liveliness ENCRYPT"
    assert f"governance, signed for 2 enclaves: {said}" in err
    _, out, err = warifu("dds", "keystore", "keys", "--days", "5")
    assert out == ""
    assert "--days is for new enclaves" in err


def test_command_without_an_enclave_needs_a_keystore(warifu: Run, elsewhere: None) -> None:
    code, _, err = warifu("dds", "keystore", "keys")
    assert code == USAGE
    assert "keys: is no keystore yet" in one_line(err)
    assert not Path("keys").exists()
