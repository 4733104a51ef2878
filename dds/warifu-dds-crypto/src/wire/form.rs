// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How protected payloads, submessages and RTPS messages are written.

use super::{
    ENDIANNESS_FLAG, FOOTER_BYTES, Header, IDENTIFIER_BYTES, INFO_SRC_BYTES, RECEIVER_TAG_BYTES,
    RTPS_HEADER_BYTES, SUBMESSAGE_HEADER_BYTES, id,
};
use crate::algorithm::{Kind, MAX_NONCE_BYTES, Mode};
use crate::cipher::Tag;
use crate::error::{Error, Result};
use crate::keys::KeyId;

/// The longest header, AEGIS-256's.
const MAX_HEADER_BYTES: usize = IDENTIFIER_BYTES + MAX_NONCE_BYTES;

/// A header as it is written. A sender keeps one, in which it changes the nonce alone.
#[derive(Debug, Clone, Copy)]
pub struct HeaderOctets {
    octets: [u8; MAX_HEADER_BYTES],
    /// With padding.
    bytes: usize,
    nonce_end: usize,
}

impl HeaderOctets {
    /// With a nonce of the cipher's length.
    pub fn new(kind: Kind, key_id: KeyId, nonce: &[u8]) -> Self {
        let nonce_end = IDENTIFIER_BYTES + nonce.len();
        let mut octets = [0; MAX_HEADER_BYTES];
        octets[..4].copy_from_slice(&kind.to_wire());
        octets[4..IDENTIFIER_BYTES].copy_from_slice(&key_id.to_be_bytes());
        octets[IDENTIFIER_BYTES..nonce_end].copy_from_slice(nonce);
        Self { octets, bytes: Header::bytes(kind), nonce_end }
    }

    /// The nonce's beginning.
    pub fn set_session_id(&mut self, id: u32) {
        self.octets[IDENTIFIER_BYTES..IDENTIFIER_BYTES + 4].copy_from_slice(&id.to_be_bytes());
    }

    /// The nonce's end.
    #[inline]
    pub fn set_count(&mut self, count: u64) {
        self.octets[self.nonce_end - 8..self.nonce_end].copy_from_slice(&count.to_be_bytes());
    }

    /// Session id and count.
    #[inline]
    pub fn nonce(&self) -> &[u8] {
        &self.octets[IDENTIFIER_BYTES..self.nonce_end]
    }
}

/// Octets that are put together before they are written, at once.
struct Short {
    octets: [u8; Self::ROOM],
    length: usize,
}

impl Short {
    /// For SEC_PREFIX or its like, a header, SEC_BODY and a length.
    const ROOM: usize = MAX_HEADER_BYTES + 2 * SUBMESSAGE_HEADER_BYTES + 4;

    const fn new() -> Self {
        Self { octets: [0; Self::ROOM], length: 0 }
    }

    #[inline]
    fn put<const N: usize>(&mut self, octets: &[u8; N]) {
        self.octets[self.length..self.length + N].copy_from_slice(octets);
        self.length += N;
    }

    /// A submessage's header.
    #[inline]
    fn submessage(&mut self, id: u8, bytes: usize) -> Result<()> {
        let [low, high] = u16::try_from(bytes).map_err(|_| Error::TooLong(bytes))?.to_le_bytes();
        self.put(&[id, ENDIANNESS_FLAG, low, high]);
        Ok(())
    }

    #[inline]
    fn octets(&self) -> &[u8] {
        &self.octets[..self.length]
    }
}

/// Where something protected is written: a buffer that grows at its end.
pub trait Sink {
    /// Appends.
    fn put(&mut self, octets: &[u8]);
    /// All so far.
    fn octets(&mut self) -> &mut [u8];
}

impl Sink for Vec<u8> {
    fn put(&mut self, octets: &[u8]) {
        self.extend_from_slice(octets);
    }

    fn octets(&mut self) -> &mut [u8] {
        self
    }
}

/// What surrounds a body: how much there is of it, and how it is written.
#[derive(Debug, Clone, Copy)]
pub enum Form {
    /// A sample's data.
    Payload,
    /// One submessage.
    Submessage,
    /// All that follows an RTPS header.
    Message,
}

impl Form {
    /// Octets of `body` octets protected for that many receivers.
    #[inline]
    pub fn encoded_bytes(self, kind: Kind, body: usize, receivers: usize) -> usize {
        let header = Header::bytes(kind);
        let footer = FOOTER_BYTES + receivers * RECEIVER_TAG_BYTES;
        let length = if kind.mode == Mode::Encrypt { 4 } else { 0 };
        match self {
            Self::Payload => header + length + body + footer,
            Self::Submessage | Self::Message => {
                let rtps = if matches!(self, Self::Message) { RTPS_HEADER_BYTES } else { 0 };
                let content = if kind.mode == Mode::Encrypt {
                    SUBMESSAGE_HEADER_BYTES + length + body.next_multiple_of(4)
                } else {
                    body
                };
                rtps + 2 * SUBMESSAGE_HEADER_BYTES + header + content + footer
            }
        }
    }

    /// Writes what stands before the body.
    #[inline(always)]
    pub fn begin(
        self,
        out: &mut impl Sink,
        kind: Kind,
        header: &HeaderOctets,
        body: usize,
    ) -> Result<()> {
        let mut short = Short::new();
        match self {
            Self::Payload => {}
            Self::Submessage => short.submessage(id::SEC_PREFIX, header.bytes)?,
            Self::Message => short.submessage(id::SRTPS_PREFIX, header.bytes)?,
        }
        // All of it at once, whose end is overwritten or left out.
        let end = short.length + header.bytes;
        short.put(&header.octets);
        short.length = end;
        if kind.mode == Mode::Encrypt {
            if !matches!(self, Self::Payload) {
                short.submessage(id::SEC_BODY, 4 + body.next_multiple_of(4))?;
            }
            let length = u32::try_from(body).map_err(|_| Error::TooLong(body))?;
            short.put(&length.to_be_bytes());
        }
        out.put(short.octets());
        Ok(())
    }

    /// Writes what stands behind it, up to the receiver-specific tags, of which so many follow.
    #[inline(always)]
    pub fn end(
        self,
        out: &mut impl Sink,
        kind: Kind,
        body: usize,
        tag: &Tag,
        receivers: usize,
    ) -> Result<()> {
        let footer = FOOTER_BYTES + receivers * RECEIVER_TAG_BYTES;
        let mut short = Short::new();
        if !matches!(self, Self::Payload) && kind.mode == Mode::Encrypt {
            short.length = body.next_multiple_of(4) - body;
        }
        match self {
            Self::Payload => {}
            Self::Submessage => short.submessage(id::SEC_POSTFIX, footer)?,
            Self::Message => short.submessage(id::SRTPS_POSTFIX, footer)?,
        }
        short.put(tag);
        let count = u32::try_from(receivers).map_err(|_| Error::TooLong(receivers))?;
        short.put(&count.to_be_bytes());
        out.put(short.octets());
        Ok(())
    }
}

/// Writes one receiver-specific tag behind [`Form::end`].
pub fn put_receiver_tag(out: &mut impl Sink, id: KeyId, tag: &Tag) {
    out.put(&id.to_be_bytes());
    out.put(tag);
}

/// The INFO_SRC that says what an RTPS header says (RTPS 2.2, section 9.4.5.9).
pub fn info_source(rtps: &[u8; RTPS_HEADER_BYTES]) -> [u8; INFO_SRC_BYTES] {
    let mut out = [0; INFO_SRC_BYTES];
    out[..4].copy_from_slice(&[id::INFO_SRC, ENDIANNESS_FLAG, 20, 0]);
    // Four octets are unused; then version, vendor and GUID prefix, of which none has an order.
    out[8..].copy_from_slice(&rtps[4..]);
    out
}
