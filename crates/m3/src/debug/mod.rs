// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A debugger's side of a run: gdb's remote protocol, bytes in and bytes out. Whoever has the
//! connection hands over what arrives ([`Debugger::receive`]), lets the program run in slices
//! ([`Debugger::run`]), and sends what there is to send ([`Debugger::take_output`]).
//!
//! The order of calls: [`Debugger::connected`] when a client connects, [`Debugger::disconnected`]
//! when it is gone without a word. In between, [`Debugger::run`] while [`State::Running`] or
//! [`State::Alone`].

mod control;
mod framing;
mod registers;
mod target;

use std::convert::Infallible;

use gdbstub::common::Signal;
use gdbstub::conn::Connection;
use gdbstub::stub::state_machine::GdbStubStateMachine;
use gdbstub::stub::{DisconnectReason, GdbStub, GdbStubError, SingleThreadStopReason};

pub use control::MAX_POINTS;
use control::{BreakKind, Paused};
use framing::{Framing, TooLong};
use target::Debugged;

use crate::core::Fault;
use crate::machine::Limits;
use crate::session::Session;
use crate::stop::Stop;

/// Bytes of a packet at most, as gdb is told.
pub const PACKET_BYTES: usize = 0x4000;

/// What the run is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It waits for the debugger, or for one to connect.
    Halted,
    /// It runs until the debugger stops it.
    Running,
    /// The debugger has left it running.
    Alone,
    /// It is over.
    Ended(Stop),
}

/// A program under a debugger; at first it is halted at reset.
pub struct Debugger {
    target: Debugged,
    limits: Limits,
    state: State,
    stub: Option<Stub>,
    framing: Framing,
    output: Vec<u8>,
    problem: Option<String>,
    /// Whether the client waits for an answer if the last packet killed the program: `vKill` has
    /// one, of which the library knows only in extended mode, and `k` has none.
    is_kill_answered: bool,
}

type Stub = GdbStubStateMachine<'static, Debugged, Sent>;
type Moved = Result<Stub, GdbStubError<Infallible, Infallible>>;

impl Debugger {
    /// A program that waits for a debugger; `max_instructions` stops it.
    pub fn new(session: Session, max_instructions: u64) -> Self {
        Debugger {
            target: Debugged::new(session),
            limits: Limits { instructions: max_instructions },
            state: State::Halted,
            stub: None,
            framing: Framing::default(),
            output: Vec::new(),
            problem: None,
            is_kill_answered: false,
        }
    }

    /// The program and its chip.
    pub fn session(&self) -> &Session {
        &self.target.session
    }

    /// The same, to change.
    pub fn session_mut(&mut self) -> &mut Session {
        &mut self.target.session
    }

    /// What the run is doing.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Whether the protocol is intact: after a malformed packet the connection must be closed.
    pub fn is_connected(&self) -> bool {
        self.stub.is_some()
    }

    /// What was wrong with the client's packets, once.
    pub fn take_problem(&mut self) -> Option<String> {
        self.problem.take()
    }

    /// Bytes for the client.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// A client has connected: the program is halted.
    pub fn connected(&mut self) {
        self.output.clear();
        self.framing = Framing::default();
        let stub = GdbStub::builder(Sent::default()).packet_buffer_size(PACKET_BYTES).build();
        // Building fails for a buffer of the caller's, starting for targets without breakpoints.
        self.stub = stub.ok().and_then(|stub| stub.run_state_machine(&mut self.target).ok());
    }

    /// The client is gone without a word: the program halts, breakpoints are removed.
    pub fn disconnected(&mut self) {
        self.stub = None;
        self.output.clear();
        self.target.control.clear();
        if self.state == State::Running {
            self.state = State::Halted;
        }
    }

    /// Takes bytes from the client.
    pub fn receive(&mut self, bytes: &[u8]) {
        if !self.is_connected() {
            return;
        }
        for byte in bytes {
            match self.framing.take(*byte) {
                Ok(ready) => {
                    self.is_kill_answered = ready.starts_with(b"$vKill");
                    ready.into_iter().for_each(|byte| self.receive_byte(byte));
                }
                Err(TooLong) => {
                    let problem = format!("a packet of more than {PACKET_BYTES} bytes");
                    return self.fail(problem);
                }
            }
        }
    }

    /// Runs for a number of instructions at most, or until something stops it.
    pub fn run(&mut self, instructions: u64) {
        let machine = &mut self.target.session.machine;
        machine.pause_at = machine.instructions.saturating_add(instructions);
        let stop = match self.state {
            State::Running => machine.run_observed(self.limits, &mut self.target.control),
            State::Alone => machine.run(self.limits),
            State::Halted | State::Ended(_) => return,
        };
        match stop {
            Stop::Paused => {
                let at = self.target.session.machine.core.registers.pc();
                if let Some(paused) = self.target.control.paused(at).filter(|_| self.is_watched()) {
                    self.report(reason_of_pause(paused));
                }
            }
            Stop::Exit { code } => {
                self.report(SingleThreadStopReason::Exited(exit_code(code)));
                self.state = State::Ended(stop);
            }
            _ if self.state == State::Alone => self.state = State::Ended(stop),
            stop => {
                let line = format!("{}\n", self.target.session.describe(&stop));
                self.output.extend(framing::console(&line));
                let signal = signal(&stop);
                self.target.stopped = Some(stop);
                self.report(SingleThreadStopReason::Signal(signal));
            }
        }
    }

    fn is_watched(&self) -> bool {
        self.state == State::Running
    }

    fn receive_byte(&mut self, byte: u8) {
        let Some(stub) = self.stub.take() else { return };
        let target = &mut self.target;
        let moved = match stub {
            GdbStubStateMachine::Idle(stub) => stub.incoming_data(target, byte),
            GdbStubStateMachine::Running(stub) => stub.incoming_data(target, byte),
            other => Ok(other),
        };
        self.settle(moved);
    }

    fn report(&mut self, reason: SingleThreadStopReason<u32>) {
        let Some(stub) = self.stub.take() else { return };
        let moved = match stub {
            GdbStubStateMachine::Running(stub) => stub.report_stop(&mut self.target, reason),
            other => Ok(other),
        };
        self.settle(moved);
    }

    /// Takes over where the protocol is now.
    fn settle(&mut self, moved: Moved) {
        let stub = match moved {
            Ok(GdbStubStateMachine::CtrlCInterrupt(stub)) => {
                // One that arrives while the program is halted has nothing to interrupt.
                let reason = SingleThreadStopReason::Signal(Signal::SIGINT);
                let reason = (self.state == State::Running).then_some(reason);
                return match stub.interrupt_handled(&mut self.target, reason) {
                    Ok(stub) => self.keep(stub),
                    Err(error) => self.fail(error.to_string()),
                };
            }
            Ok(stub) => stub,
            Err(error) => return self.fail(error.to_string()),
        };
        self.keep(stub);
    }

    fn keep(&mut self, mut stub: Stub) {
        let sent = match &mut stub {
            GdbStubStateMachine::Idle(stub) => stub.borrow_conn(),
            GdbStubStateMachine::Running(stub) => stub.borrow_conn(),
            GdbStubStateMachine::CtrlCInterrupt(stub) => stub.borrow_conn(),
            GdbStubStateMachine::Disconnected(stub) => stub.borrow_conn(),
        };
        self.output.append(&mut sent.0);
        match &stub {
            GdbStubStateMachine::Running(_) => self.state = State::Running,
            GdbStubStateMachine::Disconnected(stub) => return self.left(stub.get_reason()),
            _ => self.state = State::Halted,
        }
        self.stub = Some(stub);
    }

    fn left(&mut self, reason: DisconnectReason) {
        match reason {
            DisconnectReason::Kill => {
                if self.is_kill_answered {
                    self.output.extend(framing::packet_of(b"OK"));
                }
                self.state = State::Ended(Stop::Killed);
            }
            DisconnectReason::Disconnect => {
                self.target.control.clear();
                self.finish_block();
            }
            // The caller says how it ended.
            DisconnectReason::TargetExited(_) | DisconnectReason::TargetTerminated(_) => {}
        }
    }

    /// Runs to the end of a decoded block, inside which only this observer can continue, and leaves
    /// the program alone.
    fn finish_block(&mut self) {
        self.state = State::Alone;
        self.target.control.resume(control::Until::Stopped);
        let machine = &mut self.target.session.machine;
        machine.pause_at = machine.instructions.saturating_add(1);
        let stop = machine.run_observed(self.limits, &mut self.target.control);
        if stop != Stop::Paused {
            self.state = State::Ended(stop);
        }
    }

    fn fail(&mut self, problem: String) {
        self.problem = Some(problem);
        self.disconnected();
    }
}

/// What a fault is called where there are signals.
fn signal(stop: &Stop) -> Signal {
    match stop {
        Stop::Fault { fault, .. } => match fault {
            Fault::Undefined | Fault::Coprocessor | Fault::InvalidState { .. } => Signal::SIGILL,
            Fault::DivideByZero => Signal::SIGFPE,
            Fault::Unaligned { .. } => Signal::SIGBUS,
            _ => Signal::SIGSEGV,
        },
        Stop::StackOverflow { .. } => Signal::SIGSEGV,
        Stop::ExceptionEntry { .. } | Stop::Lockup { .. } => Signal::SIGABRT,
        Stop::InstructionLimit { .. } => Signal::SIGXCPU,
        Stop::UnknownSemihosting { .. } => Signal::SIGSYS,
        _ => Signal::SIGTRAP,
    }
}

/// The low byte, as with exit(), but never 0 for a failure.
fn exit_code(code: u32) -> u8 {
    let low = code as u8;
    if code != 0 { low.max(u8::from(low == 0)) } else { 0 }
}

fn reason_of_pause(paused: Paused) -> SingleThreadStopReason<u32> {
    match paused {
        Paused::Breakpoint(BreakKind::Software) => SingleThreadStopReason::SwBreak(()),
        Paused::Breakpoint(BreakKind::Hardware) => SingleThreadStopReason::HwBreak(()),
        Paused::Watchpoint(kind, addr) => SingleThreadStopReason::Watch { tid: (), kind, addr },
        Paused::Stepped => SingleThreadStopReason::DoneStep,
    }
}

/// What the protocol sends, kept until it is asked for.
#[derive(Debug, Default)]
struct Sent(Vec<u8>);

impl Connection for Sent {
    type Error = Infallible;

    fn write(&mut self, byte: u8) -> Result<(), Infallible> {
        self.0.push(byte);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}
