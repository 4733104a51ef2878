// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The log of what became of each packet, so that a simulator can meet a connection's packets with
//! the same fates.
//!
//! The file is a header of 16 bytes (magic `WRFLINK1`, u32 version 1, u32 bytes of a record) and
//! records of 48 bytes in the order in which the packets were read, all little-endian:
//!
//! | at | type | what |
//! |---|---|---|
//! | 0 | u64 | when it came, ns of CLOCK_MONOTONIC: from this instant its delay counts |
//! | 8 | u64 | when it was due at the other end, ns; 0 if it was dropped |
//! | 16 | u32 | TCP: sequence number, as it is in the header |
//! | 20 | u32 | TCP: acknowledgement number, as it is in the header |
//! | 24 | u32 | UDP: FNV-1a of the first 64 B of its payload |
//! | 28 | u16 | the port at end A, the client's |
//! | 30 | u16 | the port at end B, the server's |
//! | 32 | u16 | bytes of TCP's or UDP's payload |
//! | 34 | u16 | bytes of the IP packet |
//! | 36 | u8 | TCP: flags, FIN = 1 to CWR = 128 (RFC 9293 section 3.1) |
//! | 37 | u8 | protocol: 6 TCP, 17 UDP (IANA) |
//! | 38 | u8 | 0 from A to B, 1 from B to A |
//! | 39 | u8 | its [`LoggedFate`] |
//! | 40 | u8 | TCP: how many blocks its SACK option has (RFC 2018 section 3) |
//! | 41 | 3 bytes | 0 |
//! | 44 | u32 | TCP: left edge of the first of these blocks |
//!
//! What a packet does not have is 0. A record is made when its packet is read, when its fate is
//! known: one that was put on its way may still be refused by the receiving device, which the
//! report counts and rejects the window for, or be flushed by a `set` command.
//!
//! The forwarding thread fills buffers; another thread, without its priority, writes them. At each
//! report all is in the file before the report is given. Buffers are made and touched at the start,
//! and a disk that falls behind by [`BUFFERS_MAX`] of them makes the next report an error. What it
//! costs: the P99 of lateness was 31 us with a log and 39 us without (medians of 20 windows each,
//! by turns, 1,000 round trips of 60 or 150 ms each, on two busy virtual processors).

use crate::error::LinkError;
use crate::headers::Transport;
use crate::random::Direction;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread::JoinHandle;
use warifu_model::Nanos;

/// The first bytes of a log.
pub const MAGIC: [u8; 8] = *b"WRFLINK1";
/// The version of its format.
pub const VERSION: u32 = 1;
/// Bytes of a record.
pub const RECORD_BYTES: usize = 48;

/// Records of a buffer: those of some 20 ms at 200,000 packets a second.
const BUFFER_RECORDS: usize = 4_096;
/// Buffers made at the start, and at most, with 12 MB; a report may add one.
const BUFFERS: usize = 4;
const BUFFERS_MAX: usize = 64;
/// What became of a packet, by its number in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LoggedFate {
    /// Put on its way to the other end.
    Delivered = 0,
    /// Lost by the loss model.
    Loss = 1,
    /// Dropped by the drop script.
    Script = 2,
    /// The queue was full.
    Queue = 3,
    /// The pool had no room.
    Overload = 4,
    /// Longer than the MTU.
    Oversize = 5,
}

/// A packet with its fate.
#[derive(Clone, Copy, Debug)]
pub struct Logged<'a> {
    /// The IP packet, or as much as was read of it.
    pub packet: &'a [u8],
    /// Where it goes.
    pub direction: Direction,
    /// From when on its delay counts.
    pub arrival: Nanos,
    /// When it is to be handed over, 0 if it is not.
    pub due: Nanos,
    /// What became of it.
    pub fate: LoggedFate,
}

/// The forwarding thread's end of a log.
#[derive(Debug)]
pub(crate) struct PacketLog {
    buffer: Vec<u8>,
    full: Sender<Job>,
    empty: Receiver<Vec<u8>>,
    made: usize,
    lost: u64,
}

/// The end that sees that what was logged is in the file. The thread that writes it ends when both
/// ends are gone.
#[derive(Clone, Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    jobs: Sender<Job>,
}

enum Job {
    Write(Vec<u8>),
    /// Records for which there was no buffer.
    Lost(u64),
    /// Answered with the first mistake that was made.
    Flush(SyncSender<Result<(), std::io::Error>>),
}

/// Makes the file, which must not exist, and starts the thread that writes it.
///
/// # Errors
/// A file that exists or cannot be made, or no thread.
pub(crate) fn create(path: &Path) -> Result<(PacketLog, LogFile), LinkError> {
    let doing = |what: &str| format!("{what} packet_log {}", path.display());
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)
        .map_err(|error| LinkError::Os { doing: doing("creating"), source: explained(error) })?;
    let (full, jobs) = mpsc::channel();
    let (give_back, empty) = mpsc::channel();
    for _ in 1..BUFFERS {
        let _ = give_back.send(touched_buffer());
    }
    let mut buffer = touched_buffer();
    buffer.extend_from_slice(&MAGIC);
    buffer.extend_from_slice(&VERSION.to_le_bytes());
    buffer.extend_from_slice(&(RECORD_BYTES as u32).to_le_bytes());
    // Detached: it ends by itself, and what has been flushed is in the file.
    let _: JoinHandle<()> = std::thread::Builder::new()
        .name("warifu-link-log".to_owned())
        .spawn(move || write_all(file, &jobs, &give_back))
        .map_err(|source| LinkError::Os { doing: doing("starting the thread of"), source })?;
    let log = PacketLog { buffer, full: full.clone(), empty, made: BUFFERS, lost: 0 };
    Ok((log, LogFile { path: path.to_owned(), jobs: full }))
}

impl PacketLog {
    /// Notes a packet.
    pub(crate) fn note(&mut self, logged: &Logged<'_>) {
        if self.buffer.len() + RECORD_BYTES > self.buffer.capacity() && !self.hand_over() {
            self.lost += 1;
            return;
        }
        self.buffer.extend_from_slice(&record(logged));
    }

    /// Has what was noted so far written.
    pub(crate) fn flush(&mut self) {
        if self.lost > 0 {
            let _ = self.full.send(Job::Lost(self.lost));
        }
        if !self.buffer.is_empty() && !self.hand_over() {
            // Whoever asked waits until the writer has given the others back, so one beyond the
            // most is enough.
            self.replace_buffer(touched_buffer());
        }
    }

    /// Changes the buffer for an empty one; whether there was one.
    fn hand_over(&mut self) -> bool {
        let empty = match self.empty.try_recv() {
            Ok(buffer) => buffer,
            Err(_) if self.made < BUFFERS_MAX => {
                self.made += 1;
                touched_buffer()
            }
            Err(_) => return false,
        };
        self.replace_buffer(empty);
        true
    }

    fn replace_buffer(&mut self, empty: Vec<u8>) {
        // A writer that is gone has panicked, which the next report says.
        let _ = self.full.send(Job::Write(std::mem::replace(&mut self.buffer, empty)));
    }
}

impl LogFile {
    /// Waits until all that was handed over is in the file.
    ///
    /// # Errors
    /// It could not be written, or not quickly enough.
    pub(crate) fn wait(&self) -> Result<(), LinkError> {
        let (reply, answer) = mpsc::sync_channel(1);
        let _ = self.jobs.send(Job::Flush(reply));
        let result =
            answer.recv().unwrap_or_else(|_| Err(std::io::Error::other("its thread died")));
        result.map_err(|source| LinkError::Os {
            doing: format!("writing packet_log {}", self.path.display()),
            source,
        })
    }
}

/// What to do about a file that exists, which may be the log of what was measured earlier.
fn explained(error: std::io::Error) -> std::io::Error {
    match error.kind() {
        ErrorKind::AlreadyExists => {
            std::io::Error::new(error.kind(), "the file exists already: name a new one")
        }
        _ => error,
    }
}

/// The thread that writes: after a mistake it only hands buffers back.
fn write_all(mut file: File, jobs: &Receiver<Job>, give_back: &Sender<Vec<u8>>) {
    let mut failed: Option<std::io::Error> = None;
    for job in jobs {
        match job {
            Job::Write(mut buffer) => {
                if failed.is_none() {
                    failed = file.write_all(&buffer).err();
                }
                buffer.clear();
                // The forwarding thread may have ended.
                let _ = give_back.send(buffer);
            }
            Job::Lost(records) => {
                failed.get_or_insert_with(|| {
                    std::io::Error::other(format!(
                        "{records} packets came faster than their records were written: name a \
                         file on a faster disk"
                    ))
                });
            }
            Job::Flush(reply) => {
                let again = |error: &std::io::Error| match error.raw_os_error() {
                    Some(code) => std::io::Error::from_raw_os_error(code),
                    None => std::io::Error::other(error.to_string()),
                };
                let _ = reply.send(failed.as_ref().map_or(Ok(()), |error| Err(again(error))));
            }
        }
    }
}

/// An empty buffer whose pages are there.
fn touched_buffer() -> Vec<u8> {
    // Not zeroes, which the allocator may leave for the first write to fault in.
    let mut buffer = vec![0xA5; BUFFER_RECORDS * RECORD_BYTES];
    buffer.clear();
    buffer
}

/// A packet's record. What is no whole IPv4 packet has its length and fate alone.
#[must_use]
pub fn record(logged: &Logged<'_>) -> [u8; RECORD_BYTES] {
    let Logged { packet, direction, arrival, due, fate } = *logged;
    let parsed = Transport::of(packet);
    let [source, destination] = parsed.ports;
    let [client, server] = match direction {
        Direction::AToB => [source, destination],
        Direction::BToA => [destination, source],
    };
    let mut record = [0_u8; RECORD_BYTES];
    let mut put = |at: usize, bytes: &[u8]| record[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &arrival.0.to_le_bytes());
    put(8, &due.0.to_le_bytes());
    for (at, number) in [
        (16, parsed.sequence),
        (20, parsed.acknowledgement),
        (24, parsed.id),
        (44, parsed.sack_left),
    ] {
        put(at, &number.to_le_bytes());
    }
    let length = u16::try_from(packet.len()).unwrap_or(u16::MAX);
    for (at, number) in [(28, client), (30, server), (32, parsed.payload), (34, length)] {
        put(at, &number.to_le_bytes());
    }
    let direction = u8::from(direction == Direction::BToA);
    put(36, &[parsed.flags, parsed.protocol, direction, fate as u8, parsed.sack_blocks]);
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A TCP segment over IPv4 with a SACK option of two blocks, and 3 bytes.
    fn segment() -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 67, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2];
        packet
            .extend([0x9C, 0x40, 0x20, 0xFB, 1, 2, 3, 4, 5, 6, 7, 8, 0xB0, 0x18, 0, 9, 0, 0, 0, 0]);
        packet.extend([1, 1, 5, 18, 9, 9, 9, 9, 9, 9, 9, 10, 8, 8, 8, 8, 8, 8, 8, 9, 0, 0, 0, 0]);
        packet.extend(b"abc");
        packet
    }

    fn logged(packet: &[u8], direction: Direction) -> Logged<'_> {
        let (arrival, due) = (Nanos(0x0102), Nanos(0x0304));
        Logged { packet, direction, arrival, due, fate: LoggedFate::Delivered }
    }

    #[test]
    fn record_of_a_segment_is_as_documented() {
        let mut expected = vec![2, 1, 0, 0, 0, 0, 0, 0, 4, 3, 0, 0, 0, 0, 0, 0];
        expected.extend([4, 3, 2, 1, 8, 7, 6, 5, 0, 0, 0, 0, 0x40, 0x9C, 0xFB, 0x20, 3, 0, 67, 0]);
        expected.extend([0x18, 6, 0, 0, 2, 0, 0, 0, 9, 9, 9, 9]);
        assert_eq!(record(&logged(&segment(), Direction::AToB)).to_vec(), expected);
        let back = record(&logged(&segment(), Direction::BToA));
        assert_eq!(back[28..32], [0xFB, 0x20, 0x40, 0x9C], "the server's port is the first");
        assert_eq!(back[38], 1);
    }

    #[test]
    fn record_of_a_datagram_has_its_hash() {
        let mut packet = vec![0x45, 0, 0, 29, 0, 0, 0, 0, 64, 17, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2];
        packet.extend([0, 7, 0, 9, 0, 9, 0, 0, b'a']);
        let record = record(&logged(&packet, Direction::AToB));
        // FNV-1a of "a" (draft-eastlake-fnv-21 appendix C).
        assert_eq!(record[24..28], 0xE40C_292C_u32.to_le_bytes());
        assert_eq!((record[32], record[37]), (1, 17));
    }

    #[test]
    fn later_fragment_has_no_ports() {
        let mut packet = segment();
        packet[7] = 1;
        let record = record(&logged(&packet, Direction::AToB));
        assert_eq!((&record[16..34], record[37]), (&[0_u8; 18][..], 6));
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_record(mut packet: Vec<u8>, first in 0x40..0x50_u8, tcp: bool) {
            for forced in [false, true] {
                if forced && packet.len() > 9 {
                    (packet[0], packet[9]) = (first, if tcp { 6 } else { 17 });
                }
                let found = record(&logged(&packet, Direction::AToB));
                prop_assert_eq!(&found[41..44], &[0; 3]);
                prop_assert_eq!(usize::from(found[34]) | usize::from(found[35]) << 8, packet.len());
            }
        }
    }

    #[test]
    fn all_records_are_in_the_file_when_it_was_waited_for() {
        let folder = std::env::temp_dir().join(format!("warifu-log-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("packets");
        let (mut log, file) = create(&path).unwrap();
        let count = 3 * BUFFER_RECORDS + 5;
        for number in 0..count {
            let arrival = Nanos(number as u64);
            log.note(&Logged { arrival, ..logged(&segment(), Direction::AToB) });
        }
        log.flush();
        file.wait().unwrap();
        let content = std::fs::read(&path).unwrap();
        assert_eq!(content.len(), 16 + count * RECORD_BYTES);
        assert_eq!(&content[..8], &MAGIC);
        for (number, record) in content[16..].chunks(RECORD_BYTES).enumerate() {
            assert_eq!(record[..8], (number as u64).to_le_bytes());
        }
        let again = create(&path).unwrap_err().to_string();
        assert!(again.ends_with("packets: the file exists already: name a new one"), "{again}");
        let link = folder.join("link");
        std::os::unix::fs::symlink(folder.join("nowhere"), &link).unwrap();
        assert!(create(&link).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn full_disk_is_an_error_of_the_next_wait() {
        // What is written to it finds no room (full(4)).
        let file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let (full, jobs) = mpsc::channel();
        let (give_back, _empty) = mpsc::channel();
        std::thread::spawn(move || write_all(file, &jobs, &give_back));
        full.send(Job::Write(vec![0; 9])).unwrap();
        let log = LogFile { path: "log".into(), jobs: full };
        for _ in 0..2 {
            let message = log.wait().unwrap_err().to_string();
            assert!(message.starts_with("writing packet_log log: No space"), "{message}");
        }
    }

    #[test]
    fn records_that_found_no_buffer_are_an_error() {
        let (full, jobs) = mpsc::channel();
        let (_give_back, empty) = mpsc::channel();
        let buffer = Vec::with_capacity(RECORD_BYTES);
        let mut log = PacketLog { buffer, full, empty, made: BUFFERS_MAX, lost: 0 };
        for _ in 0..3 {
            log.note(&logged(&segment(), Direction::AToB));
        }
        assert_eq!(log.lost, 2);
        log.flush();
        assert!(matches!(jobs.try_recv(), Ok(Job::Lost(2))));
    }

    #[test]
    fn flush_hands_over_a_part_of_a_buffer_when_all_others_are_with_the_writer() {
        let (full, jobs) = mpsc::channel();
        let (_give_back, empty) = mpsc::channel();
        let mut log =
            PacketLog { buffer: touched_buffer(), full, empty, made: BUFFERS_MAX, lost: 0 };
        for _ in 0..BUFFER_RECORDS / 2 {
            log.note(&logged(&segment(), Direction::AToB));
        }
        log.flush();
        let Ok(Job::Write(written)) = jobs.try_recv() else { panic!("nothing to write") };
        assert_eq!(written.len(), BUFFER_RECORDS / 2 * RECORD_BYTES);
        log.note(&logged(&segment(), Direction::AToB));
        assert_eq!((log.lost, log.buffer.len()), (0, RECORD_BYTES));
    }
}
