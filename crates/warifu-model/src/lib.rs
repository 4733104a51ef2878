// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The vocabulary that both halves of the tally share: units, studies, cases, profiles.
//!
//! Nothing here opens a file, reads a clock or draws a random number. Text comes in as `&str`
//! with the name it should carry in errors; what comes out is runnable or is an [`Error`].

mod case;
mod error;
mod kind;
mod operation;
mod stage;
mod units;

pub use case::{
    Aead, Authentication, Case, CaseId, CertificateType, CipherSuite, CongestionControl, Group,
    Host, KeyShare, KeyStoreChoice, Link, Loss, Pattern, PatternKind, Protocol, Session, Stack,
    TlsVersion,
};
pub use error::Error;
pub use kind::Kind;
pub use operation::{Direction, HandshakeMessage, KeyStoreCall, Operation, Role, SystemCall};
pub use stage::{Metric, Stage};
pub use units::{BitsPerSecond, Nanos, Probability};
