// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The protocols of a connection, layer by layer.

use serde::{Deserialize, Serialize};

use super::coap::Coap;
use super::dds::Dds;
use super::tls::Tls;
use super::transport::Tcp;
use crate::keyword::Keyword;

/// The protocols from the application down, each with its own settings, its security and its
/// transport. A new protocol is a variant here, a file for its settings, and nothing that another
/// protocol's code has to know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "protocol", rename_all = "lowercase")]
pub enum Stack {
    /// HTTP/1.1 over TLS over TCP.
    Https(Https),
    /// CoAP over UDP (RFC 7252), without security.
    Coap(Coap),
    /// DDS over RTPS over UDP.
    Dds(Dds),
}

/// HTTP/1.1 over TLS over TCP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Https {
    /// Its security.
    pub tls: Tls,
    /// Its transport.
    pub tcp: Tcp,
}

/// The application protocol of a stack, by the word that studies use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// HTTP/1.1 over TLS over TCP.
    Https,
    /// CoAP over UDP.
    Coap,
    /// DDS over RTPS over UDP.
    Dds,
}

/// A layer of a stack. Settings, columns and metrics belong to one, and apply to the stacks that
/// have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layer {
    /// What every stack has.
    Any,
    /// Transport Layer Security.
    Tls,
    /// TCP.
    Tcp,
    /// An application protocol.
    Application(Protocol),
}

impl Protocol {
    /// The layers of every stack of this protocol, its own among them.
    pub const fn layers(self) -> &'static [Layer] {
        match self {
            Protocol::Https => {
                &[Layer::Any, Layer::Tls, Layer::Tcp, Layer::Application(Protocol::Https)]
            }
            Protocol::Coap => &[Layer::Any, Layer::Application(Protocol::Coap)],
            Protocol::Dds => &[Layer::Any, Layer::Application(Protocol::Dds)],
        }
    }

    /// The path that is asked for where a study names none.
    pub(crate) const fn default_path(self) -> &'static str {
        match self {
            Protocol::Https => "/",
            // libcoap's coap-server has a resource of its own at "/".
            Protocol::Coap => "/data",
            // ROS 2's demonstrations have it.
            Protocol::Dds => "/chatter",
        }
    }

    /// Whether its stacks have a layer.
    pub fn has(self, layer: Layer) -> bool {
        self.layers().contains(&layer)
    }
}

impl Layer {
    /// Its name, for messages.
    pub fn name(self) -> &'static str {
        match self {
            Layer::Any => "every stack",
            Layer::Tls => "TLS",
            Layer::Tcp => "TCP",
            Layer::Application(protocol) => protocol.name(),
        }
    }

    /// Why what belongs to it says nothing of a protocol without it: `coap has no TLS`.
    pub(crate) fn missing_from(self, protocol: Protocol) -> String {
        match self {
            Layer::Application(own) => format!("only {} has it", own.name()),
            layer => format!("{} has no {}", protocol.name(), layer.name()),
        }
    }
}

impl Stack {
    /// Its application protocol.
    pub const fn protocol(&self) -> Protocol {
        match self {
            Stack::Https(_) => Protocol::Https,
            Stack::Coap(_) => Protocol::Coap,
            Stack::Dds(_) => Protocol::Dds,
        }
    }

    /// Its TLS, if that is its security.
    pub const fn tls(&self) -> Option<&Tls> {
        match self {
            Stack::Https(https) => Some(&https.tls),
            Stack::Coap(_) | Stack::Dds(_) => None,
        }
    }

    /// Its TCP, if that is its transport.
    pub const fn tcp(&self) -> Option<&Tcp> {
        match self {
            Stack::Https(https) => Some(&https.tcp),
            Stack::Coap(_) | Stack::Dds(_) => None,
        }
    }

    /// Its CoAP, if that is its protocol.
    pub const fn coap(&self) -> Option<&Coap> {
        match self {
            Stack::Coap(coap) => Some(coap),
            Stack::Https(_) | Stack::Dds(_) => None,
        }
    }

    /// Its DDS, if that is its protocol.
    pub const fn dds(&self) -> Option<&Dds> {
        match self {
            Stack::Dds(dds) => Some(dds),
            Stack::Https(_) | Stack::Coap(_) => None,
        }
    }

    /// Whether it has a layer.
    pub fn has(&self, layer: Layer) -> bool {
        self.protocol().has(layer)
    }
}
