// SPDX-License-Identifier: Apache-2.0 OR MIT
//! MRS, MSR and CPS (DDI 0403E section B5.2).

use super::{Core, Flow, Operation, Trap};
use crate::isa::{Instruction, SysM};

impl Core {
    pub(super) fn special(&mut self, operation: &Operation) -> Flow {
        match operation.instruction {
            Instruction::Mrs { rd, sysm } => {
                let value = self.read_special(sysm);
                self.write(rd, value)
            }
            Instruction::Msr { rn, sysm } => {
                let value = self.registers.get(rn);
                self.write_special(sysm, value);
                self.masks_changed(operation)
            }
            Instruction::ChangeState { disable, primask, faultmask } => {
                if self.registers.privileged() {
                    if primask {
                        self.registers.primask = disable;
                    }
                    // At HardFault's priority or above FAULTMASK cannot be set.
                    if faultmask && (!disable || self.execution_priority() > -1) {
                        self.registers.faultmask = disable;
                    }
                }
                self.masks_changed(operation)
            }
            _ => Flow::Next,
        }
    }

    fn masks_changed(&mut self, operation: &Operation) -> Flow {
        self.registers.r[15] = operation.next();
        self.trapped(Trap::Resynchronise)
    }

    fn read_special(&self, sysm: SysM) -> u32 {
        let registers = &self.registers;
        let privileged = registers.privileged();
        match sysm {
            // APSR and IPSR in any combination; EPSR reads as zero.
            0..=7 => {
                let status = if sysm & 4 == 0 { registers.xpsr() & 0xf800_0000 } else { 0 };
                status | if sysm & 1 == 1 { u32::from(registers.ipsr) } else { 0 }
            }
            8 if privileged => registers.main_stack(),
            9 if privileged => registers.process_stack(),
            16 if privileged => u32::from(registers.primask),
            17 | 18 if privileged => u32::from(registers.basepri),
            19 if privileged => u32::from(registers.faultmask),
            20 => u32::from(registers.process_stack) << 1 | u32::from(registers.unprivileged),
            _ => 0,
        }
    }

    fn write_special(&mut self, sysm: SysM, value: u32) {
        if sysm <= 3 {
            let status = self.registers.xpsr() & 0x07ff_ffff | value & 0xf800_0000;
            let it_state = self.registers.it_state;
            self.registers.set_xpsr(status);
            self.registers.it_state = it_state;
            return;
        }
        if !self.registers.privileged() {
            return;
        }
        let priority = value as u8 & self.system.priority_mask;
        match sysm {
            8 => self.registers.set_main_stack(value),
            9 => self.registers.set_process_stack(value),
            16 => self.registers.primask = value & 1 == 1,
            17 => self.registers.basepri = priority,
            18 if priority != 0
                && (priority < self.registers.basepri || self.registers.basepri == 0) =>
            {
                self.registers.basepri = priority;
            }
            19 if self.execution_priority() > -1 => self.registers.faultmask = value & 1 == 1,
            20 => {
                self.registers.unprivileged = value & 1 == 1;
                // Handler mode always uses the main stack.
                if !self.registers.in_handler() {
                    self.registers.select_stack(value & 2 != 0);
                }
            }
            _ => {}
        }
    }
}
