// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reports of leaks: the instruction, its source line, and the secret with the load that read it.

use std::fmt;

use serde::Serialize;

use super::{Leak, LeakKind, PoisonedBy, Secret, Taint};
use crate::core::Operation;
use crate::program::Program;
use crate::source::{Line, Source};

/// The location of an instruction in a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The instruction's address.
    pub address: u32,
    /// The instruction.
    pub instruction: String,
    /// Its function; empty without a symbol.
    pub function: String,
    /// Its address with symbol and offset.
    pub described: String,
    /// Its offset in its function; 0 without a symbol.
    pub offset: u32,
    /// File and line.
    pub line: Option<Line>,
}

/// A leak.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// How the secret leaks.
    pub kind: LeakKind,
    /// The leaking instruction.
    pub at: Place,
    /// Executions with a secret.
    pub count: u64,
    /// The instruction that loaded the secret into a register.
    pub loaded_by: Option<Place>,
    /// A description of the secret; empty if unknown.
    pub secret: String,
}

/// All leaks of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// By address.
    pub leaks: Vec<Row>,
    /// Instructions that sent secret bytes, by address.
    pub outputs: Vec<Row>,
}

impl Report {
    /// The report of an observer, with symbols and source lines of the program.
    pub fn new(taint: &Taint, program: &Program, source: &Source<'_>) -> Self {
        let rows = |found: &[Leak]| {
            let mut rows: Vec<Row> = found
                .iter()
                .map(|leak| {
                    let origin = taint.origin(leak);
                    Row {
                        kind: leak.kind,
                        at: place(&leak.operation, program, source),
                        count: leak.count,
                        loaded_by: origin
                            .loaded_by
                            .as_ref()
                            .map(|operation| place(operation, program, source)),
                        secret: taint
                            .secret(origin)
                            .map_or_else(String::new, |secret| describe(secret, program, source)),
                    }
                })
                .collect();
            rows.sort_by_key(|row| (row.at.address, row.kind));
            rows
        };
        Report { leaks: rows(taint.leaks()), outputs: rows(taint.outputs()) }
    }
}

fn place(operation: &Operation, program: &Program, source: &Source<'_>) -> Place {
    let address = operation.address;
    Place {
        address,
        instruction: operation.instruction.under(operation.condition).to_string(),
        function: program.symbol_at(address).map_or_else(String::new, |symbol| symbol.name.clone()),
        described: program.describe(address),
        offset: program.symbol_at(address).map_or(0, |symbol| address - symbol.address),
        line: source.line(address),
    }
}

fn describe(secret: &Secret, program: &Program, source: &Source<'_>) -> String {
    let by = match &secret.by {
        PoisonedBy::Name(name) => {
            return format!("{name} ({} bytes at {:#010x})", secret.bytes, secret.address);
        }
        PoisonedBy::Port(by) => *by,
    };
    let by = source.line(by).map_or_else(|| program.describe(by), |line| line.to_string());
    format!("{} bytes at {}, poisoned at {by}", secret.bytes, program.describe(secret.address))
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.described, self.instruction)?;
        match &self.line {
            Some(line) => write!(f, " ({line})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in self.leaks.iter().chain(&self.outputs) {
            let times =
                if row.count == 1 { "once".to_owned() } else { format!("{} times", row.count) };
            writeln!(f, "{:13} {}, {times}", row.kind.name(), row.at)?;
            if let Some(loaded_by) = &row.loaded_by {
                writeln!(f, "{:13} loaded by {loaded_by}", "")?;
            }
            if !row.secret.is_empty() {
                writeln!(f, "{:13} from {}", "", row.secret)?;
            }
        }
        Ok(())
    }
}
