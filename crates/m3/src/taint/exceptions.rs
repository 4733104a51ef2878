// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Secrets in exception frames (DDI 0403E section B1.5.6): R0 to R3, R12, LR, return address, xPSR.

use super::labels::Label;
use super::{C, FAULTMASK, LeakKind, MONITOR, N, Q, Taint, V, Z};
use crate::core::{Core, Operation, Trap};

const STACKED: [u32; 6] = [0, 1, 2, 3, 12, 14];
const RETURN_ADDRESS: u32 = 24;
/// N, Z, C, V and Q are in the highest byte of xPSR.
const STACKED_FLAGS: u32 = 31;
const FRAME: u32 = 32;

impl Taint {
    /// Exception entry: the frame is on the stack that EXC_RETURN in LR selects.
    pub(super) fn entered(&mut self, core: &Core) {
        if std::mem::take(&mut self.current.chained) {
            return;
        }
        let registers = &core.registers;
        let process = registers.r[14] & 0xf == 0b1101;
        let frame = if process { registers.process_stack() } else { registers.main_stack() };
        if core.memory.code_changed {
            self.plans.clear();
        }
        self.shadow.set_each(frame, FRAME, Label::CLEAN);
        for (index, register) in (0u32..).zip(STACKED) {
            let label = self.first(1 << register);
            self.shadow.set_each(frame.wrapping_add(4 * index), 4, label);
        }
        let flags = [N, Z, C, V, Q].map(|flag| self.first(flag));
        let label = self.names.stack(flags);
        self.shadow.set_each(frame.wrapping_add(STACKED_FLAGS), 1, label);
        self.set(1 << 14 | MONITOR, Label::CLEAN);
        self.select_stack(core);
    }

    /// After a jump: if it is an exception return, records the address of the frame.
    pub(super) fn note_return(&mut self, core: &Core, operation: &Operation) {
        if let Trap::ExceptionReturn(value) = core.trap {
            self.current.process = value & 0xf == 0b1101;
            self.current.frame = self.frame_stack(core);
            self.current.returned_by = Some(operation.clone());
        }
    }

    fn frame_stack(&self, core: &Core) -> u32 {
        if self.current.process {
            core.registers.process_stack()
        } else {
            core.registers.main_stack()
        }
    }

    /// Exception return.
    pub(super) fn returned(&mut self, core: &Core) {
        let Some(operation) = self.current.returned_by.take() else { return };
        let frame = self.current.frame;
        self.set(FAULTMASK | MONITOR, Label::CLEAN);
        // Tail-chaining keeps the frame on the stack and the registers of the last handler
        // (DDI 0403E section B1.5.12).
        self.current.chained = core.registers.in_handler() && self.frame_stack(core) == frame;
        if self.current.chained {
            return self.set(1 << 14, Label::CLEAN);
        }
        for (index, register) in (0u32..).zip(STACKED) {
            let label = self.read(core, frame.wrapping_add(4 * index), 4);
            self.set(1 << register, self.names.plain(label));
        }
        let target = self.names.plain(self.read(core, frame.wrapping_add(RETURN_ADDRESS), 4));
        if target.is_secret() {
            self.leak(LeakKind::Target, &operation, target);
        }
        let flags = self.names.unstack(self.read(core, frame.wrapping_add(STACKED_FLAGS), 1));
        for (flag, label) in [N, Z, C, V, Q].into_iter().zip(flags) {
            self.set(flag, label);
        }
        self.select_stack(core);
    }
}
