// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A file of the card, read in as many turns as it takes: how long it is, no caller decides, but a
//! card may have one that one attempt cannot read, and any caller may ask for it.

use std::time::Instant;

use warifu_iotsafe_client::{File, TokenError};

use super::turn::{CardTurn, READINGS_MAX, reads_differ};

/// What has been read so far. The content is only believed when two readings agree, so that a bit
/// error on the line is not kept.
pub(super) struct FileReading<'a> {
    file: &'a File,
    content: Vec<u8>,
    before: Option<Vec<u8>>,
    readings: usize,
}

impl<'a> FileReading<'a> {
    pub(super) fn new(file: &'a File) -> FileReading<'a> {
        FileReading { file, content: Vec::new(), before: None, readings: 0 }
    }

    /// Reads on until `pause`, at least one part; returns the content when all is read.
    pub(super) fn go_on(
        &mut self,
        turn: &mut CardTurn<'_>,
        pause: Instant,
        deadline: Instant,
    ) -> Result<Option<Vec<u8>>, TokenError> {
        loop {
            let content = &mut self.content;
            let file = self.file;
            let ends =
                turn.work(None, deadline, |token, end| token.read_file_part(file, content, end))?;
            if ends {
                let content = std::mem::take(&mut self.content);
                if self.before.as_ref() == Some(&content) {
                    return Ok(Some(content));
                }
                self.before = Some(content);
                self.readings += 1;
                if self.readings == READINGS_MAX {
                    return Err(reads_differ());
                }
            }
            if turn.holder.clock.now() >= pause {
                return Ok(None);
            }
        }
    }
}
