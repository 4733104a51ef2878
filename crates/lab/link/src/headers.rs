// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the packet log keeps of a packet's headers.

/// How much of a UDP payload tells it from others.
const ID_BYTES: usize = 64;

/// What a log keeps of the headers within an IP packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Transport {
    pub(crate) protocol: u8,
    pub(crate) ports: [u16; 2],
    pub(crate) payload: u16,
    pub(crate) sequence: u32,
    pub(crate) acknowledgement: u32,
    pub(crate) flags: u8,
    pub(crate) sack_blocks: u8,
    pub(crate) sack_left: u32,
    pub(crate) id: u32,
}

impl Transport {
    /// Of an IPv4 packet, or as much as was read of it; nothing of any other.
    pub(crate) fn of(packet: &[u8]) -> Transport {
        const TCP: u8 = 6;
        const UDP: u8 = 17;
        // RFC 791 section 3.1: version and header length, fragment's offset, protocol.
        let version = packet.first().map(|first| first >> 4);
        let Some(protocol) = packet.get(9).copied().filter(|_| version == Some(4)) else {
            return Transport::default();
        };
        let bare = Transport { protocol, ..Transport::default() };
        let header = usize::from(packet[0] & 0xF) * 4;
        let later_fragment = packet[6] & 0x1F != 0 || packet[7] != 0;
        let segment = match packet.get(header..) {
            Some(segment) if header >= 20 && !later_fragment => segment,
            _ => return bare,
        };
        let found = match protocol {
            TCP => Transport::of_tcp(segment),
            UDP => Transport::of_udp(segment),
            _ => None,
        };
        found.map_or(bare, |found| Transport { protocol, ..found })
    }

    /// RFC 9293 section 3.1.
    fn of_tcp(segment: &[u8]) -> Option<Transport> {
        let header = usize::from(segment.get(12)? >> 4) * 4;
        let options = segment.get(20..header)?;
        let (sack_blocks, sack_left) = sack(options).unwrap_or_default();
        Some(Transport {
            ports: ports(segment)?,
            payload: u16::try_from(segment.len() - header).ok()?,
            sequence: big_u32(segment, 4)?,
            acknowledgement: big_u32(segment, 8)?,
            flags: *segment.get(13)?,
            sack_blocks,
            sack_left,
            ..Transport::default()
        })
    }

    /// RFC 768.
    fn of_udp(segment: &[u8]) -> Option<Transport> {
        let payload = segment.get(8..)?;
        Some(Transport {
            ports: ports(segment)?,
            payload: u16::try_from(payload.len()).ok()?,
            id: fnv_1a(&payload[..payload.len().min(ID_BYTES)]),
            ..Transport::default()
        })
    }
}

/// How many blocks a SACK option has, and the first one's left edge (RFC 2018 section 3).
fn sack(mut options: &[u8]) -> Option<(u8, u32)> {
    const END: u8 = 0;
    const NO_OPERATION: u8 = 1;
    const SACK: u8 = 5;
    loop {
        match *options.first()? {
            END => return None,
            NO_OPERATION => options = &options[1..],
            kind => {
                let length = usize::from(*options.get(1)?);
                let option = options.get(..length).filter(|option| option.len() >= 2)?;
                if kind == SACK {
                    let blocks = u8::try_from((length - 2) / 8).ok()?;
                    return Some((blocks, big_u32(option, 2)?));
                }
                options = &options[length..];
            }
        }
    }
}

fn ports(segment: &[u8]) -> Option<[u16; 2]> {
    let ports = segment.get(..4)?;
    Some([0, 2].map(|at| u16::from_be_bytes([ports[at], ports[at + 1]])))
}

fn big_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// FNV-1a of 32 bits (<http://www.isthe.com/chongo/tech/comp/fnv/>).
fn fnv_1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811C_9DC5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_options_end(options: Vec<u8>) {
            let _ = sack(&options);
        }

        #[test]
        fn sack_is_found_behind_any_other_options(
            before in prop::collection::vec((2..5_u8, 0..6_usize), 0..4),
            left: u32,
            blocks in 1..5_u8,
        ) {
            // Kinds 2 to 4, each with its length and some bytes (RFC 9293 section 3.1).
            let mut options: Vec<u8> = before
                .iter()
                .flat_map(|&(kind, bytes)| {
                    let mut option = vec![kind, bytes as u8 + 2];
                    option.resize(bytes + 2, 0xEE);
                    option.push(1);
                    option
                })
                .collect();
            options.extend([5, 2 + 8 * blocks]);
            options.extend(left.to_be_bytes());
            options.resize(options.len() + 8 * usize::from(blocks) - 4, 0xEE);
            prop_assert_eq!(sack(&options), Some((blocks, left)));
            options.pop();
            prop_assert_eq!(sack(&options), None, "an option that was cut");
        }
    }
}
