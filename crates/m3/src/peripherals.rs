// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Peripherals as far as start-up code needs them: registers that keep what is written, read as a
//! value, or have ready bits that follow their enable bits; and UARTs whose output is the console.

use std::collections::{BTreeMap, HashMap};

use crate::isa::Width;

/// A block of registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peripheral {
    /// Its name in messages.
    pub name: String,
    /// Its first address, a multiple of 4.
    pub base: u32,
    /// Its length in bytes, a multiple of 4.
    pub bytes: u32,
    /// What its registers hold at reset, except those of `registers`.
    pub reads: u32,
    /// Whether they keep what is written; otherwise writes have no effect.
    pub keeps: bool,
    /// Registers that differ, by offset.
    pub registers: BTreeMap<u32, Register>,
}

/// A register of a [`Peripheral`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Register {
    /// What it holds at reset.
    pub reads: u32,
    /// Whether it keeps what is written.
    pub keeps: bool,
    /// Pairs of bits: the first one reads as the second one is, as a ready bit does whose enable
    /// bit was set.
    pub follows: Vec<(u8, u8)>,
}

/// A UART whose output is the program's console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uart {
    /// Its name in messages.
    pub name: String,
    /// Its first address.
    pub base: u32,
    /// Its registers.
    pub kind: UartKind,
}

/// A kind of UART.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UartKind {
    /// Arm's CMSDK APB UART (DDI 0479D section 4.3): 8-bit data at 0, state at 4, control at 8.
    CmsdkApb,
}

impl UartKind {
    /// The bytes of its registers.
    pub const fn bytes(self) -> u32 {
        match self {
            UartKind::CmsdkApb => 0x1000,
        }
    }
}

/// All peripherals of a chip.
#[derive(Debug, Default)]
pub struct Peripherals {
    blocks: Vec<Block>,
    uarts: Vec<(Uart, [u32; 5])>,
    /// What UARTs sent and nobody has taken yet.
    pub sent: Vec<u8>,
}

#[derive(Debug)]
struct Block {
    is: Peripheral,
    /// Registers that were written, by offset.
    written: HashMap<u32, u32>,
}

/// Registers of the CMSDK APB UART.
const DATA: u32 = 0;
const STATE: u32 = 4;
const CONTROL: u32 = 8;
const INTERRUPTS: u32 = 12;
const BAUD_RATE: u32 = 16;
/// TX enable in CONTROL.
const TRANSMITS: u32 = 1;

impl Peripherals {
    /// Peripherals after reset.
    pub fn new(blocks: &[Peripheral], uarts: &[Uart]) -> Self {
        let block = |is: &Peripheral| Block { is: is.clone(), written: HashMap::new() };
        Peripherals {
            blocks: blocks.iter().map(block).collect(),
            uarts: uarts.iter().map(|uart| (uart.clone(), [0; 5])).collect(),
            sent: Vec::new(),
        }
    }

    /// All of them as they are after reset.
    pub fn reset(&mut self) {
        self.blocks.iter_mut().for_each(|block| block.written.clear());
        self.uarts.iter_mut().for_each(|(_, registers)| *registers = [0; 5]);
    }

    /// First address and length in bytes of each.
    pub fn extents(&self) -> impl Iterator<Item = (u32, u32)> {
        let blocks = self.blocks.iter().map(|block| (block.is.base, block.is.bytes));
        blocks.chain(self.uarts.iter().map(|(uart, _)| (uart.base, uart.kind.bytes())))
    }

    /// Whether an address is a peripheral's.
    pub fn holds(&self, at: u32) -> bool {
        self.block(at).is_some() || self.uart(at).is_some()
    }

    /// Whether a store to an address sends a byte to the console.
    pub fn sends(&self, at: u32) -> bool {
        self.uart(at).is_some_and(|index| {
            let (uart, registers) = &self.uarts[index];
            (at - uart.base) & !3 == DATA && registers[(CONTROL / 4) as usize] & TRANSMITS != 0
        })
    }

    /// A load; `None` where there is no peripheral. Narrow loads take their part of the word.
    pub fn read(&self, at: u32) -> Option<u32> {
        let word = match self.uart(at) {
            Some(index) => self.read_uart(index, at & !3),
            None => self.blocks[self.block(at)?].read(at & !3),
        };
        Some(word >> (8 * (at & 3)))
    }

    /// A store; false where there is no peripheral. Narrow stores change their part of the word.
    pub fn write(&mut self, width: Width, at: u32, value: u32) -> bool {
        if let Some(index) = self.uart(at) {
            self.write_uart(index, at & !3, value);
            return true;
        }
        let Some(index) = self.block(at) else { return false };
        let mask = match width.bytes() {
            4 => u32::MAX,
            2 => 0xffff,
            _ => 0xff,
        };
        let shift = 8 * (at & 3);
        self.blocks[index].write(at & !3, value << shift, mask << shift);
        true
    }

    fn block(&self, at: u32) -> Option<usize> {
        self.blocks.iter().position(|block| at.wrapping_sub(block.is.base) < block.is.bytes)
    }

    fn uart(&self, at: u32) -> Option<usize> {
        self.uarts.iter().position(|(uart, _)| at.wrapping_sub(uart.base) < uart.kind.bytes())
    }

    /// The transmitter is always ready, and nothing is received.
    fn read_uart(&self, index: usize, at: u32) -> u32 {
        let (uart, registers) = &self.uarts[index];
        match at - uart.base {
            offset @ (CONTROL | BAUD_RATE) => registers[(offset / 4) as usize],
            _ => 0,
        }
    }

    fn write_uart(&mut self, index: usize, at: u32, value: u32) {
        let sends = self.sends(at);
        let (uart, registers) = &mut self.uarts[index];
        match at - uart.base {
            DATA if sends => self.sent.push(value as u8),
            offset @ (CONTROL | BAUD_RATE) => registers[(offset / 4) as usize] = value,
            // A byte sent before the transmitter was enabled is lost, as on the chip.
            DATA | STATE | INTERRUPTS => {}
            _ => {}
        }
    }
}

impl Block {
    fn read(&self, at: u32) -> u32 {
        let held = self.held(at - self.is.base);
        let follows = self.is.registers.get(&(at - self.is.base)).map(|one| &one.follows[..]);
        follows.unwrap_or_default().iter().fold(held, |word, (ready, enable)| {
            word & !(1 << ready) | (held >> enable & 1) << ready
        })
    }

    fn held(&self, offset: u32) -> u32 {
        let reset = self.is.registers.get(&offset).map_or(self.is.reads, |one| one.reads);
        self.written.get(&offset).copied().unwrap_or(reset)
    }

    fn write(&mut self, at: u32, value: u32, mask: u32) {
        let offset = at - self.is.base;
        if self.is.registers.get(&offset).map_or(self.is.keeps, |one| one.keeps) {
            let new = self.held(offset) & !mask | value & mask;
            self.written.insert(offset, new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> Peripherals {
        let control = Register { reads: 0x83, keeps: true, follows: vec![(17, 16), (25, 24)] };
        let fixed = Register { reads: 5, keeps: false, follows: vec![] };
        let registers = BTreeMap::from([(0, control), (4, fixed)]);
        let name = "rcc".to_owned();
        let base = 0x4002_1000;
        let block = Peripheral { name, base, bytes: 0x400, reads: 7, keeps: false, registers };
        let uart = Uart { name: "uart0".into(), base: 0x4000_4000, kind: UartKind::CmsdkApb };
        Peripherals::new(&[block], &[uart])
    }

    #[test]
    fn ready_bit_follows_its_enable_bit() {
        let mut clock = clock();
        assert_eq!(clock.read(0x4002_1000), Some(0x83));
        assert!(clock.write(Width::Word, 0x4002_1000, 0x0101_0083));
        assert_eq!(clock.read(0x4002_1000), Some(0x0303_0083));
        // A ready bit cannot be written, and goes with its enable bit.
        assert!(clock.write(Width::Word, 0x4002_1000, 0x0200_0083));
        assert_eq!(clock.read(0x4002_1000), Some(0x83));
    }

    #[test]
    fn registers_keep_or_ignore_what_is_written() {
        let mut clock = clock();
        for (at, written, read) in [(0x4002_1004, 1, 5), (0x4002_1008, 1, 7)] {
            assert!(clock.write(Width::Word, at, written));
            assert_eq!(clock.read(at), Some(read));
        }
        assert!(clock.write(Width::Byte, 0x4002_1001, 0xab));
        assert_eq!(clock.read(0x4002_1000), Some(0xab83));
        assert_eq!(clock.read(0x4002_1001).map(|word| word & 0xff), Some(0xab));
        assert!(clock.holds(0x4002_13ff) && !clock.holds(0x4002_1400));
        assert_eq!(clock.read(0x4002_1400), None);
        assert!(!clock.write(Width::Word, 0x4002_0fff, 0));
    }

    #[test]
    fn uart_sends_once_its_transmitter_is_enabled() {
        let mut uart = clock();
        assert!(uart.write(Width::Word, 0x4000_4000, b'a'.into()));
        assert!(uart.sent.is_empty());
        assert!(uart.write(Width::Word, 0x4000_4008, TRANSMITS));
        assert!(uart.sends(0x4000_4000) && !uart.sends(0x4000_4004));
        assert!(uart.write(Width::Byte, 0x4000_4000, b'b'.into()));
        assert_eq!(uart.sent, b"b");
        assert_eq!(uart.read(0x4000_4004), Some(0), "neither full nor received");
        assert_eq!(uart.read(0x4000_4008), Some(TRANSMITS));
    }
}
