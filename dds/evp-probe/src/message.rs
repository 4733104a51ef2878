// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The middleware's writes: what a program publishes, and what is encrypted on the way.
//!
//! A message is one call of these functions from outside the middleware. What its thread asks of
//! OpenSSL before the call returns belongs to the message; what other threads do (discovery,
//! heartbeats, asynchronous sending) belongs to no one message.
//!
//! A program that batches has its messages sent later, by a flush: one that follows a write goes on
//! with the message that its thread wrote last. Others, such as a loop makes while it waits, have
//! nothing to send.

use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::mem;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::libraries;
use crate::operation::Class;
use crate::real;
use crate::record::{self, File, Number, OfMessage, Stand, now};

use Kind::{Flush, Write};
use Success::{NotNegative, True, Zero};

type Function = unsafe extern "C-unwind" fn(usize, usize, usize, usize, usize, usize) -> usize;

/// What a function is.
#[derive(Clone, Copy)]
enum Kind {
    /// Writes a message.
    Write(Success),
    /// Sends what was written before.
    Flush,
}

/// How a write says that it succeeded.
#[derive(Clone, Copy)]
enum Success {
    /// `bool`, of which the ABI defines the lowest byte.
    True,
    /// `dds_return_t`, not negative.
    NotNegative,
    /// `ReturnCode_t`, RETCODE_OK.
    Zero,
}

macro_rules! writes {
    ($($name:ident = $symbol:literal, $kind:expr, $what:literal;)*) => {
        $(
            #[doc = concat!("In the place of ", $what, ".")]
            ///
            /// # Safety
            /// As the function in whose place it is.
            #[unsafe(export_name = $symbol)]
            pub unsafe extern "C-unwind" fn $name(
                a: usize, b: usize, c: usize, d: usize, e: usize, f: usize,
            ) -> usize {
                static REAL: AtomicUsize = AtomicUsize::new(0);
                const NAME: &CStr = match CStr::from_bytes_with_nul(
                    concat!($symbol, "\0").as_bytes(),
                ) {
                    Ok(name) => name,
                    Err(_) => panic!(),
                };
                let Some(real) = find(&REAL, NAME) else { return 0 };
                // SAFETY: the middleware's own, with the arguments that its caller passed.
                observed($kind, a, || unsafe { real(a, b, c, d, e, f) })
            }
        )*
    };
}

// Symbols as `nm -D` shows them of libfastrtps 2.9 and libfastdds 3.2, and of dds/dds.h.
writes! {
    write_2 = "_ZN8eprosima7fastdds3dds10DataWriter5writeEPv", Write(True),
        "Fast DDS 2's DataWriter::write(void*)";
    write_with_parameters_2 = "_ZN8eprosima7fastdds3dds10DataWriter5writeEPv\
        RNS_8fastrtps4rtps11WriteParamsE", Write(True),
        "Fast DDS 2's DataWriter::write(void*, WriteParams&), which rmw_fastrtps 6 calls";
    write_instance_2 = "_ZN8eprosima7fastdds3dds10DataWriter5writeEPv\
        RKNS_8fastrtps4rtps16InstanceHandle_tE", Write(Zero),
        "Fast DDS 2's DataWriter::write(void*, const InstanceHandle_t&)";
    write_at_2 = "_ZN8eprosima7fastdds3dds10DataWriter17write_w_timestampEPv\
        RKNS_8fastrtps4rtps16InstanceHandle_tERKNS4_6Time_tE", Write(Zero),
        "Fast DDS 2's DataWriter::write_w_timestamp with a time of rtps";
    write_at_instant_2 = "_ZN8eprosima7fastdds3dds10DataWriter17write_w_timestampEPv\
        RKNS_8fastrtps4rtps16InstanceHandle_tERKNS5_6Time_tE", Write(Zero),
        "Fast DDS 2's DataWriter::write_w_timestamp with a time of fastrtps";
    write_3 = "_ZN8eprosima7fastdds3dds10DataWriter5writeEPKv", Write(Zero),
        "Fast DDS 3's DataWriter::write(const void*)";
    write_with_parameters_3 = "_ZN8eprosima7fastdds3dds10DataWriter5writeEPKv\
        RNS0_4rtps11WriteParamsE", Write(Zero),
        "Fast DDS 3's DataWriter::write(const void*, WriteParams&)";
    write_instance_3 = "_ZN8eprosima7fastdds3dds10DataWriter5writeEPKv\
        RKNS0_4rtps16InstanceHandle_tE", Write(Zero),
        "Fast DDS 3's DataWriter::write(const void*, const InstanceHandle_t&)";
    write_at_3 = "_ZN8eprosima7fastdds3dds10DataWriter17write_w_timestampEPKv\
        RKNS0_4rtps16InstanceHandle_tERKNS1_6Time_tE", Write(Zero),
        "Fast DDS 3's DataWriter::write_w_timestamp, which rmw_fastrtps 9 calls";
    dds_write = "dds_write", Write(NotNegative), "Cyclone DDS's dds_write";
    dds_write_ts = "dds_write_ts", Write(NotNegative), "Cyclone DDS's dds_write_ts";
    dds_writecdr = "dds_writecdr", Write(NotNegative),
        "Cyclone DDS's dds_writecdr, which rmw_cyclonedds calls";
    dds_forwardcdr = "dds_forwardcdr", Write(NotNegative), "Cyclone DDS's dds_forwardcdr";
    dds_write_flush = "dds_write_flush", Flush,
        "Cyclone DDS's dds_write_flush, which returns nothing";
}

fn find(cache: &AtomicUsize, name: &CStr) -> Option<Function> {
    let mut address = cache.load(Ordering::Acquire);
    if address == 0 {
        address = real::anywhere(name) as usize;
        cache.store(address, Ordering::Release);
    }
    // SAFETY: a symbol of this name is such a function, and null is None.
    unsafe { mem::transmute::<*mut c_void, Option<Function>>(address as *mut c_void) }
}

/// What a message's thread has done since the message began.
#[derive(Clone, Copy)]
struct Tally {
    encryptions: u64,
    decryptions: u64,
    macs: u64,
    randoms: u64,
    /// Updates that OpenSSL's random generator makes for itself.
    inner_updates: u64,
    bytes: u64,
    largest: u64,
    crypto_ns: u64,
}

const NONE: Tally = Tally {
    encryptions: 0,
    decryptions: 0,
    macs: 0,
    randoms: 0,
    inner_updates: 0,
    bytes: 0,
    largest: 0,
    crypto_ns: 0,
};

/// A message whose write is over.
#[derive(Clone, Copy)]
struct Written {
    index: u64,
    begun: u64,
    /// Its write's, and that of flushes since.
    ns: u64,
    tally: Tally,
}

thread_local! {
    static CURRENT: Cell<Option<Tally>> = const { Cell::new(None) };
    /// The message that this thread wrote last.
    static LAST: Cell<Option<Written>> = const { Cell::new(None) };
    /// Writers that this thread wrote with and has not flushed since; zeroes where there is room.
    static UNFLUSHED: Cell<[usize; WRITERS]> = const { Cell::new([0; WRITERS]) };
}

/// As many of a thread's are told apart, which may write with all of them before it flushes.
const WRITERS: usize = 8;
/// Of a function's first argument, what a `dds_entity_t` has.
const ENTITY: usize = u32::MAX as usize;

fn note_writer(writer: usize) {
    let mut writers = UNFLUSHED.get();
    if !writers.contains(&writer) {
        writers[writers.iter().position(|it| *it == 0).unwrap_or(0)] = writer;
        UNFLUSHED.set(writers);
    }
}

/// Whether this thread has written with it since it flushed it.
fn forget_writer(writer: usize) -> bool {
    let mut writers = UNFLUSHED.get();
    let Some(place) = writers.iter().position(|it| *it == writer && writer != 0) else {
        return false;
    };
    writers[place] = 0;
    UNFLUSHED.set(writers);
    true
}

/// An operation is over; returns whether it belongs to a message.
pub fn note(class: Class, bytes: u64, ns: u64) -> bool {
    CURRENT.with(|current| {
        let Some(mut tally) = current.get() else { return false };
        match class {
            Class::Encrypt => tally.encryptions += 1,
            Class::Decrypt => tally.decryptions += 1,
            Class::Mac => tally.macs += 1,
            Class::Random => tally.randoms += 1,
            Class::Sign | Class::Verify => {}
        }
        if class == Class::Encrypt {
            tally.bytes = tally.bytes.saturating_add(bytes);
            tally.largest = tally.largest.max(bytes);
        }
        tally.crypto_ns = tally.crypto_ns.saturating_add(ns);
        current.set(Some(tally));
        true
    })
}

/// Time that came after the end of an operation; returns whether it belongs to a message.
pub fn note_time(ns: u64) -> bool {
    CURRENT.with(|current| {
        let Some(tally) = current.get() else { return false };
        current.set(Some(Tally { crypto_ns: tally.crypto_ns.saturating_add(ns), ..tally }));
        true
    })
}

/// OpenSSL has called itself.
pub fn note_inner() {
    CURRENT.with(|current| {
        if let Some(tally) = current.get() {
            current.set(Some(Tally { inner_updates: tally.inner_updates + 1, ..tally }));
        }
    });
}

fn observed(kind: Kind, writer: usize, call: impl FnOnce() -> usize) -> usize {
    // One write calls another, or nothing is recorded.
    let Some(file) = record::file().filter(|_| CURRENT.get().is_none()) else { return call() };
    match kind {
        Write(success) => {
            note_writer(writer & ENTITY);
            written(file, success, call)
        }
        Flush => flushed(file, writer & ENTITY, call),
    }
}

fn written(file: &'static File, success: Success, write: impl FnOnce() -> usize) -> usize {
    static FIRST: Once = Once::new();
    if file.get(Number::begun_ns) != 0 {
        FIRST.call_once(libraries::note);
    }
    let mut message = Message::begin(file);
    let result = write();
    message.succeeded = match success {
        True => result & 0xff != 0,
        #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
        NotNegative => result as i32 >= 0,
        #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
        Zero => result as i32 == 0,
    };
    result
}

fn flushed(file: &'static File, writer: usize, flush: impl FnOnce() -> usize) -> usize {
    // Where this thread has written nothing, it sends nothing, or messages of others.
    let last = LAST.get().filter(|_| forget_writer(writer));
    let Some(last) = last else { return flush() };
    let _flush = Message::go_on(file, last);
    flush()
}

/// A write, or a flush; ends when it is dropped, and so also when the write throws.
struct Message {
    file: &'static File,
    begun: u64,
    succeeded: bool,
    /// Of a flush, the message that it goes on with.
    before: Option<Written>,
}

impl Message {
    fn begin(file: &'static File) -> Message {
        let begun = now();
        if file.get(Number::messages) == 0 && file.get(Number::first_message_ns) == 0 {
            file.set(Number::first_message_ns, begun);
            file.keep_totals(Stand::first_message);
        }
        CURRENT.set(Some(NONE));
        Message { file, begun, succeeded: false, before: None }
    }

    fn go_on(file: &'static File, last: Written) -> Message {
        CURRENT.set(Some(last.tally));
        Message { file, begun: now(), succeeded: true, before: Some(last) }
    }

    /// A new message's place.
    fn count(&self) -> u64 {
        if !self.succeeded {
            self.file.add(Number::messages_failed, 1);
        }
        self.file.add(Number::messages, 1)
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        let ended = now();
        let ns = ended.saturating_sub(self.begun);
        let tally = CURRENT.take().unwrap_or(NONE);
        let written = match self.before {
            None => Written { index: self.count(), begun: self.begun, ns, tally },
            Some(before) => {
                self.file.add(Number::flushes, 1);
                Written { ns: before.ns.saturating_add(ns), tally, ..before }
            }
        };
        LAST.set(Some(written));
        self.file.add(Number::messages_ns, ns);
        self.file.set(Number::last_message_ns, ended);
        self.file.keep_totals(Stand::last_message);
        self.file.message(
            written.index,
            &[
                (OfMessage::begun_ns, written.begun),
                (OfMessage::ns, written.ns),
                (OfMessage::encryptions, tally.encryptions),
                (OfMessage::macs, tally.macs),
                (OfMessage::decryptions, tally.decryptions),
                (OfMessage::randoms, tally.randoms),
                (OfMessage::inner_updates, tally.inner_updates),
                (OfMessage::bytes, tally.bytes),
                (OfMessage::largest, tally.largest),
                (OfMessage::crypto_ns, tally.crypto_ns),
            ],
        );
    }
}

/// A message of nothing, for calibration; no flush is to go on with it.
pub fn nothing() {
    observed(Write(True), 0, || 1);
    LAST.set(None);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flush_has_something_to_send_once_after_a_write_with_its_writer() {
        assert!(!forget_writer(5));
        note_writer(5);
        note_writer(5);
        note_writer(6);
        assert!(forget_writer(5), "in any order");
        assert!(!forget_writer(5));
        assert!(forget_writer(6));
        assert!(!forget_writer(0), "room is no writer");
    }

    #[test]
    fn writers_that_are_never_flushed_keep_no_other_out() {
        (1..100).for_each(note_writer);
        for writer in 100..110 {
            note_writer(writer);
            assert!(forget_writer(writer));
        }
    }
}
