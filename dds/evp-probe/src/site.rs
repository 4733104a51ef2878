// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who called: the function that called OpenSSL and the three above it.
//!
//! One is not enough: Fast DDS encrypts payloads, submessages and messages in one function. A walk
//! by the unwinder's tables takes a microsecond or two, as long as what is timed. So it is made
//! when a return address is met first; from then on the next one is read at the distance on the
//! stack that the walk found, as long as what lies there is a return address that was met before.
//! Where the distance changes (a frame of variable size), each call is walked.

use std::ffi::{CStr, c_int, c_void};
use std::mem;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Functions of a chain.
pub const DEPTH: usize = 4;

/// Return addresses, innermost first; zero where there are no more.
pub type Chain = [usize; DEPTH];

/// The place on the stack where the return address of a call lies.
#[derive(Clone, Copy)]
pub struct Slot(*const usize);

impl Slot {
    /// # Safety
    /// `place` holds the return address of a call that lasts as long as the value is used.
    pub unsafe fn new(place: *const usize) -> Slot {
        Slot(place)
    }

    /// The word `index` words above; 0 is the return address.
    pub fn word(self, index: usize) -> usize {
        // SAFETY: `new`'s promise for 0; callers ask for 1 where an argument lies there.
        unsafe { *self.0.add(index) }
    }

    fn address(self) -> usize {
        self.0 as usize
    }
}

/// Distances by return address. A power of two.
const FRAMES: usize = 2048;
/// The last of a chain, or a frame whose next is not known yet.
const UNKNOWN: usize = 0;
/// The distance was seen to change.
const VARIES: usize = usize::MAX;

struct Frame {
    address: AtomicUsize,
    /// Bytes from its place on the stack to the next one's.
    distance: AtomicUsize,
}
static KNOWN: [Frame; FRAMES] =
    [const { Frame { address: AtomicUsize::new(0), distance: AtomicUsize::new(UNKNOWN) } }; FRAMES];

/// The chain of the call at `slot`.
pub fn chain(slot: Slot) -> Chain {
    quick(slot).unwrap_or_else(|| walk(slot))
}

fn alone(slot: Slot) -> Chain {
    let mut chain = [0; DEPTH];
    chain[0] = slot.word(0);
    chain
}

fn quick(slot: Slot) -> Option<Chain> {
    let mut chain = alone(slot);
    let mut place = slot.address();
    for index in 1..DEPTH {
        let distance = frame(chain[index - 1])?.distance.load(Ordering::Relaxed);
        if distance == UNKNOWN || distance == VARIES {
            return None;
        }
        place += distance;
        // SAFETY: the caller's frame reaches at least this far: its size at this return address was
        // measured, and VARIES excludes those whose size was seen to change.
        chain[index] = unsafe { *(place as *const usize) };
        frame(chain[index])?;
    }
    Some(chain)
}

fn frame(address: usize) -> Option<&'static Frame> {
    let start = address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 53;
    let places = (0..16).map(|step| &KNOWN[(start + step) % FRAMES]);
    places.filter(|_| address != 0).find(|frame| frame.address.load(Ordering::Acquire) == address)
}

fn learn(address: usize, distance: usize) {
    let start = address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 53;
    for step in 0..16 {
        let frame = &KNOWN[(start + step) % FRAMES];
        let taken = frame.address.compare_exchange(0, address, Ordering::AcqRel, Ordering::Acquire);
        if taken.is_ok() || taken == Err(address) {
            let before = frame.distance.load(Ordering::Relaxed);
            if before == UNKNOWN {
                frame.distance.store(distance, Ordering::Relaxed);
            } else if distance != UNKNOWN && before != distance {
                frame.distance.store(VARIES, Ordering::Relaxed);
            }
            return;
        }
    }
}

/// By the unwinder, through this library's frames, which are skipped.
fn walk(slot: Slot) -> Chain {
    struct Walk {
        chain: Chain,
        places: [usize; DEPTH],
        found: usize,
        first: usize,
    }
    extern "C" fn visit(context: *mut UnwindContext, data: *mut c_void) -> c_int {
        // SAFETY: the unwinder passes its context and `data` as it was given.
        let (walk, address, top) = unsafe {
            let walk = &mut *data.cast::<Walk>();
            (walk, _Unwind_GetIP(context), _Unwind_GetCFA(context))
        };
        // libgcc's GetCFA names the stack pointer after the return to `address`, which so lies one
        // word below.
        let place = top.wrapping_sub(mem::size_of::<usize>());
        if walk.found == 0 && place != walk.first {
            return CONTINUE;
        }
        walk.chain[walk.found] = address;
        walk.places[walk.found] = place;
        walk.found += 1;
        if walk.found == DEPTH { STOP } else { CONTINUE }
    }
    let mut walk = Walk { chain: alone(slot), places: [0; DEPTH], found: 0, first: slot.address() };
    // SAFETY: `visit` matches the signature, and `walk` outlives the call.
    unsafe { _Unwind_Backtrace(visit, (&raw mut walk).cast()) };
    for index in 0..walk.found {
        let next = walk.places.get(index + 1).copied().unwrap_or(0);
        let distance =
            if index + 1 < walk.found { next.wrapping_sub(walk.places[index]) } else { UNKNOWN };
        // SAFETY: a place of the walk is on this thread's stack, above this frame.
        let there = unsafe { *(walk.places[index] as *const usize) };
        if there == walk.chain[index] {
            learn(walk.chain[index], distance);
        }
    }
    walk.chain
}

#[repr(C)]
struct UnwindContext {
    _opaque: [u8; 0],
}
/// `_URC_NO_REASON`, and any other value ends the walk.
const CONTINUE: c_int = 0;
const STOP: c_int = 4;

unsafe extern "C" {
    fn _Unwind_Backtrace(
        visit: extern "C" fn(*mut UnwindContext, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut UnwindContext) -> usize;
    fn _Unwind_GetCFA(context: *mut UnwindContext) -> usize;
}

/// What a person calls the function around `address`: `libfastrtps.so.2.9!Class::function`, or an
/// offset in the object where its symbols are not exported.
pub fn name(address: usize) -> String {
    // SAFETY: `info` is plain data, written by dladdr and read only if that says so; its strings
    // live as long as the object, whose code is on the stack.
    unsafe {
        let mut info: libc::Dl_info = mem::zeroed();
        // A return address may be the first byte after its function.
        if libc::dladdr((address - 1) as *const c_void, &raw mut info) == 0
            || info.dli_fname.is_null()
        {
            return format!("{address:#x}");
        }
        let file = CStr::from_ptr(info.dli_fname).to_string_lossy().into_owned();
        let object = Path::new(&file)
            .file_name()
            .map_or(file.clone(), |name| name.to_string_lossy().into_owned());
        if info.dli_sname.is_null() {
            return format!("{object}+{:#x}", address - info.dli_fbase as usize);
        }
        format!("{object}!{}", plain(&CStr::from_ptr(info.dli_sname).to_string_lossy()))
    }
}

/// A C++ name without parameters and but for its last two parts.
fn plain(symbol: &str) -> String {
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    let Some(whole) = cpp_demangle::Symbol::new(symbol)
        .ok()
        .and_then(|it| it.demangle_with_options(&options).ok())
    else {
        return symbol.to_owned();
    };
    let parts: Vec<&str> = whole.split("::").collect();
    if whole.contains('<') { whole } else { parts[parts.len().saturating_sub(2)..].join("::") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpp_name_keeps_class_and_function() {
        let symbol = "_ZN8eprosima7fastdds3dds10DataWriter5writeEPv";
        assert_eq!(plain(symbol), "DataWriter::write");
        assert_eq!(plain("dds_write"), "dds_write");
    }

    #[test]
    fn address_without_an_object_is_shown_as_a_number() {
        assert_eq!(name(0x10), "0x10");
    }
}
