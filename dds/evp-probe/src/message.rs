// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The middleware's writes: what a program publishes, and what is encrypted on the way.
//!
//! A message is one call of these functions from outside the middleware. What its thread asks of
//! OpenSSL before the call returns belongs to the message; what other threads do (discovery,
//! heartbeats, asynchronous sending) belongs to no one message.

use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::mem;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::libraries;
use crate::operation::Class;
use crate::real;
use crate::record::{self, File, Number, OfMessage, Stand, now};

type Write = unsafe extern "C-unwind" fn(usize, usize, usize, usize, usize, usize) -> usize;

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
    ($($name:ident = $symbol:literal, $success:ident: $what:literal;)*) => {
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
                let Some(real) = real_write(&REAL, NAME) else { return 0 };
                // SAFETY: the middleware's own, with the arguments that its caller passed.
                written(Success::$success, || unsafe { real(a, b, c, d, e, f) })
            }
        )*
    };
}

// Symbols as `nm -D` shows them of libfastrtps 2.9 and libfastdds 3.2, and of dds/dds.h.
writes! {
    write_2 = "_ZN8eprosima7fastdds3dds10DataWriter5writeEPv", True:
        "Fast DDS 2's DataWriter::write(void*)";
    write_with_parameters_2 = "_ZN8eprosima7fastdds3dds10DataWriter5writeEPv\
        RNS_8fastrtps4rtps11WriteParamsE", True:
        "Fast DDS 2's DataWriter::write(void*, WriteParams&), which rmw_fastrtps 6 calls";
    write_instance_2 = "_ZN8eprosima7fastdds3dds10DataWriter5writeEPv\
        RKNS_8fastrtps4rtps16InstanceHandle_tE", Zero:
        "Fast DDS 2's DataWriter::write(void*, const InstanceHandle_t&)";
    write_at_2 = "_ZN8eprosima7fastdds3dds10DataWriter17write_w_timestampEPv\
        RKNS_8fastrtps4rtps16InstanceHandle_tERKNS4_6Time_tE", Zero:
        "Fast DDS 2's DataWriter::write_w_timestamp with a time of rtps";
    write_at_instant_2 = "_ZN8eprosima7fastdds3dds10DataWriter17write_w_timestampEPv\
        RKNS_8fastrtps4rtps16InstanceHandle_tERKNS5_6Time_tE", Zero:
        "Fast DDS 2's DataWriter::write_w_timestamp with a time of fastrtps";
    write_3 = "_ZN8eprosima7fastdds3dds10DataWriter5writeEPKv", Zero:
        "Fast DDS 3's DataWriter::write(const void*)";
    write_with_parameters_3 = "_ZN8eprosima7fastdds3dds10DataWriter5writeEPKv\
        RNS0_4rtps11WriteParamsE", Zero:
        "Fast DDS 3's DataWriter::write(const void*, WriteParams&)";
    write_instance_3 = "_ZN8eprosima7fastdds3dds10DataWriter5writeEPKv\
        RKNS0_4rtps16InstanceHandle_tE", Zero:
        "Fast DDS 3's DataWriter::write(const void*, const InstanceHandle_t&)";
    write_at_3 = "_ZN8eprosima7fastdds3dds10DataWriter17write_w_timestampEPKv\
        RKNS0_4rtps16InstanceHandle_tERKNS1_6Time_tE", Zero:
        "Fast DDS 3's DataWriter::write_w_timestamp, which rmw_fastrtps 9 calls";
    dds_write = "dds_write", NotNegative: "Cyclone DDS's dds_write";
    dds_write_ts = "dds_write_ts", NotNegative: "Cyclone DDS's dds_write_ts";
    dds_writecdr = "dds_writecdr", NotNegative:
        "Cyclone DDS's dds_writecdr, which rmw_cyclonedds calls";
    dds_forwardcdr = "dds_forwardcdr", NotNegative: "Cyclone DDS's dds_forwardcdr";
}

fn real_write(cache: &AtomicUsize, name: &CStr) -> Option<Write> {
    let mut address = cache.load(Ordering::Acquire);
    if address == 0 {
        address = real::anywhere(name) as usize;
        cache.store(address, Ordering::Release);
    }
    // SAFETY: a symbol of this name is such a function, and null is None.
    unsafe { mem::transmute::<*mut c_void, Option<Write>>(address as *mut c_void) }
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

thread_local! {
    static CURRENT: Cell<Option<Tally>> = const { Cell::new(None) };
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

fn written(success: Success, write: impl FnOnce() -> usize) -> usize {
    static FIRST: Once = Once::new();
    // One write calls another, or nothing is recorded.
    let Some(file) = record::file().filter(|_| CURRENT.get().is_none()) else { return write() };
    if file.get(Number::begun_ns) != 0 {
        FIRST.call_once(libraries::note);
    }
    let mut message = Message::begin(file);
    let result = write();
    message.succeeded = match success {
        Success::True => result & 0xff != 0,
        #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
        Success::NotNegative => result as i32 >= 0,
        #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
        Success::Zero => result as i32 == 0,
    };
    result
}

/// Ends when it is dropped, and so also when the write throws.
struct Message {
    file: &'static File,
    begun: u64,
    succeeded: bool,
}

impl Message {
    fn begin(file: &'static File) -> Message {
        let begun = now();
        if file.get(Number::messages) == 0 && file.get(Number::first_message_ns) == 0 {
            file.set(Number::first_message_ns, begun);
            file.keep_totals(Stand::first_message);
        }
        CURRENT.set(Some(NONE));
        Message { file, begun, succeeded: false }
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        let ended = now();
        let ns = ended.saturating_sub(self.begun);
        let tally = CURRENT.take().unwrap_or(NONE);
        if !self.succeeded {
            self.file.add(Number::messages_failed, 1);
        }
        let index = self.file.add(Number::messages, 1);
        self.file.add(Number::messages_ns, ns);
        self.file.set(Number::last_message_ns, ended);
        self.file.keep_totals(Stand::last_message);
        self.file.message(
            index,
            &[
                (OfMessage::begun_ns, self.begun),
                (OfMessage::ns, ns),
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

/// A message of nothing, for calibration.
pub fn nothing() {
    written(Success::True, || 1);
}
