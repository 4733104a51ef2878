// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The vocabulary that both halves of the tally share: units, studies, cases, profiles.
//!
//! Nothing here opens a file, reads a clock or draws a random number. Text comes in as `&str`
//! with the name it should carry in errors; what comes out is runnable or is an [`Error`].

mod case;
mod certificates;
mod columns;
mod convolution;
mod decimal;
mod distribution;
mod error;
mod evidence;
mod keyword;
mod kind;
mod metric;
mod nearest;
mod operation;
mod primitive;
mod profile;
mod quantities;
mod reader;
mod stage;
mod study;
mod units;

pub use case::{
    Aead, Authentication, Case, CaseId, CertificateType, CipherSuite, Coap, CoapMessageType,
    CongestionControl, Dds, DdsAead, DdsCrypto, DdsMiddleware, DdsProtection, Group, Host, Https,
    KeyShare, KeyStoreChoice, LONGEST_BODY, Layer, Link, Loss, Pattern, PatternKind, Protocol, Psk,
    PskMode, Server, Session, Stack, Tcp, Tls, TlsVersion,
};
pub use certificates::lab_certificate_bytes;
pub use columns::{CaseColumn, ColumnType, Value, case_columns};
pub use distribution::{Distribution, Tail};
pub use error::Error;
pub use evidence::{Evidence, Method};
pub use keyword::Keyword;
pub use kind::Kind;
pub use metric::{Counter, Definition, Mark, Metric, Quantity, Scope};
pub use nearest::nearest;
pub use operation::{
    CoapMessage, DdsMessage, Direction, HandshakeMessage, KeyStoreCall, Operation, Role, SystemCall,
};
pub use primitive::{Cipher, HashAlgorithm, KeySetUp, Primitive, SignatureAlgorithm};
pub use profile::{
    AcceleratorProfile, Band, BandOf, CalibrationCase, Catalog, CipherCost, Code, Cost, CostSource,
    CostUse, Costs, DeviceProfile, FigureOf, Hertz, Input, KernelRelease, KeyStoreProfile,
    LinkProfile, Lowered, LoweredPart, Machine, ProfileKind, RecipeProfile, Shown, Sleep, Span,
    Speed, StandIn, TcpProfile, Terms, Throttle, cost_choices, emulation_inputs, every_choice,
    inputs, inputs_where,
};
pub use stage::Stage;
pub use study::{COMMAND_LINE, MOST_CASES, Operator, Requirement, Statistic, Study};
pub use units::{BitsPerSecond, ByteCount, Nanos, Probability, UnitError};
