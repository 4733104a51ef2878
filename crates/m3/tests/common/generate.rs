// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random programs, from the encoding diagrams of DDI 0403E and not from our decoder: instructions
//! whose effect on registers and memory the architecture defines, including SP and PC as operands.
//! Excluded are BLX, loads and data processing that write PC, and exceptions, which the C programs
//! have.

use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::encodings::{MEMORY, NARROW, SPECIAL, WIDE};

/// Start of the code: literals may lie 4 KiB before an instruction.
pub const CODE: u32 = 0x2000;
/// The window that loads and stores use, small enough that loads meet what was stored.
const WINDOW: u32 = 0x2000_4000;
const WINDOW_BYTES: u32 = 0x800;

/// Instructions that must stay together when a program is reduced.
pub type Item = Vec<u16>;

/// A source of random fields.
pub struct Generator {
    random: Xoshiro256PlusPlus,
}

impl Generator {
    pub fn new(random: Xoshiro256PlusPlus) -> Self {
        Generator { random }
    }

    /// Random constants in R0 to R12, then `length` items.
    pub fn program(&mut self, length: usize) -> Vec<Item> {
        let mut items: Vec<Item> = (0..13).map(|register| self.constant(register)).collect();
        items.extend((0..length).map(|_| self.item()));
        items
    }

    /// A number from 0 to `bound` - 1.
    pub fn below(&mut self, bound: u32) -> u32 {
        (self.random.next_u64() % u64::from(bound)) as u32
    }

    /// Any item.
    pub fn item(&mut self) -> Item {
        match self.below(100) {
            0..=91 => self.straight(),
            92..=95 => self.forward_branch(),
            96..=97 => self.call(),
            _ => self.table_branch(),
        }
    }

    /// An item without branches.
    pub fn straight(&mut self) -> Item {
        match self.below(93) {
            0..=24 => self.narrow(),
            25..=54 => self.wide(),
            55..=73 => self.memory(),
            74..=77 => self.dual(),
            78..=81 => self.multiple(),
            82..=83 => self.stack(),
            84..=85 => self.exclusive(),
            86..=89 => self.if_then(),
            90 => self.flags(),
            91 => self.special(),
            _ => self.other(),
        }
    }

    /// R0 to R12 and LR.
    fn register(&mut self) -> u32 {
        let number = self.below(14);
        if number == 13 { 14 } else { number }
    }

    /// A word, often near a boundary of carries, signs or shifts.
    pub fn operand(&mut self) -> u32 {
        match self.below(6) {
            0 => self.below(3),
            1 => 0x7fff_ffff + self.below(3),
            2 => 0u32.wrapping_sub(self.below(40)),
            3 => self.below(300),
            _ => self.random.next_u64() as u32,
        }
    }

    fn constant(&mut self, register: u32) -> Item {
        let value = self.operand();
        load_constant(register, value)
    }

    fn narrow(&mut self) -> Item {
        let pattern = NARROW[self.below(NARROW.len() as u32) as usize];
        self.pattern(pattern).0
    }

    fn wide(&mut self) -> Item {
        let pattern = WIDE[self.below(WIDE.len() as u32) as usize];
        self.pattern(pattern).0
    }

    /// Fills a pattern until its fields are allowed: the halfwords, and the registers by letter.
    fn pattern(&mut self, pattern: &str) -> (Item, [u32; 26]) {
        loop {
            let mut registers = [u32::MAX; 26];
            let mut word: u32 = 0;
            let mut taken = [0u32; 26];
            for letter in pattern.bytes() {
                let bit = match letter {
                    b'0' | b'1' => u32::from(letter - b'0'),
                    b'd' | b'n' | b'm' | b'a' | b't' | b'h' | b'l' => {
                        let index = usize::from(letter - b'a');
                        let total = pattern.bytes().filter(|other| *other == letter).count() as u32;
                        // Eight bits are one register twice.
                        let width = if total == 8 { 4 } else { total };
                        if registers[index] == u32::MAX {
                            registers[index] =
                                if width == 3 { self.below(8) } else { self.register() };
                        }
                        let place = width - 1 - taken[index] % width;
                        taken[index] += 1;
                        registers[index] >> place & 1
                    }
                    _ => self.below(2),
                };
                word = word << 1 | bit;
            }
            let halves = if pattern.len() == 16 {
                vec![word as u16]
            } else {
                vec![(word >> 16) as u16, word as u16]
            };
            if allowed(pattern, word, &registers) {
                return (halves, registers);
            }
        }
    }

    fn memory(&mut self) -> Item {
        let pattern = MEMORY[self.below(MEMORY.len() as u32) as usize];
        let (halves, registers) = self.pattern(pattern);
        let mut item = Vec::new();
        let base = registers[usize::from(b'n' - b'a')];
        if base != u32::MAX {
            let address = WINDOW + self.below(WINDOW_BYTES);
            item.extend(load_constant(base, address));
        }
        let offset = registers[usize::from(b'm' - b'a')];
        if offset != u32::MAX {
            let value = self.below(64);
            item.extend(load_constant(offset, value));
        }
        item.extend(halves);
        item
    }

    fn dual(&mut self) -> Item {
        let (base, first) = (self.register(), self.below(12));
        let second = first + 1;
        let form = [0b1000u32, 0b1001, 0b0001, 0b1101, 0b0101, 0b1100][self.below(6) as usize];
        let writes_back = form & 1 == 1;
        if writes_back && (base == first || base == second) {
            return self.dual();
        }
        let address = WINDOW + (self.below(WINDOW_BYTES) & !3);
        let load = self.below(2);
        let word = 0b1110_1000_0100_0000u32 << 16
            | (form >> 3 & 1) << 24
            | (form >> 2 & 1) << 23
            | (form & 1) << 21
            | load << 20
            | base << 16
            | first << 12
            | second << 8
            | self.below(256);
        let mut item = load_constant(base, address);
        item.extend([(word >> 16) as u16, word as u16]);
        item
    }

    fn multiple(&mut self) -> Item {
        let base = self.below(8);
        let narrow = self.below(3) == 0;
        let load = self.below(2);
        let address = WINDOW + 0x100 + (self.below(WINDOW_BYTES) & !3);
        let mut item = load_constant(base, address);
        if narrow {
            // A stored base must be the lowest register: keep it out of the list.
            let list = (1 + self.below(255)) & !(1 << base);
            if list == 0 {
                return self.multiple();
            }
            item.push((0b1100_0000_0000_0000 | load << 11 | base << 8 | list) as u16);
            return item;
        }
        let list = self.below(0x2000) & !(1 << base);
        if list.count_ones() < 2 {
            return self.multiple();
        }
        let mode = if self.below(2) == 0 { 0b01 } else { 0b10 };
        let first = 0b1110_1000_0000_0000 | mode << 7 | self.below(2) << 5 | load << 4 | base;
        item.extend([first as u16, list as u16]);
        item
    }

    /// PUSH, an instruction, and POP of as many registers.
    fn stack(&mut self) -> Item {
        let list = 1 + self.below(255);
        let other: u32 = (0..list.count_ones()).map(|bit| 1 << bit).sum();
        let mut item = vec![(0xb400 | list) as u16];
        item.extend(self.narrow_without_stack());
        item.push((0xbc00 | other) as u16);
        if self.below(2) == 0 {
            let words = 1 + self.below(20);
            item.insert(0, (0xb080 | words) as u16);
            item.push((0xb000 | words) as u16);
        }
        item
    }

    /// SP, PC and the special registers as operands.
    fn special(&mut self) -> Item {
        let pattern = SPECIAL[self.below(SPECIAL.len() as u32) as usize];
        let mut item = self.pattern(pattern).0;
        if pattern.ends_with("00010000") {
            // CPSID i, MRS of PRIMASK, CPSIE i.
            item.insert(0, 0xb672);
            item.push(0xb662);
        }
        item
    }

    fn narrow_without_stack(&mut self) -> Item {
        self.pattern("0001100mmmnnnddd").0
    }

    fn exclusive(&mut self) -> Item {
        let (base, value) = (self.below(4), 4 + self.below(4));
        let status = 8 + self.below(4);
        let address = WINDOW + (self.below(WINDOW_BYTES) & !3);
        let mut item = load_constant(base, address);
        let (load, store) = match self.below(3) {
            0 => {
                ([0xe850 | base, 0x0f00 | value << 12], [0xe840 | base, value << 12 | status << 8])
            }
            1 => (
                [0xe8d0 | base, 0x0f4f | value << 12],
                [0xe8c0 | base, 0x0f40 | value << 12 | status],
            ),
            _ => (
                [0xe8d0 | base, 0x0f5f | value << 12],
                [0xe8c0 | base, 0x0f50 | value << 12 | status],
            ),
        };
        item.extend(load.map(|half| half as u16));
        if self.below(4) == 0 {
            // CLREX
            item.extend([0xf3bf, 0x8f2f]);
        }
        item.extend(store.map(|half| half as u16));
        item
    }

    /// A forward branch over some instructions, in each encoding.
    fn forward_branch(&mut self) -> Item {
        let mut skipped: Item = Vec::new();
        for _ in 0..1 + self.below(3) {
            let more = if self.below(2) == 0 { self.narrow() } else { self.wide() };
            skipped.extend(more);
        }
        let over = skipped.len() as u32 * 2;
        let condition = self.below(14);
        let mut item: Item = match self.below(5) {
            0 => vec![(0xd000 | condition << 8 | (over - 2) >> 1) as u16],
            1 => vec![(0xe000 | (over - 2) >> 1) as u16],
            2 => {
                let register = self.below(8);
                vec![(0xb100 | self.below(2) << 11 | ((over - 2) >> 1) << 3 | register) as u16]
            }
            3 => vec![(0xf000 | condition << 6) as u16, (0x8000 | over >> 1) as u16],
            // B.W: J1 and J2 are 1 where the sign is 0.
            _ => vec![0xf000, (0xb800 | over >> 1) as u16],
        };
        item.extend(skipped);
        item
    }

    /// A branch over a short function, and BL back to it.
    fn call(&mut self) -> Item {
        let mut body = self.pattern("0001101mmmnnnddd").0;
        body.push(0x4770);
        // b over the body; then bl back to it.
        let mut item: Item = vec![(0xe000 | (body.len() as u32 * 2 - 2) >> 1) as u16];
        item.extend(&body);
        let back = -(body.len() as i32 * 2 + 4);
        let offset = back as u32;
        let (sign, i1, i2) = (offset >> 24 & 1, offset >> 23 & 1, offset >> 22 & 1);
        let (j1, j2) = (1 ^ i1 ^ sign, 1 ^ i2 ^ sign);
        item.push((0xf000 | sign << 10 | offset >> 12 & 0x3ff) as u16);
        item.push((0xd000 | j1 << 13 | j2 << 11 | offset >> 1 & 0x7ff) as u16);
        item
    }

    /// TBB or TBH, followed by its table.
    fn table_branch(&mut self) -> Item {
        let index = self.below(8);
        let entry = self.below(2);
        let half = self.below(2);
        let mut item = load_constant(index, entry);
        item.extend([0xe8df, (0xf000 | half << 4 | index) as u16]);
        // Two entries, then two instructions: the table takes one halfword, or two.
        if half == 1 {
            item.extend([2, 3])
        } else {
            item.push(0x0201)
        }
        item.extend([0x3001, 0x3102]);
        item
    }

    fn if_then(&mut self) -> Item {
        let condition = self.below(14);
        let length = 1 + self.below(4);
        // The lowest 1 of the mask marks the length; each bit above it selects T or E.
        let mut mask = 1u32 << (4 - length);
        for position in 0..length - 1 {
            mask |= self.below(2) << (3 - position);
        }
        let mut item = vec![(0xbf00 | condition << 4 | mask) as u16];
        for _ in 0..length {
            let more = loop {
                let candidate = if self.below(2) == 0 { self.narrow() } else { self.wide() };
                // MOVS by LSL #0 is not allowed in an IT block.
                if candidate[0] >> 6 != 0 {
                    break candidate;
                }
            };
            item.extend(more);
        }
        item
    }

    fn flags(&mut self) -> Item {
        let register = self.below(13);
        let mut item = self.constant(register);
        item.extend([(0xf380 | register) as u16, 0x8800]);
        item
    }

    fn other(&mut self) -> Item {
        match self.below(4) {
            0 => vec![0xbf00],
            1 => vec![0xf3af, 0x8000],
            2 => vec![(0xdf00 | self.below(256)) as u16],
            // DMB and ISB
            _ => vec![0xf3bf, if self.below(2) == 0 { 0x8f5f } else { 0x8f6f }],
        }
    }
}

/// Whether the fields are not reserved or unpredictable.
fn allowed(pattern: &str, word: u32, registers: &[u32; 26]) -> bool {
    let of = |letter: u8| registers[usize::from(letter - b'a')];
    if pattern.contains("llllhhhh") && of(b'l') == of(b'h') {
        return false;
    }
    if pattern.len() == 16 {
        return !pattern.starts_with("0101") || of(b'n') != of(b'm');
    }
    // Expanded constants that repeat a zero byte.
    if pattern.starts_with("11110i0")
        && (1..4).contains(&((word >> 26 & 1) << 3 | word >> 12 & 7))
        && word & 0xff == 0
    {
        return false;
    }
    let lsb = (word >> 12 & 7) << 2 | word >> 6 & 3;
    match pattern {
        "1111001100s0nnnn0iiiddddii0iiiii" | "1111001110s0nnnn0iiiddddii0iiiii" => {
            word >> 21 & 1 == 0 || lsb != 0
        }
        "111100110100nnnn0iiiddddii0iiiii" | "111100111100nnnn0iiiddddii0iiiii" => {
            lsb + (word & 31) < 32
        }
        "111100110110nnnn0iiiddddii0iiiii" | "11110011011011110iiiddddii0iiiii" => word & 31 >= lsb,
        _ if pattern.contains("tttt1iiiiiiiiiii") => indexed_form(word, registers),
        _ if pattern.contains("000000iimmmm") => of(b'n') != of(b'm'),
        _ => true,
    }
}

/// Whether P, U and W of an 8-bit offset are valid, and the base differs from the loaded register.
fn indexed_form(word: u32, registers: &[u32; 26]) -> bool {
    let (pre, up, writeback) = (word >> 10 & 1, word >> 9 & 1, word >> 8 & 1);
    let same = registers[usize::from(b'n' - b'a')] == registers[usize::from(b't' - b'a')];
    // There are no signed stores.
    let signed_store = word >> 24 & 1 == 1 && word >> 20 & 1 == 0;
    match (pre, up, writeback) {
        _ if signed_store => false,
        (1, 0, 0) => true,
        (1, 1, 0) | (0, _, 0) => false,
        _ => !same,
    }
}

/// MOVW and MOVT.
pub fn load_constant(register: u32, value: u32) -> Item {
    let half = |opcode: u32, value: u32| {
        [
            (opcode | (value >> 11 & 1) << 10 | value >> 12 & 0xf) as u16,
            ((value >> 8 & 7) << 12 | register << 8 | value & 0xff) as u16,
        ]
    };
    let mut item = half(0xf240, value & 0xffff).to_vec();
    item.extend(half(0xf2c0, value >> 16));
    item
}
