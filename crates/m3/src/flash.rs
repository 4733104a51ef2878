// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The time of a flash memory that is read by lines, keeps some of them, and fetches the next one
//! ahead, as the manuals of chips describe theirs (`chips/*.toml` names them).
//!
//! A read of the array takes one cycle and the wait states; one read runs at a time. The line after
//! the one in use is read ahead. A data access goes first: a line that is read ahead at that moment
//! is read anew afterwards (NXP UM10360 chapter 5). Of the lines that are kept the one not used for
//! the longest time is replaced; manuals do not say how, so that all this is *assumed*.

use crate::timing::Cycles;

/// How a flash memory is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineBuffers {
    /// Bytes that one read of the array gives, a power of two.
    pub line_bytes: u32,
    /// Lines kept for instructions, at least one: the line in use is among them, the one that is
    /// read ahead is not.
    pub code: usize,
    /// Lines kept for data.
    pub data: Kept,
    /// Whether the next line of code is read ahead.
    pub prefetch: bool,
}

/// Lines that are kept for data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The same that are kept for instructions.
    Shared,
    /// So many of its own; with 0 every data access reads the array.
    Own(usize),
}

/// A flash memory's state.
#[derive(Debug)]
pub struct Flash {
    buffers: LineBuffers,
    wait_states: u64,
    /// The line of the last instruction.
    current: Option<u32>,
    /// Lines that are kept, the most recently used one last.
    code: Vec<u32>,
    data: Vec<u32>,
    /// The line that is read ahead, and when it is there.
    ahead: Option<(u32, Cycles)>,
    /// When the array is free.
    free: Cycles,
}

impl Flash {
    /// A flash memory that has read nothing yet.
    pub fn new(buffers: LineBuffers, wait_states: u64) -> Self {
        Flash {
            buffers,
            wait_states,
            current: None,
            code: Vec::new(),
            data: Vec::new(),
            ahead: None,
            free: Cycles::default(),
        }
    }

    /// The most cycles that one access may wait.
    pub fn max_wait(&self) -> u64 {
        // Behind a data access, for a line that is read anew.
        2 * self.wait_states + 1
    }

    /// The cycles that an instruction waits whose bytes are at `first` to `last` of the memory.
    #[inline]
    pub fn fetch(&mut self, first: u32, last: u32, now: Cycles) -> Cycles {
        let (first, last) = (self.line(first), self.line(last));
        if self.current == Some(last) {
            return Cycles::default();
        }
        let wait = self.fetch_line(first, now);
        if first == last {
            return wait;
        }
        wait + self.fetch_line(last, now + wait)
    }

    fn line(&self, at: u32) -> u32 {
        at / self.buffers.line_bytes
    }

    fn fetch_line(&mut self, line: u32, now: Cycles) -> Cycles {
        if self.current == Some(line) {
            return Cycles::default();
        }
        self.current = Some(line);
        let wait = if touch(&mut self.code, line) {
            Cycles::default()
        } else {
            keep(&mut self.code, line, self.buffers.code);
            self.take_ahead(line, now).unwrap_or_else(|| self.read(now))
        };
        self.read_ahead(line.wrapping_add(1), now + wait);
        wait
    }

    /// The cycles that a data access to a byte of the memory waits.
    pub fn data(&mut self, at: u32, now: Cycles) -> Cycles {
        let line = self.line(at);
        let (lines, most) = match self.buffers.data {
            Kept::Shared => (&mut self.code, self.buffers.code),
            Kept::Own(most) => (&mut self.data, most),
        };
        if touch(lines, line) {
            return Cycles::default();
        }
        keep(lines, line, most);
        if self.buffers.data == Kept::Shared {
            // The line of the last instruction may have been replaced.
            self.current = self.current.filter(|current| self.code.contains(current));
            if let Some(wait) = self.take_ahead(line, now) {
                return wait;
            }
        }
        let interrupted = self.ahead.filter(|(_, ready)| later(*ready, now));
        let wait = self.read(now);
        if let Some((next, _)) = interrupted {
            self.ahead = None;
            self.read_ahead(next, self.free);
        }
        wait
    }

    /// Reads the array now; a line that is read ahead gives way.
    fn read(&mut self, now: Cycles) -> Cycles {
        self.free = now + Cycles::both(self.wait_states + 1);
        Cycles::both(self.wait_states)
    }

    /// What is left to wait for a line if it is the one that is read ahead.
    fn take_ahead(&mut self, line: u32, now: Cycles) -> Option<Cycles> {
        let (_, ready) = self.ahead.take_if(|(next, _)| *next == line)?;
        Some(difference(ready, now))
    }

    fn read_ahead(&mut self, next: u32, now: Cycles) {
        let known = self.ahead.is_some_and(|(line, _)| line == next) || self.code.contains(&next);
        if !self.buffers.prefetch || known {
            return;
        }
        let start = now + difference(self.free, now);
        self.ahead = Some((next, start + Cycles::both(self.wait_states)));
        self.free = start + Cycles::both(self.wait_states + 1);
    }
}

/// How long after `now` a time is, by each reading; zero if it is before.
fn difference(time: Cycles, now: Cycles) -> Cycles {
    Cycles { low: time.low.saturating_sub(now.low), high: time.high.saturating_sub(now.high) }
}

fn later(time: Cycles, now: Cycles) -> bool {
    difference(time, now) != Cycles::default()
}

/// Whether a line is kept; it is then the most recently used one.
fn touch(lines: &mut [u32], line: u32) -> bool {
    match lines.iter().rposition(|kept| *kept == line) {
        Some(at) => {
            lines[at..].rotate_left(1);
            true
        }
        None => false,
    }
}

/// Keeps a line, in the place of the one not used for the longest time if there are `most`.
fn keep(lines: &mut Vec<u32>, line: u32, most: usize) {
    if most == 0 {
        return;
    }
    if lines.len() >= most {
        lines.remove(0);
    }
    lines.push(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    const LPC1768: LineBuffers =
        LineBuffers { line_bytes: 16, code: 8, data: Kept::Shared, prefetch: true };

    /// The cycles that each instruction waits, `each` cycles and `bytes` bytes long, from `start`.
    fn sequence(flash: &mut Flash, start: u32, bytes: u32, each: u64, count: u32) -> Vec<u64> {
        let mut now = 1000;
        let mut waits = Vec::new();
        for at in (start..).step_by(bytes as usize).take(count as usize) {
            let wait = flash.fetch(at, at + bytes - 1, Cycles::both(now)).high;
            now += wait + each;
            waits.push(wait);
        }
        waits
    }

    #[test]
    fn narrow_instructions_wait_for_the_first_line_alone() {
        // A read takes 5 cycles, the 8 instructions of a line 8.
        let mut flash = Flash::new(LPC1768, 4);
        let waits = sequence(&mut flash, 0, 2, 1, 32);
        assert_eq!(waits, [&[4][..], &[0; 31]].concat());
    }

    #[test]
    fn wide_instructions_run_at_the_rate_of_the_array() {
        // The 4 instructions of a line take 4 cycles, its read 5.
        let mut flash = Flash::new(LPC1768, 4);
        let waits = sequence(&mut flash, 0, 4, 1, 16);
        assert_eq!(waits, [4, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]);
    }

    #[test]
    fn without_prefetch_each_line_is_waited_for() {
        let buffers = LineBuffers { prefetch: false, ..LPC1768 };
        let waits = sequence(&mut Flash::new(buffers, 4), 0, 2, 1, 24);
        assert_eq!(waits.iter().sum::<u64>(), 3 * 4);
        assert_eq!((waits[0], waits[8], waits[16]), (4, 4, 4));
    }

    #[test]
    fn instruction_across_two_lines_waits_for_both() {
        let buffers = LineBuffers { prefetch: false, ..LPC1768 };
        let mut flash = Flash::new(buffers, 3);
        assert_eq!(flash.fetch(14, 17, Cycles::both(0)), Cycles::both(6));
        assert_eq!(flash.fetch(18, 19, Cycles::both(9)), Cycles::both(0));
    }

    #[test]
    fn loop_within_kept_lines_waits_once_and_a_longer_one_each_time() {
        for (lines, again) in [(8, 0), (9, 9 * 2)] {
            let buffers = LineBuffers { prefetch: false, ..LPC1768 };
            let mut flash = Flash::new(buffers, 2);
            let first: u64 = sequence(&mut flash, 0, 16, 1, lines).iter().sum();
            let second: u64 = sequence(&mut flash, 0, 16, 1, lines).iter().sum();
            assert_eq!((first, second), (2 * u64::from(lines), again), "{lines} lines");
        }
    }

    #[test]
    fn data_access_goes_before_the_line_that_is_read_ahead() {
        let buffers = LineBuffers { line_bytes: 8, code: 2, data: Kept::Own(0), prefetch: true };
        let mut flash = Flash::new(buffers, 2);
        // The second line would be there at 5; the data access from 3 to 5 delays it to 8.
        assert_eq!(flash.fetch(0, 1, Cycles::both(0)), Cycles::both(2));
        assert_eq!(flash.data(0x100, Cycles::both(3)), Cycles::both(2));
        assert_eq!(flash.fetch(8, 9, Cycles::both(6)), Cycles::both(2));
        // Nothing is kept for data.
        assert_eq!(flash.data(0x100, Cycles::both(50)), Cycles::both(2));
    }

    #[test]
    fn data_lines_are_kept_apart_or_shared() {
        let own = LineBuffers { data: Kept::Own(1), ..LPC1768 };
        let mut flash = Flash::new(own, 5);
        assert_eq!(flash.data(0x40, Cycles::both(0)), Cycles::both(5));
        assert_eq!(flash.data(0x4f, Cycles::both(9)), Cycles::both(0));
        assert_eq!(flash.fetch(0x40, 0x41, Cycles::both(20)), Cycles::both(5));
        let mut flash = Flash::new(LPC1768, 5);
        assert_eq!(flash.data(0x40, Cycles::both(0)), Cycles::both(5));
        assert_eq!(flash.fetch(0x40, 0x41, Cycles::both(20)), Cycles::both(0));
        // Eight lines of data replace that of the last instruction.
        for line in 0x10..0x18 {
            flash.data(line << 4, Cycles::both(100 + u64::from(line)));
        }
        assert_eq!(flash.fetch(0x42, 0x43, Cycles::both(500)), Cycles::both(5));
    }

    #[test]
    fn each_reading_waits_by_its_own_clock() {
        let mut flash = Flash::new(LPC1768, 4);
        let now = |low, high| Cycles { low, high };
        assert_eq!(flash.fetch(0, 3, now(100, 100)), Cycles::both(4));
        // The next line is there at 109.
        assert_eq!(flash.fetch(16, 19, now(107, 120)), now(2, 0));
    }
}
