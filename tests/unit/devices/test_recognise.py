# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Outputs of benchmarks: recognised by content, read exactly, whatever a terminal added."""

from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.paths import ROOT
from warifu import _core
from warifu.devices.errors import DeviceError
from warifu.devices.figures import Code, Figure, Output
from warifu.devices.recognise import recognise

OUTPUTS = ROOT / "tests" / "support" / "benchmarks"


def read(name: str, **known: int) -> Output:
    return recognise((OUTPUTS / name).read_bytes(), name, **known)


def figures(output: Output) -> dict[str, Figure]:
    return {one.primitive: one for one in output.figures}


@pytest.mark.parametrize(
    ("name", "source", "library", "count"),
    [
        ("wolfcrypt-esp32.txt", "wolfCrypt benchmark, wolfSSL 5.6.4", "wolfssl-5", 9),
        (
            "wolfcrypt-4.4.txt",
            "wolfCrypt benchmark, wolfSSL 4.4.1, KB of 1024 B by its amounts",
            "wolfssl-5",
            7,
        ),
        (
            "wolfcrypt-5.6.0.txt",
            "wolfCrypt benchmark, wolfSSL 5.6.0, KB of 1000 B by its amounts",
            "wolfssl-5",
            3,
        ),
        ("wolfcrypt-5.5.txt", "wolfCrypt benchmark, wolfSSL 5.5.4", "wolfssl-5", 22),
        ("wolfcrypt-5.5.csv.txt", "wolfCrypt benchmark, wolfSSL 5.5.4", "wolfssl-5", 22),
        ("mbedtls-2.28.txt", "Mbed TLS benchmark", "mbedtls-3.6", 14),
        ("mbedtls-3.6-nxp.txt", "Mbed TLS benchmark, Mbed TLS 3.6.0", "mbedtls-3.6", 9),
        ("openssl-3.0.txt", "openssl speed, OpenSSL 3.0.19", "openssl-3", 11),
        ("openssl-3.0-mr.txt", "openssl speed", "openssl-3", 10),
        ("bearssl-0.6.txt", "BearSSL testspeed", None, 12),
    ],
)
def test_each_output_is_recognised(name: str, source: str, library: str, count: int) -> None:
    output = read(name)
    assert (output.source, output.library) == (source, library)
    assert len(output.figures) == count
    assert all(one.call_ns >= 0 and one.byte_ns >= 0 for one in output.figures)


def test_wolfcrypt_of_an_esp32() -> None:
    output = read("wolfcrypt-esp32.txt")
    assert (output.clock_hz, output.core) == (240_000_000, "xtensa-lx6")
    known = figures(output)
    assert known["sign.ecdsa_secp256r1"].call_ns == pytest.approx(269e6)
    assert known["ecdh.derive.x25519"].call_ns == pytest.approx(1.222e9 / 6)
    assert known["verify.rsa-2048"].call_ns == pytest.approx(1.098e9 / 14)
    # A message of 1 KiB took what its rate says.
    assert known["aead.seal.AES_128_GCM"].at(1024) == pytest.approx(1e9 / 387.973)
    assert known["hash.sha-256"].byte_ns == pytest.approx(1e9 / (24600 * 1024))
    left = {one.what: one.why for one in output.left_out}
    assert left["ML-KEM 512 128 key gen"] == left["AES-128-CBC-enc"] == "no case uses it yet"


def test_kilobytes_of_wolfcrypt() -> None:
    """1024 B until 5.5, 1000 B in 5.6.0, which counts in steps of 25.6 of them."""
    old, new = figures(read("wolfcrypt-4.4.txt")), figures(read("wolfcrypt-5.6.0.txt"))
    assert old["hash.sha-256"].byte_ns == pytest.approx(1e9 / (978.474 * 1024))
    assert new["hash.sha-256"].byte_ns == pytest.approx(1e9 / 476_863)


def wolfcrypt(rows: str, version: str = "5.6.4") -> bytes:
    return f" wolfSSL version {version}\n{rows}\n".encode()


@pytest.mark.parametrize(
    ("version", "row", "size", "said"),
    [
        ("5.6.6", "2 MB took 1.000 seconds, 2.000 MB/s", 1000**2, "MB of 1000000 B by its version"),
        (
            "5.2.0",
            "35 MB took 1.053 seconds, 33.24 MB/s",
            1024**2,
            "MB of 1048576 B by its version",
        ),
        ("5.5.4", "2 MiB took 1.000 seconds, 2.000 MiB/s", 1024**2, ""),
        ("4.4.1", "2 mB took 1.000 seconds, 2.000 mB/s", 1000**2, ""),
        ("5.6.6", "512 KB took 1.000 seconds, 512.000 KB/s", 1000, "KB of 1000 B by its amounts"),
        # A version says less than amounts that are whole steps.
        ("5.6.6", "525 KB took 1.000 seconds, 525.000 KB/s", 1024, "KB of 1024 B by its amounts"),
        # Two units tell: until 3.14 kB of 1024 B beside MB.
        (
            "3.14.0",
            "475 kB took 1.000 seconds, 0.464 MB/s",
            1024**2,
            "MB of 1048576 B by its rows",
        ),
        ("5.7.0", "500 kB took 1.000 seconds, 0.500 MB/s", 1000**2, "MB of 1000000 B by its rows"),
    ],
)
def test_units_of_wolfcrypt(version: str, row: str, size: int, said: str) -> None:
    output = recognise(wolfcrypt(f"SHA-256   {row}", version), "u")
    rate = float(row.split(",")[1].split()[0])
    assert output.figures[0].byte_ns == pytest.approx(1e9 / (rate * size))
    assert output.source == ", ".join(
        filter(None, ("wolfCrypt benchmark", f"wolfSSL {version}", said))
    )


def test_a_step_of_its_own_decides_no_units() -> None:
    """PBKDF2 and GMAC count in other blocks."""
    rows = "".join(
        f"{name} {amount} KB took 1.000 seconds, {amount}.000 KB/s\n"
        for name, amount in (("SHA", 225), ("SHA-256", 350), ("SHA-384", 500))
    )
    output = recognise(
        wolfcrypt(rows + "PBKDF2 33 KB took 1.000 seconds, 33.000 KB/s", "4.4.1"), ""
    )
    assert output.units == "KB of 1024 B by its amounts"


SIGN = "ECDSA [      SECP256R1]   256     sign "
GOOD = "ECDSA [      SECP256R1]   256   verify         4 ops took 1.076 sec, avg 269.000 ms, 3\n"
NO_RATE, NO_TIME = "its figure is no rate above 0", "its figure is no time above 0"
AMOUNT = "its rate is not its amount over its time"
AVERAGE = "its average is not its time over its operations"


@pytest.mark.parametrize(
    ("row", "what", "why"),
    [
        ("SHA-256   25 KiB took 0.000 seconds,      inf KiB/s", "SHA-256", NO_RATE),
        ("SHA-256   25 KiB took 0.000 seconds,     -nan KiB/s", "SHA-256", NO_RATE),
        ("SHA-256   25 KiB took 0.000 seconds, nan(ind) KiB/s", "SHA-256", NO_RATE),
        ("SHA-256   25 KiB took nan seconds,      0.000 KiB/s", "SHA-256", NO_RATE),
        ("RNG       25 KiB took -1.0 seconds,   -25.000 KiB/s", "RNG", NO_RATE),
        ("SHA-256  350 KiB took 1.022 seconds,   33.4 MiB/s", "SHA-256", AMOUNT),
        ("AES-128-GCM-enc 350 KiB took 1.022 seconds, 302.466 KiB/s", "AES-128-GCM-enc", AMOUNT),
        (f"{SIGN} 0 ops took 1.012 sec, avg -25.300 ms", "ECDSA SECP256R1 256 sign", NO_TIME),
        (f"{SIGN} 0 ops took 1.012 sec, avg inf ms", "ECDSA SECP256R1 256 sign", NO_TIME),
        (f"{SIGN} 4 ops took 0.000 sec, avg 0.000 ms", "ECDSA SECP256R1 256 sign", NO_TIME),
        (f"{SIGN} 4 ops took 1.076 sec, avg nan ms", "ECDSA SECP256R1 256 sign", NO_TIME),
        (f"{SIGN} 4 ops took 1.076 sec, avg 26.900 ms", "ECDSA SECP256R1 256 sign", AVERAGE),
        (
            "Algorithm,MB/s,Cycles per byte,\nRNG,inf,0.000000,",
            "RNG",
            NO_RATE,
        ),
        (
            "Algorithm,key size,operation,avg ms,ops/sec\nECDSA [  SECP256R1],256,sign,inf,0.000,",
            "ECDSA SECP256R1 256 sign",
            NO_TIME,
        ),
        (
            "Algorithm,key size,operation,avg ms,ops/sec\nECDSA,256,sign,9.000,20.000,",
            "ECDSA 256 sign",
            AVERAGE,
        ),
    ],
)
def test_rows_of_wolfcrypt_that_are_no_figure_are_told(row: str, what: str, why: str) -> None:
    output = recognise(wolfcrypt(f"{GOOD}{row}"), "f")
    assert set(figures(output)) == {"verify.ecdsa_secp256r1"}
    assert [(one.what, one.why) for one in output.left_out] == [(what, why)]
    # And where there is nothing else.
    with pytest.raises(DeviceError, match=rf"nothing in it is of use to a case \({what}: {why}"):
        recognise(wolfcrypt(row), "f")


@pytest.mark.parametrize(
    "row",
    [
        "SHA-256   2 MiB took 1.249 seconds,   1.990 MiB/s",
        "SHA-256  13 KiB took 1.000 seconds,  13.184 KiB/s",
        f"{SIGN} 2 ops took 0.003 sec, avg 1.300 ms",
        f"{SIGN} 90000 ops took 1.000 sec, avg 0.011 ms",
    ],
)
def test_rounding_is_no_contradiction(row: str) -> None:
    assert len(recognise(wolfcrypt(row), "f").figures) == 1


def test_wolfcrypt_as_text_and_as_csv() -> None:
    text, table = figures(read("wolfcrypt-5.5.txt")), figures(read("wolfcrypt-5.5.csv.txt"))
    assert text.keys() == table.keys()
    # Two runs beside other work: of the same size.
    for primitive, one in text.items():
        assert 0.2 < one.at(1024) / table[primitive].at(1024) < 5, primitive


def test_mbedtls_key_exchange_is_divided() -> None:
    output = read("mbedtls-3.6-nxp.txt")
    assert output.clock_hz == 96_000_000
    known = figures(output)
    # A full handshake is two key pairs and two shared secrets.
    pair, secret = known["ecdh.keygen.secp256r1"], known["ecdh.derive.secp256r1"]
    assert 2 * (pair.call_ns + secret.call_ns) == pytest.approx(1e9 / 1.67)
    assert pair.call_ns == pytest.approx(1e9 / 7.33)
    assert "signature" in pair.derived
    assert known["sign.ecdsa_secp256r1"].code is Code.C
    both = figures(read("mbedtls-2.28.txt"))
    sum_ns = both["ecdh.keygen.x25519"].call_ns + both["ecdh.derive.x25519"].call_ns
    assert sum_ns > both["ecdh.derive.x25519"].call_ns > 0


def test_each_line_of_an_mbedtls_key_exchange_is_used_or_told() -> None:
    left = {one.what: one.why for one in read("mbedtls-2.28.txt").left_out}
    alone = "takes no longer than ECDH-secp256r1 handshake alone"
    assert left["ECDHE-secp256r1 handshake"] == alone
    assert left["ECDHE-secp256r1 full handshake"] == "ECDHE-secp256r1 handshake was given"
    assert left["ECDHE-Curve25519 handshake"] == "ECDHE-x25519 handshake was given before"
    sign = b"  ECDSA-secp256r1  :  7.33 sign/s\n"
    (none,) = recognise(b"  ECDHE-secp256r1  :  0.00 handshake/s\n" + sign, "m").left_out
    assert (none.what, none.why) == ("ECDHE-secp256r1 handshake", NO_TIME)
    cycles = b"  ECDHE-secp256r1  :  9000000 cycles/handshake\n" + sign
    (none,) = recognise(cycles, "m").left_out
    assert "add --clock" in none.why
    assert len(recognise(cycles, "m", clock_hz=64_000_000).figures) == 3


def test_openssl_as_text_and_for_machines() -> None:
    text, machine = figures(read("openssl-3.0.txt")), figures(read("openssl-3.0-mr.txt"))
    assert machine["sign.rsa-2048"].call_ns == pytest.approx(1e9 / 3945)
    assert machine["ecdh.derive.x25519"].call_ns == pytest.approx(1e9 / 29515.789474)
    assert text["verify.ecdsa_secp256r1"].call_ns == pytest.approx(1e9 / 14590.5)
    # 16 B and 16 KiB on one line.
    sha = machine["hash.sha-256"]
    assert sha.at(16) == pytest.approx(16e9 / 128942400)
    assert sha.at(16384) == pytest.approx(16384e9 / 1811974023.53)


def test_openssl_with_encryption_beside_signatures() -> None:
    row = b"            sign    verify    encrypt   decrypt   sign/s verify/s  encr./s  decr./s\n"
    row += b"rsa  2048 bits 0.000526s 0.000023s 0.000025s 0.000533s 1902.3 42704.8 40000.0 1876.2\n"
    known = figures(recognise(row, "o"))
    assert known["sign.rsa-2048"].call_ns == pytest.approx(1e9 / 1902.3)
    assert known["verify.rsa-2048"].call_ns == pytest.approx(1e9 / 42704.8)


def test_bearssl_takes_its_quickest() -> None:
    known = figures(read("bearssl-0.6.txt"))
    assert known["ecdh.derive.secp256r1"].call_ns == pytest.approx(1e9 / 1920.50)
    assert known["ecdh.keygen.secp256r1"].call_ns == pytest.approx(1e9 / 2906.18)
    assert known["aead.seal.AES_128_GCM"].byte_ns == pytest.approx(1000 / 214.41 + 1000 / 226.30)


def test_tables_of_pqm4_hold_nothing_of_use() -> None:
    with pytest.raises(
        DeviceError, match=r"pqm4.md: pqm4 or pqm3 .*ml-kem-512 m4fspeed.*init device"
    ):
        read("pqm4.md", clock_hz=24_000_000)


def test_plain_table() -> None:
    text = (
        "primitive,value,unit\r\nsign.ecdsa_secp256r1,45,ms\r\naead.seal.AES_128_GCM,1.2,MB/s\r\n"
        "hash.sha-256,30.5,cycles/byte\r\nsign.dsa,3,ms\r\nverify.rsa-2048,1,MB/s\r\n"
        "verify.ecdsa_secp256r1,0,ms\r\necdh.derive.secp256r1,3,fortnights\r\n"
    )
    output = recognise(text.encode(), "t.csv", clock_hz=64_000_000)
    known = figures(output)
    assert set(known) == {"sign.ecdsa_secp256r1", "aead.seal.AES_128_GCM", "hash.sha-256"}
    assert known["sign.ecdsa_secp256r1"].call_ns == 45e6
    assert known["hash.sha-256"].byte_ns == pytest.approx(30.5 / 0.064)
    why = {one.what: one.why for one in output.left_out}
    assert "no primitive" in why["sign.dsa"]
    assert "expected a time" in why["verify.rsa-2048"]
    assert "above 0" in why["verify.ecdsa_secp256r1"]
    assert "expected a duration" in why["ecdh.derive.secp256r1"]
    without = recognise(text.encode(), "t.csv")
    assert "--clock" in {one.what: one.why for one in without.left_out}["hash.sha-256"]


@pytest.mark.parametrize(
    "name",
    ["sign.ecdsa_secp256r1", "ecdh.derive.secp256r1", "sign.ed25519", "instruction", "x509.parse"],
)
@pytest.mark.parametrize("unit", ["cycles/byte", "ns/byte", "MB/s"])
def test_what_takes_no_bytes_has_no_figure_by_the_byte(name: str, unit: str) -> None:
    text = f"primitive,value,unit\nhash.sha-256,30,cycles/byte\n{name},5,{unit}\n"
    output = recognise(text.encode(), "t.csv", clock_hz=64_000_000)
    assert [one.primitive for one in output.figures] == ["hash.sha-256"]
    (left,) = output.left_out
    assert (left.what, left.why) == (
        name,
        f"{unit} is for what takes bytes: expected a time such as ms",
    )


@pytest.mark.parametrize("name", _core.primitives())
@pytest.mark.parametrize("unit", ["cycles/byte", "cycles", "ms", "MB/s"])
def test_every_primitive_can_be_in_a_table(name: str, unit: str) -> None:
    text = f"primitive,value,unit\n{name},5,{unit}\n"
    with contextlib.suppress(DeviceError):
        recognise(text.encode(), "t.csv", clock_hz=64_000_000)


def test_a_byte_may_be_finer_than_a_nanosecond() -> None:
    text = "primitive,value,unit\nhash.sha-256,0.8,ns/byte\nhash.sha-384,2,ms/byte\n"
    known = figures(recognise(text.encode(), "t.csv"))
    assert known["hash.sha-256"].byte_ns == pytest.approx(0.8)
    assert known["hash.sha-384"].byte_ns == pytest.approx(2e6)


def test_noise_of_terminals_changes_nothing() -> None:
    plain = (OUTPUTS / "wolfcrypt-4.4.txt").read_text()
    expected = read("wolfcrypt-4.4.txt").figures
    windows = plain.replace("\n", "\r\n")
    noisy = "\x00\x1b[2J\x1b]0;title\x07login: \ufffd\n" + windows + "\x1b[0m\x00$ \n" + "x" * 9000
    for content in (
        windows.encode(),
        noisy.encode(),
        b"\xff\xfe" + windows.encode("utf-16-le"),
        b"\xef\xbb\xbf" + plain.encode(),
        plain.replace("ECC ", "[12:34:56.789] ECC ").encode(),
        b"\xff\xc3\x28 binary\n" + plain.encode(),
    ):
        assert recognise(content, "noise").figures == expected


@pytest.mark.parametrize(
    "figure", ["nan", "inf", "-3.0", "0.000", "1e400", "99999999999999999999999999999"]
)
def test_impossible_figures_are_left_out(figure: str) -> None:
    text = (
        " wolfSSL version 5.6.4\n"
        f"ECDSA [      SECP256R1]   256     sign         4 ops took {figure} sec, avg 1.000 ms, 3\n"
        "ECDSA [      SECP256R1]   256   verify         4 ops took 1.076 sec, avg 269.000 ms, 3\n"
    )
    assert set(figures(recognise(text.encode(), "f"))) == {"verify.ecdsa_secp256r1"}


def test_second_figure_of_a_primitive_is_left_out() -> None:
    row = "ECDSA    256 sign           28 ops took {} sec, avg {} ms, 26.565 ops/sec\n"
    output = recognise((row.format(1, 35.714) + row.format(9, 321.429)).encode(), "twice")
    assert output.figures[0].call_ns == pytest.approx(1e9 / 28)
    assert output.left_out[0].why == "sign.ecdsa_secp256r1 was given before"


def test_file_of_several_runs() -> None:
    one = (OUTPUTS / "wolfcrypt-4.4.txt").read_text()
    two = (OUTPUTS / "wolfcrypt-5.6.0.txt").read_text()
    both = f"### first board\n{one}\n\n\n\n\n\n### second board\n{two}".encode()
    with pytest.raises(DeviceError, match=r"has 2 runs.*--run \(1 first board; 2 second board\)"):
        recognise(both, "b")
    assert len(recognise(both, "b", run=1).figures) == 7
    assert len(recognise(both, "b", run=2).figures) == 3
    with pytest.raises(DeviceError, match="--run"):
        recognise(both, "b", run=3)
    with pytest.raises(DeviceError, match="holds one run: leave out --run 2"):
        recognise(one.encode(), "b", run=2)


@pytest.mark.parametrize("content", [b"", b"\x00" * 1000, b"hello\n" * 1000, b"a,b,c\n1,2,ms\n"])
def test_anything_else_is_refused(content: bytes) -> None:
    with pytest.raises(DeviceError, match="is the output of no benchmark that is known"):
        recognise(content, "x")


@given(st.binary(max_size=2000))
def test_no_bytes_break_it(noise: bytes) -> None:
    try:
        output = recognise(noise + b"\n" + (OUTPUTS / "wolfcrypt-4.4.txt").read_bytes(), "n")
    except (DeviceError, UnicodeError):
        return
    assert all(one.call_ns >= 0 for one in output.figures)


@given(st.text(alphabet="ECDSAHRsignverfyopt0123456789.,:|/[]() +-kMBi\n", max_size=400))
def test_lines_of_their_alphabet_break_nothing(text: str) -> None:
    with contextlib.suppress(DeviceError):
        recognise(text.encode(), "n")


@pytest.mark.parametrize(
    "line",
    [
        "A " * 490,
        "a" + " " * 990,
        "sha256 " + "1" * 900 + "x",
        "sha256 " + "1 " * 450 + "x",
        "AES" + " " * 900 + "1 KB took 1 seconds",
        "RSA" + " " * 990,
        "type " + "1 bytes " * 120 + "x",
        "| " + "a" * 900,
        "AES-128 CTR (" + "big " * 240,
        "ECDSA-" + "x" * 990,
    ],
)
def test_long_lines_are_refused_at_once(line: str) -> None:
    """An expression that tries all ways would take years for one of these, not seconds for all."""
    content = "type 16 bytes\nAlgorithm,MB/s,\n" + f"{line}\n" * 1000
    with pytest.raises(DeviceError):
        recognise(content.encode(), "long")


def test_wolfcrypt_until_3_9() -> None:
    text = (
        "RSA 2048 public          1.250 milliseconds, avg over 100 iterations\n"
        "ECC  256 key generation  9.500 milliseconds, avg over 100 iterations\n"
        "EC-DHE   key agreement   9.250 milliseconds, avg over 100 iterations\n"
        "EC-DSA   sign   time     9.750 milliseconds, avg over 100 iterations\n"
        "EC-DSA   verify time    12.125 milliseconds, avg over 100 iterations\n"
        "SHA-256                 25 megs took 1.047 seconds,   23.886 MB/s\n"
    )
    known = figures(recognise(text.encode(), "old"))
    assert len(known) == 6
    assert known["verify.ecdsa_secp256r1"].call_ns == pytest.approx(12.125e6)
    assert known["hash.sha-256"].byte_ns == pytest.approx(1e9 / (23.886 * 1024**2))


LONG = "9" * 30
HEAD = "primitive,value,unit\n"


@pytest.mark.parametrize(
    "content",
    [
        f"{HEAD}hash.sha-256,{LONG},cycles/byte\n",
        f"AES-128 CTR       0.{'0' * 310}1 MB/s\nGHASH (ctmul)     0.{'0' * 310}1 MB/s\n",
        f"{HEAD}hash.sha-256,0.0000000001,MB/s\n",
        f"{HEAD}sign.ecdsa_secp256r1,1001,s\n",
    ],
)
def test_figures_that_no_board_has_are_left_out(content: str) -> None:
    with pytest.raises(DeviceError, match="nothing in it is of use"):
        recognise(content.encode(), "x.txt", clock_hz=64_000_000)


def test_a_clock_that_no_profile_can_have_is_not_taken() -> None:
    line = "SHA-256   1 MiB took 1.0 seconds,   1.0 MiB/s Cycles per byte = "
    for cycles, expected in (("61.04", 64_000_000), (LONG[:20], None)):
        output = recognise(f"wolfSSL version 5.6.4\n{line} {cycles}\n".encode(), "x.txt")
        assert output.clock_hz == expected


@pytest.mark.parametrize("line", ["primitive" + "\t" * 990, "a" + "\t" * 990, "," * 999])
def test_no_line_takes_long_to_be_refused(line: str) -> None:
    content = (HEAD + (line + "\n") * 400).encode()
    begun = time.process_time()
    with pytest.raises(DeviceError):
        recognise(content, "x.txt")
    # Where a separator may be blanks as well, it was more than 20 s.
    assert time.process_time() - begun < 5


def filled(begin: str, filler: str, end: str = "x") -> str:
    """A line of the most characters that are read."""
    return (begin + filler * 1000)[: 1000 - len(end)] + end


CSV_CALLS = "Algorithm,key size,operation,avg ms,ops/sec\n"


@pytest.mark.parametrize(
    ("head", "line"),
    [
        ("", filled("", "LMS")),
        ("", filled("", "LMS-")),
        ("", filled("", "XMSS ")),
        ("", filled("", "KYBER ")),
        ("", filled("KYBER", "1", " sign 1 ops took 1 sec, avg 1 ms")),
        ("", filled("", "ECDSA [ A ] 256 sign ", "1 ops took 1 sec, avg 1 ms")),
        ("", filled("ECDSA ", " ", "sign 1 ops took 1 sec, avg 1 ms")),
        ("", filled("ECDSA [", " ", "1 ops took 1 sec, avg 1 ms")),
        ("", filled("", "A/", " 1 KiB took 1 seconds, 1 KiB/s")),
        ("", filled("", "1 KiB took 1 seconds, ")),
        (CSV_CALLS, filled("", "A-")),
        (CSV_CALLS, filled("A [", " ")),
        (CSV_CALLS, filled("A,1,", "a ")),
        ("Algorithm,MB/s,\n", filled("", "A/A ")),
        ("", filled("rsa 1 bits 1s 1s 1s 1s", " ")),
        ("", filled("rsa 1 bits ", "1s ")),
        ("", filled("rsa 1 bits ", "1")),
        ("", filled("1 bits ecdsa (a) ", " ")),
        ("", filled("1 bits ecdsa (a) 1s 1s ", "1")),
        ("type 16 bytes\n", filled("sha256 ", "1 ")),
        ("", filled("RSA-", "1 ")),
        ("", filled("AES ", ".")),
        ("scheme,implementation,\n", filled("a", " ")),
        ("scheme,implementation,\n", filled("a,", "a")),
        ("scheme,implementation,\n", filled("a (", "1")),
        (HEAD, filled("a", ".a")),
        (HEAD, filled("a.a", "\t")),
    ],
)
def test_time_grows_with_the_length_of_a_line(head: str, line: str) -> None:
    """A tenth of the longest file, each line of which is behind the head that it needs."""
    begun = time.process_time()
    with contextlib.suppress(DeviceError):
        recognise(f"{head}{line}\n".encode() * 400, "x.txt")
    # Each takes less than 0.5 s; expressions that try all ways took 4 to 48.
    assert time.process_time() - begun < 3
