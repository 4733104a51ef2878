// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Arithmetic that instructions share (DDI 0403E section A2.2.1), as pure functions.

use crate::isa::{ShiftKind, UnaryOp};

/// AddWithCarry: sum, carry, overflow.
#[inline]
pub fn add_with_carry(a: u32, b: u32, carry: bool) -> (u32, bool, bool) {
    let (partial, first) = a.overflowing_add(b);
    let (sum, second) = partial.overflowing_add(u32::from(carry));
    (sum, first | second, (!(a ^ b) & (a ^ sum)) >> 31 == 1)
}

/// Shift_C: the value shifted by 0 to 255 bits, and the carry out.
#[inline]
pub fn shift(value: u32, kind: ShiftKind, amount: u32, carry: bool) -> (u32, bool) {
    if amount == 0 {
        return (value, carry);
    }
    match kind {
        ShiftKind::Lsl => match amount {
            1..=31 => (value << amount, value >> (32 - amount) & 1 == 1),
            32 => (0, value & 1 == 1),
            _ => (0, false),
        },
        ShiftKind::Lsr => match amount {
            1..=31 => (value >> amount, value >> (amount - 1) & 1 == 1),
            32 => (0, value >> 31 == 1),
            _ => (0, false),
        },
        ShiftKind::Asr => {
            let sign = (value as i32) >> 31;
            if amount < 32 {
                (((value as i32) >> amount) as u32, value >> (amount - 1) & 1 == 1)
            } else {
                (sign as u32, sign != 0)
            }
        }
        ShiftKind::Ror => {
            let result = value.rotate_right(amount & 31);
            (result, result >> 31 == 1)
        }
        ShiftKind::Rrx => (u32::from(carry) << 31 | value >> 1, value & 1 == 1),
    }
}

/// Extension, reversal, and counting of leading zeros.
#[inline]
pub fn unary(op: UnaryOp, value: u32, rotate: u8) -> u32 {
    let rotated = value.rotate_right(u32::from(rotate));
    match op {
        UnaryOp::Sxtb => rotated as u8 as i8 as u32,
        UnaryOp::Sxth => rotated as u16 as i16 as u32,
        UnaryOp::Uxtb => rotated & 0xff,
        UnaryOp::Uxth => rotated & 0xffff,
        UnaryOp::Rev => value.swap_bytes(),
        UnaryOp::Rev16 => value.swap_bytes().rotate_left(16),
        UnaryOp::Revsh => (value as u16).swap_bytes() as i16 as u32,
        UnaryOp::Rbit => value.reverse_bits(),
        UnaryOp::Clz => value.leading_zeros(),
    }
}

/// Signed or unsigned saturation to a number of bits: the result, and whether it was saturated.
#[inline]
pub fn saturate(value: u32, signed: bool, bits: u8) -> (u32, bool) {
    let wide = i64::from(value as i32);
    let (least, most) = if signed {
        (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1)
    } else {
        (0, (1i64 << bits) - 1)
    };
    let result = wide.clamp(least, most);
    (result as u32, result != wide)
}

/// Division that rounds towards zero; division by zero gives zero (DDI 0403E section A7.7.128).
#[inline]
pub fn divide(n: u32, m: u32, signed: bool) -> u32 {
    if m == 0 {
        0
    } else if signed {
        (n as i32).wrapping_div(m as i32) as u32
    } else {
        n / m
    }
}
