// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The operations that a trace asks a device for, and the calls it makes to a key store.
//!
//! An operation has a dotted name (`client.send.ClientHello`), which is the key that a device
//! profile uses for its costs.

use std::fmt;

use crate::nearest::nearest;

/// Which end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The side that connects: the device.
    Client,
    /// The side that accepts.
    Server,
}

/// Whether a message is made or processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Making and encrypting it.
    Send,
    /// Decrypting and processing it.
    Receive,
}

/// TLS handshake messages, by their IANA names (RFC 8446 section 4, RFC 5246 section 7.4), with
/// ChangeCipherSpec and application data beside them because they cost time as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum HandshakeMessage {
    ClientHello,
    ServerHello,
    EncryptedExtensions,
    CertificateRequest,
    Certificate,
    CertificateVerify,
    Finished,
    EndOfEarlyData,
    NewSessionTicket,
    ServerKeyExchange,
    ServerHelloDone,
    ClientKeyExchange,
    ChangeCipherSpec,
    ApplicationData,
}

/// CoAP messages (RFC 7252 section 1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum CoapMessage {
    Request,
    Response,
}

/// What a DDS middleware does for a sample, and its cryptographic plugin with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DdsMessage {
    /// The middleware's part: from write to the datagram, or from the datagram to the reader; of a
    /// sample in several, but for what [`DdsMessage::Part`] has.
    Sample,
    /// The middleware's part in each further DATA_FRAG of a sample that one datagram does not hold.
    Part,
    /// A payload protected, or its protection taken off.
    Payload,
    /// The same of a submessage.
    Submessage,
    /// The same of an RTPS message.
    RtpsMessage,
}

/// What the operating system and the event loop do around the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SystemCall {
    /// connect() called until the SYN leaves.
    Connect,
    /// From an arriving packet to the woken program having read its bytes.
    Wake,
    /// The server taking up a new connection: accept(), TLS object, registering with epoll.
    Accept,
    /// One write() of a flight, until its first packet leaves.
    Write,
    /// The HTTP server's own work on one request.
    HttpRespond,
    /// The HTTP server's own work on the body of a request, beside opening its records.
    HttpReceive,
    /// What the device's network interface adds to one packet (one way).
    Interface,
}

/// Something that takes a party's processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// A TLS message made or processed; a signature made by the key store is *not* in it.
    Tls(Role, Direction, HandshakeMessage),
    /// A CoAP message made or processed; the server's work for its response is in the response.
    Coap(Role, Direction, CoapMessage),
    /// A DDS sample or a protection around it, made or processed.
    Dds(Role, Direction, DdsMessage),
    /// The signature of a CertificateVerify or ServerKeyExchange in software.
    Sign(Role),
    /// Operating system and event loop.
    System(Role, SystemCall),
}

/// A call to a key store, by its PKCS#11 name (PKCS#11 v3.0 section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyStoreCall {
    /// C_OpenSession.
    OpenSession,
    /// C_Login.
    Login,
    /// C_FindObjectsInit, C_FindObjects, C_FindObjectsFinal.
    FindObjects,
    /// C_SignInit.
    SignInit,
    /// C_Sign.
    Sign,
}

impl Role {
    /// `client` or `server`.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Client => "client",
            Role::Server => "server",
        }
    }
}

impl Direction {
    /// `send` or `receive`.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Send => "send",
            Direction::Receive => "receive",
        }
    }
}

impl HandshakeMessage {
    /// Every message.
    pub const ALL: [HandshakeMessage; 14] = [
        HandshakeMessage::ClientHello,
        HandshakeMessage::ServerHello,
        HandshakeMessage::EncryptedExtensions,
        HandshakeMessage::CertificateRequest,
        HandshakeMessage::Certificate,
        HandshakeMessage::CertificateVerify,
        HandshakeMessage::Finished,
        HandshakeMessage::EndOfEarlyData,
        HandshakeMessage::NewSessionTicket,
        HandshakeMessage::ServerKeyExchange,
        HandshakeMessage::ServerHelloDone,
        HandshakeMessage::ClientKeyExchange,
        HandshakeMessage::ChangeCipherSpec,
        HandshakeMessage::ApplicationData,
    ];

    /// The IANA name.
    pub const fn name(self) -> &'static str {
        match self {
            HandshakeMessage::ClientHello => "ClientHello",
            HandshakeMessage::ServerHello => "ServerHello",
            HandshakeMessage::EncryptedExtensions => "EncryptedExtensions",
            HandshakeMessage::CertificateRequest => "CertificateRequest",
            HandshakeMessage::Certificate => "Certificate",
            HandshakeMessage::CertificateVerify => "CertificateVerify",
            HandshakeMessage::Finished => "Finished",
            HandshakeMessage::EndOfEarlyData => "EndOfEarlyData",
            HandshakeMessage::NewSessionTicket => "NewSessionTicket",
            HandshakeMessage::ServerKeyExchange => "ServerKeyExchange",
            HandshakeMessage::ServerHelloDone => "ServerHelloDone",
            HandshakeMessage::ClientKeyExchange => "ClientKeyExchange",
            HandshakeMessage::ChangeCipherSpec => "ChangeCipherSpec",
            HandshakeMessage::ApplicationData => "ApplicationData",
        }
    }
}

impl CoapMessage {
    /// Every message.
    pub const ALL: [CoapMessage; 2] = [CoapMessage::Request, CoapMessage::Response];

    /// The name in an operation's path.
    pub const fn name(self) -> &'static str {
        match self {
            CoapMessage::Request => "CoapRequest",
            CoapMessage::Response => "CoapResponse",
        }
    }
}

impl DdsMessage {
    /// Every one.
    pub const ALL: [DdsMessage; 5] = [
        DdsMessage::Sample,
        DdsMessage::Part,
        DdsMessage::Payload,
        DdsMessage::Submessage,
        DdsMessage::RtpsMessage,
    ];

    /// The name in an operation's path.
    pub const fn name(self) -> &'static str {
        match self {
            DdsMessage::Sample => "DdsSample",
            DdsMessage::Part => "DdsPart",
            DdsMessage::Payload => "DdsProtectedPayload",
            DdsMessage::Submessage => "DdsProtectedSubmessage",
            DdsMessage::RtpsMessage => "DdsProtectedMessage",
        }
    }
}

impl SystemCall {
    /// Every one.
    pub const ALL: [SystemCall; 7] = [
        SystemCall::Connect,
        SystemCall::Wake,
        SystemCall::Accept,
        SystemCall::Write,
        SystemCall::HttpRespond,
        SystemCall::HttpReceive,
        SystemCall::Interface,
    ];

    /// The name in an operation's path.
    pub const fn name(self) -> &'static str {
        match self {
            SystemCall::Connect => "connect",
            SystemCall::Wake => "wake",
            SystemCall::Accept => "accept",
            SystemCall::Write => "write",
            SystemCall::HttpRespond => "http_respond",
            SystemCall::HttpReceive => "http_receive",
            SystemCall::Interface => "interface",
        }
    }
}

impl Operation {
    /// Every operation there is a name for, in the order of errors and tables.
    pub fn all() -> impl Iterator<Item = Operation> {
        [Role::Client, Role::Server].into_iter().flat_map(|role| {
            let directions = [Direction::Send, Direction::Receive];
            let tls = directions.into_iter().flat_map(move |direction| {
                HandshakeMessage::ALL.map(|message| Operation::Tls(role, direction, message))
            });
            let coap = directions.into_iter().flat_map(move |direction| {
                CoapMessage::ALL.map(|message| Operation::Coap(role, direction, message))
            });
            let dds = directions.into_iter().flat_map(move |direction| {
                DdsMessage::ALL.map(|message| Operation::Dds(role, direction, message))
            });
            let system = SystemCall::ALL.map(|call| Operation::System(role, call));
            tls.chain([Operation::Sign(role)]).chain(system).chain(coap).chain(dds)
        })
    }

    /// Whether it happens only when the client shows a certificate.
    pub(crate) const fn needs_client_certificate(self) -> bool {
        use HandshakeMessage::{Certificate, CertificateRequest, CertificateVerify};
        matches!(
            self,
            Operation::Sign(Role::Client)
                | Operation::Tls(_, _, CertificateRequest)
                | Operation::Tls(Role::Client, Direction::Send, Certificate | CertificateVerify)
                | Operation::Tls(Role::Server, Direction::Receive, Certificate | CertificateVerify)
        )
    }

    /// Whether both versions of TLS have a message of this name that takes work: their making
    /// differs.
    pub(crate) const fn is_of_both_versions(self) -> bool {
        use HandshakeMessage::{
            Certificate, CertificateRequest, CertificateVerify, ClientHello, Finished,
            NewSessionTicket, ServerHello,
        };
        matches!(
            self,
            Operation::Tls(
                _,
                _,
                ClientHello
                    | ServerHello
                    | CertificateRequest
                    | Certificate
                    | CertificateVerify
                    | Finished
                    | NewSessionTicket
            )
        )
    }

    /// The party whose processor it takes.
    pub const fn role(self) -> Role {
        match self {
            Operation::Tls(role, _, _)
            | Operation::Coap(role, _, _)
            | Operation::Dds(role, _, _)
            | Operation::Sign(role)
            | Operation::System(role, _) => role,
        }
    }
}

impl std::str::FromStr for Operation {
    type Err = String;

    /// Reads its dotted name; the error gives the nearest that exists.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.splitn(3, '.');
        let found = match (parts.next(), parts.next(), parts.next()) {
            (Some(role), Some(verb), rest) => read(role, verb, rest),
            _ => None,
        };
        found.ok_or_else(|| {
            let names: Vec<String> = Operation::all().map(|known| known.to_string()).collect();
            match nearest(text, names.iter().map(String::as_str)) {
                Some(name) => format!("expected an operation; did you mean \"{name}\"?"),
                None => "expected an operation such as \"client.send.ClientHello\", \
                         \"client.sign\" or \"server.system.wake\""
                    .into(),
            }
        })
    }
}

fn read(role: &str, verb: &str, rest: Option<&str>) -> Option<Operation> {
    let role = [Role::Client, Role::Server].into_iter().find(|known| known.name() == role)?;
    let call = || SystemCall::ALL.into_iter().find(|known| Some(known.name()) == rest);
    let message = |direction| {
        let tls = HandshakeMessage::ALL.into_iter().find(|known| Some(known.name()) == rest);
        let coap = CoapMessage::ALL.into_iter().find(|known| Some(known.name()) == rest);
        let dds = DdsMessage::ALL.into_iter().find(|known| Some(known.name()) == rest);
        tls.map(|message| Operation::Tls(role, direction, message))
            .or(coap.map(|message| Operation::Coap(role, direction, message)))
            .or(dds.map(|message| Operation::Dds(role, direction, message)))
    };
    match (verb, rest) {
        ("sign", None) => Some(Operation::Sign(role)),
        ("send", _) => message(Direction::Send),
        ("receive", _) => message(Direction::Receive),
        ("system", _) => Some(Operation::System(role, call()?)),
        _ => None,
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operation::Tls(role, direction, message) => {
                write!(f, "{}.{}.{}", role.name(), direction.name(), message.name())
            }
            Operation::Coap(role, direction, message) => {
                write!(f, "{}.{}.{}", role.name(), direction.name(), message.name())
            }
            Operation::Dds(role, direction, message) => {
                write!(f, "{}.{}.{}", role.name(), direction.name(), message.name())
            }
            Operation::Sign(role) => write!(f, "{}.sign", role.name()),
            Operation::System(role, call) => write!(f, "{}.system.{}", role.name(), call.name()),
        }
    }
}

impl KeyStoreCall {
    /// Every call, in the order a new session makes them (papers/1 Table 1).
    pub const ALL: [KeyStoreCall; 5] = [
        KeyStoreCall::OpenSession,
        KeyStoreCall::Login,
        KeyStoreCall::FindObjects,
        KeyStoreCall::SignInit,
        KeyStoreCall::Sign,
    ];

    /// The PKCS#11 name.
    pub const fn name(self) -> &'static str {
        match self {
            KeyStoreCall::OpenSession => "C_OpenSession",
            KeyStoreCall::Login => "C_Login",
            KeyStoreCall::FindObjects => "C_FindObjects",
            KeyStoreCall::SignInit => "C_SignInit",
            KeyStoreCall::Sign => "C_Sign",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operation_names_round_trip() {
        assert_eq!(Operation::all().count(), 2 * (2 * 14 + 1 + 7 + 2 * 2 + 2 * 5));
        for operation in Operation::all() {
            assert_eq!(operation.to_string().parse(), Ok(operation));
        }
        for wrong in ["client.sing", "client", "", "client.send", "client.sign.more", "host.sign"] {
            assert!(wrong.parse::<Operation>().is_err(), "{wrong}");
        }
        assert_eq!(
            "client.sing".parse::<Operation>().unwrap_err(),
            "expected an operation; did you mean \"client.sign\"?"
        );
    }
}
