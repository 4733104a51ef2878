// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A case as the columns of a results table.
//!
//! Each layer of a case lists its own columns; the lists one after the other are the registry, from
//! which [`Case::columns`] and the schema of results both come. It is closed, so that the results
//! of all studies can be joined: a case whose layer lacks a setting has null there.

use crate::case::{Case, Coap, CoapMessageType, Dds, DdsCrypto, Loss};
use crate::keyword::Keyword;
use crate::quantities::show_jitter;
use crate::units::Nanos;

/// A value of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A name or a word.
    Text(String),
    /// A flag.
    Bool(bool),
    /// A small count or size.
    U16(u16),
    /// A count or size.
    U32(u32),
    /// A time or a rate.
    U64(u64),
    /// A probability or a mean.
    F64(f64),
}

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Text from a short list.
    Text,
    /// A flag.
    Bool,
    /// An unsigned integer of 16 bits.
    U16,
    /// An unsigned integer of 32 bits.
    U32,
    /// An unsigned integer of 64 bits.
    U64,
    /// A double.
    F64,
}

/// A column of the registry.
#[derive(Clone, Copy, Debug)]
pub struct CaseColumn {
    /// Its name in results.
    pub name: &'static str,
    /// The type of its values.
    pub column_type: ColumnType,
    /// The unit of its values: `ns`, `B`, `bit/s`; `1` for counts and shares, empty for the rest.
    pub unit: &'static str,
    value: fn(&Case) -> Option<Value>,
}

impl CaseColumn {
    /// The value of a case, which has the column's type; `None` where nothing applies.
    pub fn value(&self, case: &Case) -> Option<Value> {
        (self.value)(case)
    }
}

/// All columns of a case in their order, layer by layer.
pub fn case_columns() -> impl Iterator<Item = &'static CaseColumn> + Clone {
    const LAYERS: [&[CaseColumn]; 9] =
        [PARTIES, LINK, LOSS, PROTOCOL, SECURITY, TCP, COAP, DDS, PATTERN];
    LAYERS.iter().copied().flatten()
}

impl Case {
    /// The values of [`case_columns`], in their order; `None` where nothing applies: an unlimited
    /// rate, an absent server name, a setting of a layer that the case does not have.
    pub fn columns(&self) -> Vec<Option<Value>> {
        case_columns().map(|column| column.value(self)).collect()
    }
}

impl Value {
    /// Its type.
    pub const fn column_type(&self) -> ColumnType {
        match self {
            Value::Text(_) => ColumnType::Text,
            Value::Bool(_) => ColumnType::Bool,
            Value::U16(_) => ColumnType::U16,
            Value::U32(_) => ColumnType::U32,
            Value::U64(_) => ColumnType::U64,
            Value::F64(_) => ColumnType::F64,
        }
    }
}

const PARTIES: &[CaseColumn] = &[
    text("device", |case| name(&case.device.profile)),
    text("server", |case| name(&case.server.profile)),
    number("server_workers", ColumnType::U32, "1", |case| Some(Value::U32(case.server.workers))),
    // Without security there is no key to keep.
    text("key_store", |case| case.stack.tls().and_then(|_| name(&case.key_store.profile))),
    flag("session_open", |case| case.stack.tls().map(|_| Value::Bool(case.key_store.session_open))),
];

const LINK: &[CaseColumn] = &[
    text("link", |case| name(&case.link.profile)),
    number("rtt_ns", ColumnType::U64, "ns", |case| Some(Value::U64(case.link.rtt.0))),
    text("jitter", |case| {
        (!case.link.jitter.is_empty()).then(|| Value::Text(show_jitter(&case.link.jitter)))
    }),
    number("jitter_mean_ns", ColumnType::F64, "ns", |case| {
        mean_of_quantiles(&case.link.jitter).map(Value::F64)
    }),
    number("jitter_max_ns", ColumnType::U64, "ns", |case| {
        case.link.jitter.last().map(|jitter| Value::U64(jitter.0))
    }),
    flag("keep_order", |case| Some(Value::Bool(case.link.keep_order))),
    number("rate_up_bps", ColumnType::U64, "bit/s", |case| {
        case.link.rate_up.map(|rate| Value::U64(rate.0))
    }),
    number("rate_down_bps", ColumnType::U64, "bit/s", |case| {
        case.link.rate_down.map(|rate| Value::U64(rate.0))
    }),
    number("queue_packets", ColumnType::U32, "1", |case| Some(Value::U32(case.link.queue_packets))),
    number("mtu", ColumnType::U16, "B", |case| Some(Value::U16(case.link.mtu))),
];

/// `loss_mean` is the share of packets lost in the long run, whatever the model; the other numbers
/// are the model's own parameters.
const LOSS: &[CaseColumn] = &[
    text("loss_model", |case| {
        name(match case.link.loss {
            Loss::None => "none",
            Loss::Independent { .. } => "independent",
            Loss::GilbertElliott { .. } => "gilbert_elliott",
        })
    }),
    number("loss_mean", ColumnType::F64, "1", |case| Some(Value::F64(case.link.loss.mean().0))),
    number("loss_probability", ColumnType::F64, "1", |case| match case.link.loss {
        Loss::Independent { probability } => Some(Value::F64(probability.0)),
        _ => None,
    }),
    number("loss_good_to_bad", ColumnType::F64, "1", |case| match case.link.loss {
        Loss::GilbertElliott { good_to_bad, .. } => Some(Value::F64(good_to_bad.0)),
        _ => None,
    }),
    number("loss_bad_to_good", ColumnType::F64, "1", |case| match case.link.loss {
        Loss::GilbertElliott { bad_to_good, .. } => Some(Value::F64(bad_to_good.0)),
        _ => None,
    }),
    number("loss_good", ColumnType::F64, "1", |case| match case.link.loss {
        Loss::GilbertElliott { loss_good, .. } => Some(Value::F64(loss_good.0)),
        _ => None,
    }),
    number("loss_bad", ColumnType::F64, "1", |case| match case.link.loss {
        Loss::GilbertElliott { loss_bad, .. } => Some(Value::F64(loss_bad.0)),
        _ => None,
    }),
];

const PROTOCOL: &[CaseColumn] = &[text("protocol", |case| name(case.stack.protocol().name()))];

/// Of TLS; a protocol without it has null in all of them.
const SECURITY: &[CaseColumn] = &[
    text("tls", |case| name(case.stack.tls()?.version.name())),
    text("session", |case| name(case.stack.tls()?.session.name())),
    text("authentication", |case| name(case.stack.tls()?.authentication.name())),
    text("group", |case| name(case.stack.tls()?.group.name())),
    text("certificate", |case| name(case.stack.tls()?.certificate.name())),
    number("chain_length", ColumnType::U16, "1", |case| {
        Some(Value::U16(case.stack.tls()?.chain_length.into()))
    }),
    text("cipher_suite", |case| name(case.stack.tls()?.cipher_suite.name())),
    text("key_share", |case| name(case.stack.tls()?.key_share.name())),
    text("server_name", |case| case.stack.tls()?.server_name.clone().map(Value::Text)),
    text("psk_mode", |case| name(case.stack.tls()?.psk?.mode.name())),
    number("psk_identity_bytes", ColumnType::U16, "B", |case| {
        Some(Value::U16(case.stack.tls()?.psk?.identity_bytes))
    }),
];

/// Of TCP; a protocol over another transport has null in all of them.
const TCP: &[CaseColumn] = &[
    text("device_tcp", |case| name(&case.stack.tcp()?.device)),
    text("server_tcp", |case| name(&case.stack.tcp()?.server)),
    text("congestion_control", |case| name(case.stack.tcp()?.congestion_control.name())),
    number("initcwnd", ColumnType::U16, "1", |case| {
        Some(Value::U16(case.stack.tcp()?.initcwnd.into()))
    }),
    flag("nagle", |case| Some(Value::Bool(case.stack.tcp()?.nagle))),
];

/// Of CoAP.
const COAP: &[CaseColumn] = &[
    text("coap_type", |case| name(case.stack.coap()?.message_type.name())),
    number("ack_timeout_ns", ColumnType::U64, "ns", |case| {
        Some(Value::U64(retransmission(case)?.ack_timeout.0))
    }),
    number("ack_random_factor", ColumnType::F64, "1", |case| {
        let percent = retransmission(case)?.ack_random_factor_percent;
        Some(Value::F64(f64::from(percent) / 100.0))
    }),
    number("max_retransmit", ColumnType::U16, "1", |case| {
        Some(Value::U16(retransmission(case)?.max_retransmit.into()))
    }),
];

/// The parameters of confirmable messages; of others nothing is sent again.
fn retransmission(case: &Case) -> Option<&Coap> {
    case.stack.coap().filter(|coap| coap.message_type == CoapMessageType::Confirmable)
}

/// Of DDS; without security it has the first two alone.
const DDS: &[CaseColumn] = &[
    text("dds_middleware", |case| name(case.stack.dds()?.middleware.name())),
    text("dds_crypto", |case| name(case.stack.dds()?.crypto.name())),
    text("dds_aead", |case| name(secured(case)?.aead.name())),
    text("data_protection", |case| name(secured(case)?.data_protection.name())),
    text("metadata_protection", |case| name(secured(case)?.metadata_protection.name())),
    text("rtps_protection", |case| name(secured(case)?.rtps_protection.name())),
    text("discovery_protection", |case| name(secured(case)?.discovery_protection.name())),
];

fn secured(case: &Case) -> Option<&Dds> {
    case.stack.dds().filter(|dds| dds.crypto != DdsCrypto::None)
}

const PATTERN: &[CaseColumn] = &[
    text("pattern", |case| name(case.pattern.kind.name())),
    text("path", |case| name(&case.pattern.path)),
    number("response_body", ColumnType::U32, "B", |case| {
        Some(Value::U32(case.pattern.response_body))
    }),
    number("request_body", ColumnType::U32, "B", |case| {
        Some(Value::U32(case.pattern.request_body))
    }),
    number("concurrent", ColumnType::U32, "1", |case| Some(Value::U32(case.pattern.concurrent))),
    number("sample_rate", ColumnType::U32, "1/s", |case| Some(Value::U32(case.pattern.rate?))),
];

const fn text(name: &'static str, value: fn(&Case) -> Option<Value>) -> CaseColumn {
    CaseColumn { name, column_type: ColumnType::Text, unit: "", value }
}

const fn flag(name: &'static str, value: fn(&Case) -> Option<Value>) -> CaseColumn {
    CaseColumn { name, column_type: ColumnType::Bool, unit: "", value }
}

const fn number(
    name: &'static str,
    column_type: ColumnType,
    unit: &'static str,
    value: fn(&Case) -> Option<Value>,
) -> CaseColumn {
    CaseColumn { name, column_type, unit, value }
}

fn name(name: &str) -> Option<Value> {
    Some(Value::Text(name.to_owned()))
}

/// The mean of evenly spaced quantiles with straight lines between; `None` of none.
fn mean_of_quantiles(quantiles: &[Nanos]) -> Option<f64> {
    let (first, last) = (quantiles.first()?.0 as f64, quantiles.last()?.0 as f64);
    let sum: f64 = quantiles.iter().map(|quantile| quantile.0 as f64).sum();
    Some(match quantiles.len() {
        1 => first,
        count => (sum - (first + last) / 2.0) / (count - 1) as f64,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::case::tests::{any_case, any_tls, https};
    use crate::case::{DdsAead, DdsMiddleware, DdsProtection, Psk, PskMode, Stack, Tls};
    use crate::units::Probability;

    fn value(case: &Case, name: &str) -> Option<Value> {
        case_columns().find(|column| column.name == name).unwrap().value(case)
    }

    #[test]
    fn column_names_are_unique() {
        let mut names = HashSet::new();
        assert!(case_columns().all(|column| names.insert(column.name)));
    }

    #[test]
    fn values_have_the_type_of_their_column() {
        let mut bursts = any_case();
        let some = Probability(0.25);
        bursts.link.loss = Loss::GilbertElliott {
            good_to_bad: some,
            bad_to_good: some,
            loss_good: some,
            loss_bad: some,
        };
        bursts.link.jitter = vec![Nanos(1), Nanos(2)];
        let psk = Some(Psk { mode: PskMode::PskKe, identity_bytes: 16 });
        bursts.stack = https(Tls { server_name: Some("example.org".into()), psk, ..any_tls() });
        let mut other = any_case();
        other.stack = Stack::Coap(Coap {
            message_type: CoapMessageType::Confirmable,
            ack_timeout: Nanos(1),
            ack_random_factor_percent: 150,
            max_retransmit: 4,
        });
        let mut secured = any_case();
        secured.stack = Stack::Dds(Dds {
            crypto: DdsCrypto::Warifu,
            aead: DdsAead::Aegis256,
            data_protection: DdsProtection::Encrypt,
            metadata_protection: DdsProtection::SignWithOriginAuthentication,
            rtps_protection: DdsProtection::Sign,
            discovery_protection: DdsProtection::None,
            middleware: DdsMiddleware::CycloneDds,
        });
        secured.pattern.rate = Some(100);
        let mut seen = HashSet::new();
        for case in [any_case(), bursts, other, secured] {
            for (column, value) in case_columns().zip(case.columns()) {
                let Some(value) = value else { continue };
                assert_eq!(value.column_type(), column.column_type, "{}", column.name);
                seen.insert(column.name);
            }
        }
        let missing: Vec<_> =
            case_columns().map(|column| column.name).filter(|name| !seen.contains(name)).collect();
        assert_eq!(missing, ["rate_up_bps"], "these have a value in no case");
    }

    #[test]
    fn profile_name_beside_server_workers() {
        let mut case = any_case();
        case.server.workers = 8;
        assert_eq!(value(&case, "server"), Some(Value::Text("s".into())));
        assert_eq!(value(&case, "server_workers"), Some(Value::U32(8)));
    }

    #[test]
    fn loss_parameters_of_each_model() {
        let mut case = any_case();
        assert_eq!(value(&case, "loss_model"), Some(Value::Text("independent".into())));
        assert_eq!(value(&case, "loss_probability"), Some(Value::F64(0.02)));
        assert_eq!(value(&case, "loss_mean"), Some(Value::F64(0.02)));
        assert_eq!(value(&case, "loss_bad"), None);

        case.link.loss = Loss::None;
        assert_eq!(value(&case, "loss_probability"), None);
        assert_eq!(value(&case, "loss_mean"), Some(Value::F64(0.0)));

        case.link.loss = Loss::GilbertElliott {
            good_to_bad: Probability(0.25),
            bad_to_good: Probability(0.75),
            loss_good: Probability(0.0),
            loss_bad: Probability(0.5),
        };
        assert_eq!(value(&case, "loss_probability"), None);
        assert_eq!(value(&case, "loss_good_to_bad"), Some(Value::F64(0.25)));
        assert_eq!(value(&case, "loss_bad"), Some(Value::F64(0.5)));
        assert_eq!(value(&case, "loss_mean"), Some(Value::F64(0.125)));
    }

    #[test]
    fn jitter_mean_by_straight_lines_between_quantiles() {
        let mut case = any_case();
        assert_eq!(value(&case, "jitter_mean_ns"), None);
        case.link.jitter = vec![Nanos(0), Nanos(10), Nanos(40)];
        // (0 + 10) / 2 for one half, (10 + 40) / 2 for the other.
        assert_eq!(value(&case, "jitter_mean_ns"), Some(Value::F64(15.0)));
        assert_eq!(value(&case, "jitter_max_ns"), Some(Value::U64(40)));
    }
}
