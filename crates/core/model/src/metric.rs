// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The registry of metrics: what an observation can measure, in which unit, from where to where.

use serde::{Deserialize, Serialize};

use crate::case::{Case, Layer, Protocol, Stack};

/// A point that metrics are taken between: all but one are of the device's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Mark {
    /// Just before the program's first call for the connection: connect(), or the first send.
    Start,
    /// connect() has completed and the program knows it.
    Connected,
    /// The TLS library reports the handshake as complete.
    HandshakeDone,
    /// The first byte of the response has been read, and decrypted.
    FirstResponse,
    /// The last byte of the response has been.
    ResponseDone,
    /// The other end has read the sample: a mark of its program, by the clock of both.
    SampleRead,
}

/// What a value counts, and so its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Time, ns.
    Duration,
    /// Bytes, B.
    Bytes,
    /// A number of things, 1.
    Count,
    /// A part of all, from 0 to 1.
    Share,
    /// Things a second, 1/s.
    Rate,
    /// Energy, mJ.
    Energy,
    /// Charge, mAh.
    Charge,
}

/// Something that is counted as a connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Counter {
    /// Bytes that the device's program handed to its channels.
    ClientSent,
    /// Bytes that it read from them.
    ServerSent,
    /// IP packets put on the link in both directions, lost ones included.
    Packets,
    /// Their bytes.
    PacketBytes,
    /// Of the packets, those whose content had been sent before.
    Retransmitted,
    /// Of the device's packets, SYNs that had been sent before.
    SynRetransmitted,
    /// Of the device's packets, others whose content had been sent before.
    ClientRetransmitted,
}

/// How a metric is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Definition {
    /// The time from one mark to another; 0 where the first comes later.
    Between(Mark, Mark),
    /// A counter from the beginning until a mark, which need not be the last.
    Until(Counter, Mark),
    /// 1 where the last mark was not reached in time, else nothing.
    Failed,
    /// Something that the lab sees and nothing predicts.
    Seen,
}

/// What there is one value for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Each connection of a trial.
    Connection,
    /// Each scenario: all connections of a trial together. A time is from the earliest of the
    /// first mark to the latest of the second, a count is of all connections.
    Scenario,
}

macro_rules! metrics {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $layer:expr, $quantity:ident,
        $definition:expr, $scope:ident;)+) => {
        /// What an observation measures.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[repr(u8)]
        pub enum Metric {
            $($(#[$doc])* #[serde(rename = $text)] $name,)+
        }

        impl Metric {
            /// All metrics, in the order of tables.
            pub const ALL: &'static [Metric] = &[$(Metric::$name),+];

            /// Its dotted name, as stored in observations and used in `[require]`.
            pub const fn name(self) -> &'static str {
                match self { $(Metric::$name => $text),+ }
            }

            /// The layer that a stack must have for it.
            pub const fn layer(self) -> Layer {
                match self { $(Metric::$name => $layer),+ }
            }

            /// What its values count.
            pub const fn quantity(self) -> Quantity {
                match self { $(Metric::$name => Quantity::$quantity),+ }
            }

            /// How it is taken.
            pub const fn definition(self) -> Definition {
                match self { $(Metric::$name => $definition),+ }
            }

            /// What there is one value for.
            pub const fn scope(self) -> Scope {
                match self { $(Metric::$name => Scope::$scope),+ }
            }
        }
    };
}

use Counter::{
    ClientRetransmitted, ClientSent, PacketBytes, Packets, Retransmitted, ServerSent,
    SynRetransmitted,
};
use Definition::{Between, Failed, Seen, Until};
use Mark::{Connected, FirstResponse, HandshakeDone, ResponseDone, SampleRead, Start};

const HTTPS: Layer = Layer::Application(Protocol::Https);
const COAP: Layer = Layer::Application(Protocol::Coap);
const DDS: Layer = Layer::Application(Protocol::Dds);

metrics! {
    /// From connect() to the first byte of the HTTP response.
    HttpsEstablishment = "https.establishment", HTTPS, Duration,
        Between(Start, FirstResponse), Connection;
    /// From connect() to its completion.
    TcpConnect = "tcp.connect", Layer::Tcp, Duration, Between(Start, Connected), Connection;
    /// From the TCP connection to the client's handshake completion.
    TlsHandshake = "tls.handshake", Layer::Tls, Duration,
        Between(Connected, HandshakeDone), Connection;
    /// From the client's handshake completion to the first byte of the HTTP response. Early data
    /// may be answered before the handshake is complete.
    HttpsFirstResponse = "https.first_response", HTTPS, Duration,
        Between(HandshakeDone, FirstResponse), Connection;
    /// From connect() to the last byte of the HTTP response, for responses of 15.5 to 128 KiB (see
    /// [`Pattern::has_response_done`](crate::Pattern::has_response_done)).
    HttpsResponseComplete = "https.response_complete", HTTPS, Duration,
        Between(Start, ResponseDone), Connection;
    /// From the program's first call for a CoAP request to its response, decoded.
    CoapExchange = "coap.exchange", COAP, Duration, Between(Start, FirstResponse), Connection;
    /// From the write of a DDS sample to its answer, read by the one that wrote it.
    DdsRoundTrip = "dds.round_trip", DDS, Duration, Between(Start, FirstResponse), Connection;
    /// From the write of a DDS sample to its reader at the other end, by the clock of the machine
    /// on which both are.
    DdsOneWay = "dds.one_way", DDS, Duration, Between(Start, SampleRead), Connection;
    /// From the creation of the device's participant to both its endpoints having matched:
    /// discovery, and with security authentication and the exchange of keys. Once for the
    /// connections of one participant.
    DdsDiscovery = "dds.discovery", DDS, Duration, Seen, Connection;
    /// Samples a second that the reader of a stream took, from the first to the last. Once for the
    /// samples of one participant.
    DdsRate = "dds.rate", DDS, Rate, Seen, Connection;
    /// Bytes that the client wrote up to the first byte of the response, retransmissions excluded.
    BytesClientSent = "bytes.client_sent", Layer::Any, Bytes,
        Until(ClientSent, FirstResponse), Connection;
    /// Bytes that the client read up to the first byte of the response.
    BytesServerSent = "bytes.server_sent", Layer::Any, Bytes,
        Until(ServerSent, FirstResponse), Connection;
    /// IP packets put on the link up to the first byte of the response, both directions,
    /// retransmissions and losses included.
    PacketsLink = "packets.link", Layer::Any, Count, Until(Packets, FirstResponse), Connection;
    /// IP bytes put on the link up to the first byte of the response, both directions,
    /// retransmissions and losses included.
    BytesLink = "bytes.link", Layer::Any, Bytes, Until(PacketBytes, FirstResponse), Connection;
    /// TCP segments sent again up to the first byte of the response, both directions.
    SegmentsRetransmitted = "segments.retransmitted", Layer::Tcp, Count,
        Until(Retransmitted, FirstResponse), Connection;
    /// SYNs sent again before the TCP connection was there: each is a timeout of the client's.
    TcpSynTimeouts = "tcp.syn_timeouts", Layer::Tcp, Count,
        Until(SynRetransmitted, Connected), Connection;
    /// TCP segments that the client sent again up to the first byte of the response, SYNs
    /// excluded.
    TcpClientRetransmissions = "tcp.client_retransmissions", Layer::Tcp, Count,
        Until(ClientRetransmitted, FirstResponse), Connection;
    /// Confirmable requests sent again up to the response.
    CoapRetransmitted = "coap.retransmitted", COAP, Count,
        Until(Retransmitted, FirstResponse), Connection;
    /// 1 for a connection that did not get its response in time, with a metric of its last byte its
    /// whole response; it has no other metric.
    ConnectionFailed = "connection.failed", Layer::Any, Share, Failed, Connection;
    /// From the first call of the first of several connections to the first byte of the last
    /// response.
    ScenarioDuration = "scenario.duration", Layer::Any, Duration,
        Between(Start, FirstResponse), Scenario;
    /// IP bytes put on the link by several connections together, each up to the first byte of its
    /// response, both directions, retransmissions and losses included.
    ScenarioBytesLink = "scenario.bytes_link", Layer::Any, Bytes,
        Until(PacketBytes, FirstResponse), Scenario;
    /// 1 where one of several connections did not get its response in time; the scenario then has
    /// no other metric.
    ScenarioFailed = "scenario.failed", Layer::Any, Share, Failed, Scenario;
}

impl Mark {
    /// How many marks there are.
    pub const COUNT: usize = 6;

    /// All marks: the device's in the order of a connection, then the other end's.
    pub const ALL: [Mark; Mark::COUNT] =
        [Start, Connected, HandshakeDone, FirstResponse, ResponseDone, SampleRead];

    /// Its name, for people.
    pub const fn name(self) -> &'static str {
        match self {
            Start => "start",
            Connected => "connected",
            HandshakeDone => "handshake done",
            FirstResponse => "first response",
            ResponseDone => "response done",
            SampleRead => "sample read",
        }
    }
}

impl Counter {
    /// How many counters there are.
    pub const COUNT: usize = 7;
}

impl Scope {
    /// The connection that a value is of, where there is one value for each.
    pub const fn connection(self, connection: u32) -> Option<u32> {
        match self {
            Scope::Connection => Some(connection),
            Scope::Scenario => None,
        }
    }
}

impl Quantity {
    /// The unit of values as stored.
    pub const fn unit(self) -> &'static str {
        match self {
            Quantity::Duration => "ns",
            Quantity::Bytes => "B",
            Quantity::Count | Quantity::Share => "1",
            Quantity::Rate => "1/s",
            Quantity::Energy => "mJ",
            Quantity::Charge => "mAh",
        }
    }
}

impl Metric {
    /// The unit of its values as stored: `ns`, `B`, `1`, `mJ` or `mAh`.
    pub const fn unit(self) -> &'static str {
        self.quantity().unit()
    }

    /// Whether a case has it: its stack has the layer, and the case what else the metric takes.
    pub fn applies_to(self, case: &Case) -> bool {
        case.stack.has(self.layer()) && self.lacks(case).is_none()
    }

    /// What a case whose stack has the layer still lacks for the metric, for people.
    pub(crate) fn lacks(self, case: &Case) -> Option<&'static str> {
        let ends_later = match self.definition() {
            Between(_, until) | Until(_, until) => until == ResponseDone,
            Failed | Seen => false,
        };
        if self.scope() == Scope::Scenario && case.pattern.concurrent < 2 {
            Some("is of several connections together; set pattern.concurrent to 2 or more")
        } else if ends_later && !case.pattern.has_response_done() {
            Some(
                "is predicted for responses of 15.5 to 128 KiB: a shorter one is one TLS record, \
                 whose last byte comes with its first (https.establishment); set \
                 pattern.response_body",
            )
        } else {
            None
        }
    }

    /// The metric of a stack that is divided into stages: the time from the program's first call
    /// to the response of the application protocol.
    pub fn with_stages(stack: &Stack) -> Option<Metric> {
        let application = Layer::Application(stack.protocol());
        Metric::ALL
            .iter()
            .copied()
            .find(|metric| metric.layer() == application && metric.is_whole())
    }

    /// Whether it is a whole time: of a connection of an application protocol, which stages divide,
    /// or of a scenario.
    pub fn is_whole(self) -> bool {
        self.definition() == Between(Start, FirstResponse)
    }

    /// Whether it is a part of that time.
    pub fn is_phase(self) -> bool {
        let within = matches!(
            self.definition(),
            Between(_, until) if until <= FirstResponse || until == SampleRead
        );
        self.scope() == Scope::Connection && within && !self.is_whole()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::any_case;

    #[test]
    fn unique_names_and_marks() {
        for (index, metric) in Metric::ALL.iter().enumerate() {
            assert!(!Metric::ALL[..index].iter().any(|other| other.name() == metric.name()));
        }
        for (index, mark) in Mark::ALL.into_iter().enumerate() {
            assert_eq!(mark as usize, index);
        }
    }

    #[test]
    fn units_of_quantities() {
        let units = [
            (Quantity::Duration, "ns"),
            (Quantity::Bytes, "B"),
            (Quantity::Count, "1"),
            (Quantity::Share, "1"),
            (Quantity::Rate, "1/s"),
            (Quantity::Energy, "mJ"),
            (Quantity::Charge, "mAh"),
        ];
        for (quantity, unit) in units {
            assert_eq!(quantity.unit(), unit);
        }
    }

    #[test]
    fn connection_of_each_scope() {
        assert_eq!(Scope::Connection.connection(3), Some(3));
        assert_eq!(Scope::Scenario.connection(3), None);
    }

    #[test]
    fn metrics_of_https() {
        let case = any_case();
        let names: Vec<&str> = Metric::ALL
            .iter()
            .filter(|metric| metric.applies_to(&case))
            .map(|metric| metric.name())
            .collect();
        assert_eq!(
            names,
            [
                "https.establishment",
                "tcp.connect",
                "tls.handshake",
                "https.first_response",
                "bytes.client_sent",
                "bytes.server_sent",
                "packets.link",
                "bytes.link",
                "segments.retransmitted",
                "tcp.syn_timeouts",
                "tcp.client_retransmissions",
                "connection.failed",
            ]
        );
        assert_eq!(Metric::with_stages(&case.stack), Some(Metric::HttpsEstablishment));
        let phases = Metric::ALL.iter().filter(|metric| metric.is_phase());
        let phases: Vec<&str> = phases.map(|metric| metric.name()).collect();
        assert_eq!(phases, ["tcp.connect", "tls.handshake", "https.first_response", "dds.one_way"]);
    }

    #[test]
    fn end_of_a_response_of_many_records_within_the_window() {
        let mut case = any_case();
        for (kib, expected) in [(0, false), (15, false), (16, true), (128, true), (129, false)] {
            case.pattern.response_body = kib * 1024;
            assert_eq!(Metric::HttpsResponseComplete.applies_to(&case), expected, "{kib} KiB");
        }
    }

    #[test]
    fn metrics_of_a_scenario_need_several_connections() {
        let mut case = any_case();
        for (concurrent, expected) in [(1, false), (2, true)] {
            case.pattern.concurrent = concurrent;
            assert_eq!(Metric::ScenarioDuration.applies_to(&case), expected);
            assert!(Metric::HttpsEstablishment.applies_to(&case));
        }
    }
}
