// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory images of random programs.

use crate::generate::{CODE, Item, load_constant};

const STACK: u32 = 0x2001_0000;

/// The memory image of a program.
pub struct Image {
    memory: Vec<u8>,
}

impl Image {
    /// Vectors, a handler that returns, the items, and SYS_EXIT.
    pub fn new(items: &[Item]) -> Self {
        let mut memory = vec![0; CODE as usize];
        let handler = 0x1000u32;
        for vector in 2..16 {
            memory[vector * 4..vector * 4 + 4].copy_from_slice(&(handler | 1).to_le_bytes());
        }
        memory[..4].copy_from_slice(&STACK.to_le_bytes());
        memory[4..8].copy_from_slice(&(CODE | 1).to_le_bytes());
        memory[handler as usize..handler as usize + 2].copy_from_slice(&0x4770u16.to_le_bytes());
        let exit = [load_constant(0, 0x18), load_constant(1, 0x2_0026), vec![0xbeab]];
        for half in items.iter().chain(&exit).flatten() {
            memory.extend(half.to_le_bytes());
        }
        // A load of a literal may reach 4 KiB beyond the last instruction.
        memory.extend([0; 0x1010]);
        Image { memory }
    }

    /// The image as an ELF file with one segment (System V ABI, chapter 4).
    pub fn elf(&self) -> Vec<u8> {
        let mut file = vec![0x7f, b'E', b'L', b'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let word = |file: &mut Vec<u8>, value: u32| file.extend(value.to_le_bytes());
        file.extend([2, 0, 40, 0]);
        for value in [1, CODE | 1, 52, 0, 0x0500_0200] {
            word(&mut file, value);
        }
        file.extend([52, 0, 32, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        let length = self.memory.len() as u32;
        for value in [1, 84, 0, 0, length, length, 7, 4] {
            word(&mut file, value);
        }
        file.extend(&self.memory);
        file
    }
}
