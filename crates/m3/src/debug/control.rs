// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where a debugged run pauses: breakpoints, watchpoints, steps.
//!
//! Breakpoints change no memory, and a run that paused goes on as if it had not: cycles are those
//! of a run without a debugger.

use std::ops::Range;

pub use gdbstub::target::ext::breakpoints::WatchKind;

use crate::access::Access;
use crate::core::{Core, Operation};
use crate::machine::Observer;
use crate::timing::Cycles;

/// Breakpoints and watchpoints at most, each: every one costs time at each instruction.
pub const MAX_POINTS: usize = 256;

/// How far the run goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Until {
    /// To a breakpoint or the end.
    #[default]
    Stopped,
    /// One instruction.
    Step,
    /// To an instruction outside these addresses.
    Outside(Range<u32>),
}

/// Who asked for a breakpoint; both kinds work alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakKind {
    /// In memory, were this a chip.
    Software,
    /// In a comparator.
    Hardware,
}

/// Bytes whose accesses pause the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watchpoint {
    /// The first byte.
    pub address: u32,
    /// How many.
    pub bytes: u32,
    /// Loads, stores or both.
    pub kind: WatchKind,
}

/// Why a run paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paused {
    /// Before an instruction with a breakpoint.
    Breakpoint(BreakKind),
    /// After an access to a watched byte, the first of which is given.
    Watchpoint(WatchKind, u32),
    /// A step is complete.
    Stepped,
}

/// The observer of a debugged run.
#[derive(Debug, Default)]
pub struct Control {
    breakpoints: Vec<(u32, BreakKind)>,
    watchpoints: Vec<Watchpoint>,
    until: Until,
    /// Whether an instruction was executed since the run was resumed: the first one may have a
    /// breakpoint, which paused the run before.
    moved: bool,
    access: Option<Access>,
    hit: Option<(WatchKind, u32)>,
}

impl Control {
    /// Sets a breakpoint; false if there are too many.
    pub fn add_breakpoint(&mut self, address: u32, kind: BreakKind) -> bool {
        add(&mut self.breakpoints, (address & !1, kind))
    }

    /// Removes a breakpoint; false if there is none.
    pub fn remove_breakpoint(&mut self, address: u32, kind: BreakKind) -> bool {
        remove(&mut self.breakpoints, &(address & !1, kind))
    }

    /// Sets a watchpoint; false if there are too many.
    pub fn add_watchpoint(&mut self, watchpoint: Watchpoint) -> bool {
        watchpoint.bytes > 0 && add(&mut self.watchpoints, watchpoint)
    }

    /// Removes a watchpoint; false if there is none.
    pub fn remove_watchpoint(&mut self, watchpoint: Watchpoint) -> bool {
        remove(&mut self.watchpoints, &watchpoint)
    }

    /// Removes them all.
    pub fn clear(&mut self) {
        *self = Control::default();
    }

    /// Before the run goes on.
    pub fn resume(&mut self, until: Until) {
        self.until = until;
        (self.moved, self.access, self.hit) = (false, None, None);
    }

    /// Why the run paused before the instruction at an address; `None` if not by this observer.
    pub fn paused(&self, at: u32) -> Option<Paused> {
        if let Some((kind, address)) = self.hit {
            return Some(Paused::Watchpoint(kind, address));
        }
        if !self.moved {
            return None;
        }
        if let Some((_, kind)) = self.breakpoints.iter().find(|(address, _)| *address == at) {
            return Some(Paused::Breakpoint(*kind));
        }
        let stepped = match &self.until {
            Until::Stopped => false,
            Until::Step => true,
            Until::Outside(range) => !range.contains(&at),
        };
        stepped.then_some(Paused::Stepped)
    }

    fn accessed(&mut self, core: &Core, access: Access) {
        let Access { address, bytes, is_store } = access.behind_alias(core);
        let watched = self.watchpoints.iter().find_map(|point| {
            let matches = match point.kind {
                WatchKind::Write => is_store,
                WatchKind::Read => !is_store,
                WatchKind::ReadWrite => true,
            };
            let first = overlap(address, bytes, point.address, point.bytes)?;
            matches.then_some((point.kind, first))
        });
        self.hit = self.hit.or(watched);
    }
}

impl Observer for Control {
    const PAUSES: bool = true;

    fn pauses_at(&mut self, address: u32) -> bool {
        self.paused(address).is_some()
    }

    fn before(&mut self, core: &Core, operation: &Operation) {
        self.moved = true;
        if !self.watchpoints.is_empty() {
            self.access = Access::before(core, operation);
        }
    }

    fn after(&mut self, core: &mut Core, operation: &Operation, _now: Cycles) {
        if let Some(access) = self.access.take()
            && access.was_made(core, operation)
        {
            self.accessed(core, access);
        }
    }

    fn faulted(&mut self, _core: &mut Core, _operation: &Operation) {
        self.access = None;
    }

    fn semihosting_done(&mut self, core: &Core, written: &[(u32, u32)]) {
        for &(address, bytes) in written {
            self.accessed(core, Access { address, bytes, is_store: true });
        }
    }

    fn exception(&mut self, core: &Core, entered: bool) {
        // Its frame has eight words (DDI 0403E section B1.5.6).
        if entered && !self.watchpoints.is_empty() {
            let returns_to_process = core.registers.r[14] >> 2 & 3 == 3;
            let registers = &core.registers;
            let address =
                if returns_to_process { registers.process_stack() } else { registers.main_stack() };
            self.accessed(core, Access { address, bytes: 32, is_store: true });
        }
    }
}

fn add<T: PartialEq>(points: &mut Vec<T>, point: T) -> bool {
    if points.contains(&point) {
        return true;
    }
    let has_room = points.len() < MAX_POINTS;
    if has_room {
        points.push(point);
    }
    has_room
}

fn remove<T: PartialEq>(points: &mut Vec<T>, point: &T) -> bool {
    let before = points.len();
    points.retain(|one| one != point);
    points.len() < before
}

/// The first byte that is in both ranges, which may go around the end of the address space.
fn overlap(address: u32, bytes: u32, other: u32, other_bytes: u32) -> Option<u32> {
    if address.wrapping_sub(other) < other_bytes {
        Some(address)
    } else if other.wrapping_sub(address) < bytes {
        Some(other)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_of_ranges_is_their_first_common_byte() {
        assert_eq!(overlap(0x100, 4, 0x102, 4), Some(0x102));
        assert_eq!(overlap(0x102, 4, 0x100, 4), Some(0x102));
        assert_eq!(overlap(0x100, 2, 0x102, 4), None);
        assert_eq!(overlap(0x100, 4, 0xffff_ff00, 0x300), Some(0x100));
        assert_eq!(overlap(0x100, 0, 0x100, 0), None);
    }

    #[test]
    fn number_of_breakpoints_is_bounded() {
        let mut control = Control::default();
        for address in 0..MAX_POINTS as u32 {
            assert!(control.add_breakpoint(2 * address, BreakKind::Software));
        }
        assert!(control.add_breakpoint(0, BreakKind::Software), "it is there");
        assert!(!control.add_breakpoint(0, BreakKind::Hardware));
        assert!(control.remove_breakpoint(2, BreakKind::Software));
        assert!(!control.remove_breakpoint(2, BreakKind::Software));
        assert!(control.add_breakpoint(0, BreakKind::Hardware));
    }
}
