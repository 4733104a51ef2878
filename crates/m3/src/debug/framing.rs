// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets of gdb's remote protocol, looked at before the library gets them: it trusts the lengths
//! of packets and of memory reads, and a client may be anyone on this machine.

use super::PACKET_BYTES;

/// Bytes that one packet may read: two hexadecimal digits each make a packet.
const MAX_READ: u64 = PACKET_BYTES as u64 / 2 - 8;

/// A packet that does not end where the longest one would.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// Collects packets; what is not within one (acknowledgements, Ctrl-C) passes through.
#[derive(Debug, Default)]
pub(super) struct Framing {
    packet: Vec<u8>,
}

impl Framing {
    /// Takes a byte; returns those that are ready for the library.
    pub(super) fn take(&mut self, byte: u8) -> Result<Vec<u8>, TooLong> {
        if self.packet.is_empty() && byte != b'$' {
            return Ok(vec![byte]);
        }
        self.packet.push(byte);
        let length = self.packet.len();
        if length <= 3 || self.packet[length - 3] != b'#' {
            return if length < PACKET_BYTES { Ok(Vec::new()) } else { Err(TooLong) };
        }
        let packet = std::mem::take(&mut self.packet);
        Ok(match body(&packet).and_then(bounded_read) {
            Some(read) => packet_of(read.as_bytes()),
            None => packet,
        })
    }
}

/// A line for gdb's console.
pub(super) fn console(line: &str) -> Vec<u8> {
    let digits: String = line.bytes().map(|byte| format!("{byte:02x}")).collect();
    packet_of(format!("O{digits}").as_bytes())
}

/// What is between `$` and `#`, if the checksum holds.
fn body(packet: &[u8]) -> Option<&[u8]> {
    let (body, sum) = packet.strip_prefix(b"$")?.split_at_checked(packet.len().checked_sub(4)?)?;
    let sum = std::str::from_utf8(sum.strip_prefix(b"#")?).ok()?;
    (u8::from_str_radix(sum, 16).ok()? == checksum(body)).then_some(body)
}

/// A read of memory in the shortest form, within the address space, and of no more than an answer
/// holds: it may be shorter than was asked for. One that is malformed becomes shorter than any that
/// is not; `None` for other packets.
fn bounded_read(body: &[u8]) -> Option<String> {
    let read = body.strip_prefix(b"m")?;
    let numbers = || {
        let (address, length) = std::str::from_utf8(read).ok()?.split_once(',')?;
        let number = |text: &str| match text.starts_with('+') {
            true => None,
            false => u64::from_str_radix(text, 16).ok(),
        };
        Some((number(address)?, number(length)?))
    };
    let Some((address, length)) = numbers() else { return Some("m".to_owned()) };
    let room = (1u64 << 32).saturating_sub(address);
    Some(format!("m{address:x},{:x}", length.min(MAX_READ).min(room)))
}

/// A body in its frame.
pub(super) fn packet_of(body: &[u8]) -> Vec<u8> {
    let sum = format!("#{:02x}", checksum(body));
    [b"$", body, sum.as_bytes()].concat()
}

fn checksum(body: &[u8]) -> u8 {
    body.iter().fold(0, |sum, byte| sum.wrapping_add(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(bytes: &[u8]) -> Vec<u8> {
        let mut framing = Framing::default();
        bytes.iter().flat_map(|byte| framing.take(*byte).expect("short")).collect()
    }

    #[test]
    fn packets_and_what_is_between_them_pass_unchanged() {
        let stream = [b"+\x03".as_slice(), &packet_of(b"qSupported"), b"-", &packet_of(b"g")];
        let stream = stream.concat();
        assert_eq!(through(&stream), stream);
    }

    #[test]
    fn read_is_bounded_by_address_space_and_packet() {
        let read = |text: &str| through(&packet_of(text.as_bytes()));
        assert_eq!(read("m0,4"), packet_of(b"m0,4"));
        assert_eq!(read("mfffffff0,40"), packet_of(b"mfffffff0,10"));
        assert_eq!(read("m0,ffffffffffff"), packet_of(b"m0,1ff8"));
        assert_eq!(read(&format!("m{}10,4", "0".repeat(5000))), packet_of(b"m10,4"));
        assert_eq!(read("m1ffffffff,4"), packet_of(b"m1ffffffff,0"));
        assert_eq!(read("m0,+4"), packet_of(b"m"));
    }

    #[test]
    fn packet_with_wrong_checksum_passes_unchanged() {
        assert_eq!(through(b"$m0,ffffffff#00"), b"$m0,ffffffff#00");
    }

    #[test]
    fn packet_without_end_is_refused_at_its_limit() {
        let mut framing = Framing::default();
        for byte in [b"$".as_slice(), &[b'a'; PACKET_BYTES - 2]].concat() {
            assert_eq!(framing.take(byte), Ok(Vec::new()));
        }
        assert_eq!(framing.take(b'a'), Err(TooLong));
    }
}
