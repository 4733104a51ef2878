// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where a card is, as people write it.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use crate::applet::Options;
use crate::transport::{Modem, Pcsc, Transport, Unix, Watch, Watched};

/// The speed of a serial line unless another is given.
const BAUD: u32 = 115_200;

/// From the slowest rate of Linux to the fastest of USB converters.
const BAUDS: RangeInclusive<u32> = 50..=12_000_000;

/// The address of one card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CardAddress {
    /// `unix:/path`: the socket of a virtual card.
    Unix(PathBuf),
    /// `pcsc` or `pcsc:part of the reader's name`.
    Pcsc(Option<String>),
    /// `csim:/dev/ttyUSB2` or `csim:/dev/ttyUSB2,9600`: a modem, with its baud rate.
    Csim(PathBuf, u32),
}

/// A text that is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CardAddressError {
    /// It has none of the forms.
    #[error(
        "card is \"{0}\": expected unix:/path, pcsc, pcsc:READER, csim:/dev/ttyX or \
         csim:/dev/ttyX,BAUD"
    )]
    Form(String),
    /// No serial line has this speed.
    #[error("card is \"{0}\": expected a baud rate of 50 to 12000000, such as 115200")]
    BaudRate(String),
}

impl CardAddress {
    /// The transport to the card; nothing is opened before it is first used. `watch` sees every
    /// exchange.
    #[must_use]
    pub fn transport(&self, watch: Option<Watch>) -> Box<dyn Transport> {
        self.transport_with(&Options::default(), watch)
    }

    /// The same with these options.
    #[must_use]
    pub fn transport_with(&self, options: &Options, watch: Option<Watch>) -> Box<dyn Transport> {
        let transport: Box<dyn Transport> = match self {
            CardAddress::Pcsc(reader) if options.no_threads => {
                Box::new(Pcsc::without_threads(reader.as_deref()))
            }
            CardAddress::Unix(path) => Box::new(Unix::new(path)),
            CardAddress::Pcsc(reader) => Box::new(Pcsc::new(reader.as_deref())),
            CardAddress::Csim(path, baud) => Box::new(Modem::new(path, *baud)),
        };
        match watch {
            Some(watch) => Box::new(Watched::new(transport, watch)),
            None => transport,
        }
    }
}

impl FromStr for CardAddress {
    type Err = CardAddressError;

    fn from_str(text: &str) -> Result<CardAddress, CardAddressError> {
        let invalid = || CardAddressError::Form(text.to_owned());
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        match (kind, rest) {
            ("unix", path) if path.starts_with('/') => Ok(CardAddress::Unix(path.into())),
            ("pcsc", "") => Ok(CardAddress::Pcsc(None)),
            ("pcsc", reader) => Ok(CardAddress::Pcsc(Some(reader.to_owned()))),
            ("csim", path) if path.starts_with('/') => match path.split_once(',') {
                Some((path, baud)) => {
                    let baud = baud.parse().ok().filter(|baud| BAUDS.contains(baud));
                    let invalid = || CardAddressError::BaudRate(text.to_owned());
                    Ok(CardAddress::Csim(path.into(), baud.ok_or_else(invalid)?))
                }
                None => Ok(CardAddress::Csim(path.into(), BAUD)),
            },
            _ => Err(invalid()),
        }
    }
}

impl fmt::Display for CardAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CardAddress::Unix(path) => write!(f, "unix:{}", path.display()),
            CardAddress::Pcsc(None) => write!(f, "pcsc"),
            CardAddress::Pcsc(Some(reader)) => write!(f, "pcsc:{reader}"),
            CardAddress::Csim(path, BAUD) => write!(f, "csim:{}", path.display()),
            CardAddress::Csim(path, baud) => write!(f, "csim:{},{baud}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_round_trip() {
        for text in
            ["unix:/run/a b", "pcsc", "pcsc:ACS 01", "csim:/dev/ttyUSB2", "csim:/dev/p,9600"]
        {
            assert_eq!(text.parse::<CardAddress>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn invalid_addresses() {
        for text in ["", "unix:", "unix:relative", "csim:", "tcp:1", "agent"] {
            let error = text.parse::<CardAddress>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("card is \"{text}\": expected unix:/path")));
        }
        for text in ["csim:/dev/x,", "csim:/dev/x,0", "csim:/dev/x,12a", "csim:/dev/x,4294967295"] {
            let error = text.parse::<CardAddress>().unwrap_err().to_string();
            let expected = "expected a baud rate of 50 to 12000000, such as 115200";
            assert_eq!(error, format!("card is \"{text}\": {expected}"));
        }
    }
}
