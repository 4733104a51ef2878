// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How APDUs go over the card's Unix socket. This is the one place that says it.
//!
//! A frame is a length of 4 bytes, the most significant first, and as many bytes of content.
//! Client and server take turns: each frame of the client gets exactly one from the server.
//!
//! | the client sends | the server answers |
//! |---|---|
//! | a command APDU, at least 1 byte | the response APDU: data, then the status word |
//! | an empty frame | the answer to reset (ATR), after the client's session was reset |
//!
//! Where there is no answer: an empty frame says that the card was reset before it could give one
//! and that no channel is open any more; the end of the connection, that the card was removed or
//! the server ended; silence, that the answer was lost. The last is never the server's own doing,
//! only a fault that was asked for. A client that gives up on an answer closes the connection: an
//! answer that is late then reaches nobody.
//!
//! A client that connects begins with no logical channel but its basic one. What it opens is closed
//! when it resets or disconnects; other clients' channels stay as they are.

use std::io::{self, Read, Write};

/// The longest content, in bytes: an extended command APDU (ISO 7816-4 section 5.2) is 65,544.
pub const CONTENT_MAX_BYTES: usize = 4 + 3 + 65_535 + 2;

/// The length before each content, in bytes.
pub const LENGTH_BYTES: usize = 4;

/// The frame that holds `content`.
///
/// # Errors
/// `InvalidInput` for more than [`CONTENT_MAX_BYTES`].
///
/// ```
/// use warifu_card_server::frame::encode;
/// assert_eq!(encode(&[0x90, 0x00]).unwrap(), [0, 0, 0, 2, 0x90, 0x00]);
/// ```
pub fn encode(content: &[u8]) -> io::Result<Vec<u8>> {
    let length = checked(content.len())?;
    let mut frame = Vec::with_capacity(LENGTH_BYTES + content.len());
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(content);
    Ok(frame)
}

/// Sends `content` as one frame, in one write.
///
/// # Errors
/// As [`encode`]; else the writer's.
pub fn write(to: &mut impl Write, content: &[u8]) -> io::Result<()> {
    to.write_all(&encode(content)?)?;
    to.flush()
}

/// The content of the next frame; `None` where the other side ended between two frames.
///
/// # Errors
/// `InvalidData` for a length beyond [`CONTENT_MAX_BYTES`], after which the stream is of no more
/// use; `UnexpectedEof` for an end within a frame; else the reader's.
pub fn read(from: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; LENGTH_BYTES];
    let mut filled = 0;
    while filled < LENGTH_BYTES {
        match from.read(&mut length[filled..]) {
            Ok(0) if filled == 0 => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let length = u32::from_be_bytes(length) as usize;
    checked(length).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    let mut content = vec![0; length];
    from.read_exact(&mut content)?;
    Ok(Some(content))
}

fn checked(length: usize) -> io::Result<u32> {
    u32::try_from(length).ok().filter(|_| length <= CONTENT_MAX_BYTES).ok_or_else(|| {
        let text = format!("frame of {length} B: expected at most {CONTENT_MAX_BYTES} B");
        io::Error::new(io::ErrorKind::InvalidInput, text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Gives one byte at a time, as a slow peer does.
    struct Trickle<'a>(&'a [u8]);

    impl Read for Trickle<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let room = buffer.len().min(1);
            self.0.read(&mut buffer[..room])
        }
    }

    #[test]
    fn end_of_stream_between_and_within_frames() {
        assert_eq!(read(&mut &[][..]).unwrap(), None);
        assert_eq!(read(&mut &[0, 0, 0, 0][..]).unwrap(), Some(vec![]));
        for cut in [&[0][..], &[0, 0, 0], &[0, 0, 0, 2], &[0, 0, 0, 2, 0x90]] {
            assert_eq!(read(&mut &cut[..]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        }
    }

    #[test]
    fn impossible_length_allocates_nothing() {
        let error = read(&mut &[0xff; 8][..]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(encode(&vec![0; CONTENT_MAX_BYTES + 1]).is_err());
        assert!(encode(&vec![0; CONTENT_MAX_BYTES]).is_ok());
    }

    proptest! {
        #[test]
        fn frame_round_trip(contents in prop::collection::vec(
            prop::collection::vec(any::<u8>(), 0..300), 0..5,
        )) {
            let mut stream = Vec::new();
            for content in &contents {
                write(&mut stream, content).unwrap();
            }
            let mut reader = Trickle(&stream);
            for content in contents {
                prop_assert_eq!(read(&mut reader).unwrap(), Some(content));
            }
            prop_assert_eq!(read(&mut reader).unwrap(), None);
        }
    }
}
