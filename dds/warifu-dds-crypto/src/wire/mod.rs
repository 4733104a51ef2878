// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Protected payloads, submessages and RTPS messages as octets (DDS Security 1.1, sections 7.3.6
//! and 9.5.3.3.4). Nothing here trusts a length that it reads.

mod form;

pub use form::{Form, HeaderOctets, Sink, info_source, put_receiver_tag};

use crate::algorithm::{Kind, Mode, TAG_BYTES};
use crate::cipher::Tag;
use crate::error::{Error, Result};
use crate::keys::KeyId;

/// Octets that begin an RTPS message: protocol, version, vendor, GUID prefix (RTPS 2.2, section
/// 9.4.4).
pub const RTPS_HEADER_BYTES: usize = 20;

/// A receiver-specific tag with its key's id.
pub const RECEIVER_TAG_BYTES: usize = 4 + TAG_BYTES;

/// Submessage ids (RTPS 2.2, section 9.4.5.1.1, and DDS Security 1.1, section 7.3.6).
pub mod id {
    /// Fills up.
    pub const PAD: u8 = 0x01;
    /// Of a reader: what it has, and what it lacks.
    pub const ACKNACK: u8 = 0x06;
    /// When what follows was sent.
    pub const INFO_TS: u8 = 0x09;
    /// Who sent what follows.
    pub const INFO_SRC: u8 = 0x0c;
    /// Of a reader: which fragments it lacks.
    pub const NACK_FRAG: u8 = 0x12;
    /// Encrypted content.
    pub const SEC_BODY: u8 = 0x30;
    /// Begins a protected submessage.
    pub const SEC_PREFIX: u8 = 0x31;
    /// Ends it.
    pub const SEC_POSTFIX: u8 = 0x32;
    /// Begins a protected RTPS message.
    pub const SRTPS_PREFIX: u8 = 0x33;
    /// Ends it.
    pub const SRTPS_POSTFIX: u8 = 0x34;
}

const SUBMESSAGE_HEADER_BYTES: usize = 4;
const INFO_SRC_BYTES: usize = 24;
/// Where the GUID prefix begins, in an RTPS header and behind an INFO_SRC's.
const PREFIX_OFFSET: usize = 8;
/// Of a secured participant's GUID prefix, what its certificate's subject decides (DDS Security
/// 1.1, section 9.3.3): one bit that is set, and 47 of a hash.
const IDENTITY_BYTES: usize = 6;
/// Transformation kind and key id.
const IDENTIFIER_BYTES: usize = 8;
/// A tag and the number of receiver-specific ones.
const FOOTER_BYTES: usize = TAG_BYTES + 4;
/// Of a submessage's flags: little-endian.
const ENDIANNESS_FLAG: u8 = 1;

/// What begins whatever is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'a> {
    /// The cipher, and what it did.
    pub kind: Kind,
    /// Which of the sender's keys.
    pub key_id: KeyId,
    /// The session's id and a count, of the length that the cipher takes.
    pub nonce: &'a [u8],
}

impl Header<'_> {
    /// The first part of the nonce.
    pub fn session_id(&self) -> u32 {
        self.nonce.first_chunk().map_or(0, |id| u32::from_be_bytes(*id))
    }

    /// Octets of one with this cipher: a multiple of 4, as all of a submessage.
    pub const fn bytes(kind: Kind) -> usize {
        IDENTIFIER_BYTES + kind.aead.nonce_bytes().next_multiple_of(4)
    }
}

/// Something protected, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Protected<'a> {
    /// What begins it.
    pub header: Header<'a>,
    /// Encrypted, or plain where it is only signed.
    pub body: &'a [u8],
    /// Over the body.
    pub tag: &'a Tag,
    /// Over the tag, one for each receiver.
    pub receivers: ReceiverTags<'a>,
}

/// Receiver-specific tags as they are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiverTags<'a>(&'a [u8]);

impl<'a> ReceiverTags<'a> {
    /// Each key's id and tag.
    pub fn iter(&self) -> impl Iterator<Item = (KeyId, &'a Tag)> + use<'a> {
        let (tags, _) = self.0.as_chunks::<RECEIVER_TAG_BYTES>();
        tags.iter().filter_map(|entry| {
            let (id, tag) = entry.split_first_chunk()?;
            Some((KeyId::from_be_bytes(*id), tag.first_chunk()?))
        })
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Octets read one after the other.
struct Octets<'a>(&'a [u8]);

impl<'a> Octets<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (head, tail) =
            self.0.split_at_checked(count).ok_or(Error::Malformed("it ends too early"))?;
        self.0 = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<&'a [u8; N]> {
        let (head, tail) =
            self.0.split_first_chunk().ok_or(Error::Malformed("it ends too early"))?;
        self.0 = tail;
        Ok(head)
    }

    fn length(&mut self) -> Result<usize> {
        usize::try_from(u32::from_be_bytes(*self.array()?))
            .map_err(|_| Error::Malformed("a length is beyond this machine's"))
    }

    fn header(&mut self) -> Result<Header<'a>> {
        let kind = Kind::from_wire(*self.array()?)
            .ok_or(Error::Protection("its transformation kind is unknown"))?;
        let key_id = KeyId::from_be_bytes(*self.array()?);
        let padded = self.take(Header::bytes(kind) - IDENTIFIER_BYTES)?;
        let (nonce, padding) = padded.split_at(kind.aead.nonce_bytes());
        if padding.iter().any(|octet| *octet != 0) {
            return Err(Error::Malformed("the padding behind its nonce is not zero"));
        }
        Ok(Header { kind, key_id, nonce })
    }

    fn footer(&mut self) -> Result<(&'a Tag, ReceiverTags<'a>)> {
        let tag = self.array()?;
        let count = self.length()?;
        let bytes = count
            .checked_mul(RECEIVER_TAG_BYTES)
            .ok_or(Error::Malformed("it says to have more receivers than there can be"))?;
        Ok((tag, ReceiverTags(self.take(bytes)?)))
    }

    /// The next of plain submessages, with which the core will deal; nothing at their end. Read as
    /// the core does: a length of 0 is that of all that follows, but for PAD and INFO_TS (RTPS
    /// 2.2, section 9.4.5.1.3), and less than a header is nothing.
    fn next_submessage(&mut self) -> Result<Option<(u8, &'a [u8])>> {
        if self.0.len() < SUBMESSAGE_HEADER_BYTES {
            return Ok(None);
        }
        let (id, content) = self.submessage()?;
        if content.0.is_empty() && !matches!(id, id::PAD | id::INFO_TS) {
            return Ok(Some((id, std::mem::take(&mut self.0))));
        }
        Ok(Some((id, content.0)))
    }

    /// A submessage's id and what is in it.
    fn submessage(&mut self) -> Result<(u8, Octets<'a>)> {
        let [id, flags, low, high] = *self.array()?;
        let octets = if flags & ENDIANNESS_FLAG == 0 {
            u16::from_be_bytes([low, high])
        } else {
            u16::from_le_bytes([low, high])
        };
        Ok((id, Octets(self.take(octets.into())?)))
    }

    fn submessage_of(&mut self, id: u8, missing: &'static str) -> Result<Octets<'a>> {
        match self.submessage()? {
            (found, octets) if found == id => Ok(octets),
            _ => Err(Error::Malformed(missing)),
        }
    }
}

/// An encoded payload: header, content, footer. Of a signed one only the length says where the
/// content ends, so that it has no receiver-specific tags (section 9.5.3.3.4.4).
pub fn payload(encoded: &[u8]) -> Result<Protected<'_>> {
    let mut octets = Octets(encoded);
    let header = octets.header()?;
    let body = match header.kind.mode {
        Mode::Encrypt => {
            let length = octets.length()?;
            octets.take(length)?
        }
        Mode::Sign => {
            let length = octets.0.len().checked_sub(FOOTER_BYTES);
            octets.take(length.ok_or(Error::Malformed("it ends too early"))?)?
        }
    };
    let (tag, receivers) = octets.footer()?;
    if !octets.0.is_empty() {
        return Err(Error::Malformed("more follows its end"));
    }
    if !receivers.is_empty() {
        return Err(Error::Malformed("a payload has no receiver-specific tags"));
    }
    Ok(Protected { header, body, tag, receivers })
}

/// The header of a protected submessage alone.
pub fn submessage_header(encoded: &[u8]) -> Result<Header<'_>> {
    Octets(encoded).submessage_of(id::SEC_PREFIX, "it does not begin with SEC_PREFIX")?.header()
}

/// SEC_PREFIX, SEC_BODY or the signed submessage itself, SEC_POSTFIX.
pub fn submessage(encoded: &[u8]) -> Result<Protected<'_>> {
    let mut octets = Octets(encoded);
    let mut prefix = octets.submessage_of(id::SEC_PREFIX, "it does not begin with SEC_PREFIX")?;
    let header = prefix.header()?;
    let body = match header.kind.mode {
        Mode::Encrypt => sec_body(&mut octets)?,
        Mode::Sign => {
            let all = octets.0;
            octets.submessage()?;
            &all[..all.len() - octets.0.len()]
        }
    };
    let mut postfix = octets.submessage_of(id::SEC_POSTFIX, "its end is no SEC_POSTFIX")?;
    let (tag, receivers) = postfix.footer()?;
    Ok(Protected { header, body, tag, receivers })
}

/// An RTPS header, SRTPS_PREFIX, SEC_BODY or the signed submessages themselves, SRTPS_POSTFIX.
pub fn message(encoded: &[u8]) -> Result<(&[u8; RTPS_HEADER_BYTES], Protected<'_>)> {
    let mut octets = Octets(encoded);
    let rtps = octets.array()?;
    let mut prefix =
        octets.submessage_of(id::SRTPS_PREFIX, "it does not begin with SRTPS_PREFIX")?;
    let header = prefix.header()?;
    let (body, mut postfix) = match header.kind.mode {
        Mode::Encrypt => {
            let body = sec_body(&mut octets)?;
            let end = octets.submessage_of(id::SRTPS_POSTFIX, "its end is no SRTPS_POSTFIX")?;
            (body, end)
        }
        Mode::Sign => signed_submessages(&mut octets)?,
    };
    let (tag, receivers) = postfix.footer()?;
    Ok((rtps, Protected { header, body, tag, receivers }))
}

/// All up to SRTPS_POSTFIX, and that.
fn signed_submessages<'a>(octets: &mut Octets<'a>) -> Result<(&'a [u8], Octets<'a>)> {
    let all = octets.0;
    loop {
        let before = octets.0.len();
        match octets.submessage()? {
            (id::SRTPS_POSTFIX, end) => return Ok((&all[..all.len() - before], end)),
            _ if octets.0.is_empty() => {
                return Err(Error::Malformed("its end is no SRTPS_POSTFIX"));
            }
            _ => {}
        }
    }
}

fn sec_body<'a>(octets: &mut Octets<'a>) -> Result<&'a [u8]> {
    let mut body = octets.submessage_of(id::SEC_BODY, "its content is no SEC_BODY")?;
    let length = body.length()?;
    // Padding to a multiple of 4 may follow.
    body.take(length)
}

/// Whether the decrypted submessages of an RTPS message begin with the INFO_SRC of who sent it, and
/// have no INFO_SRC of anyone else: another would let one participant speak for another (section
/// 9.5.3.3.4.3). Participants of one process that are of one identity may be in one message.
pub fn check_sources(submessages: &[u8], rtps: &[u8; RTPS_HEADER_BYTES]) -> Result<()> {
    const WRONG: Error =
        Error::Malformed("it has an INFO_SRC of another identity than its sender's");
    let mut rest = Octets(submessages);
    let first = match rest.next_submessage()? {
        Some((id::INFO_SRC, source)) => source.get(PREFIX_OFFSET..),
        _ => None,
    };
    let first = first.ok_or(Error::Malformed("it begins with no INFO_SRC"))?;
    let outer = &rtps[PREFIX_OFFSET..];
    // Cyclone has brought the header's GUID prefix into its own order, word by word, before it
    // decodes the message (q_receive.c, handle_rtps_message).
    let (words, _) = outer.as_chunks::<4>();
    let swapped = words.iter().flat_map(|word| word.iter().rev());
    if first != outer && !first.iter().eq(swapped) {
        return Err(WRONG);
    }
    let identity = &first[..IDENTITY_BYTES];
    while let Some((id, content)) = rest.next_submessage()? {
        let of = content.get(PREFIX_OFFSET..PREFIX_OFFSET + IDENTITY_BYTES);
        if id == id::INFO_SRC && of != Some(identity) {
            return Err(WRONG);
        }
    }
    Ok(())
}

/// Whether a decrypted submessage is from a reader. It has to be a submessage, which a sample is
/// not, and none that changes the source of what follows it.
pub fn check_content(submessages: &[u8]) -> Result<bool> {
    let mut rest = Octets(submessages);
    let mut is_from_reader = None;
    while let Some((id, _)) = rest.next_submessage()? {
        match id {
            // The first octet of a sample's representation (RTPS 2.2, section 10.2.1).
            0 => return Err(Error::Malformed("its content is no submessage")),
            id::INFO_SRC => return Err(Error::Malformed("it has an INFO_SRC inside")),
            _ => {}
        }
        is_from_reader.get_or_insert(matches!(id, id::ACKNACK | id::NACK_FRAG));
    }
    is_from_reader.ok_or(Error::Malformed("its content is no submessage"))
}
