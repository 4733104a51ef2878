// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A text that is a quantity is the one that its own `Display` writes.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use warifu_model::{BitsPerSecond, ByteCount, Nanos, Operation, Probability};

/// Checks one input.
pub fn check(text: &str) {
    round_trip::<Nanos>(text);
    round_trip::<BitsPerSecond>(text);
    round_trip::<ByteCount>(text);
    round_trip::<Probability>(text);
    // A wrong name is compared with all the right ones, which is slow and finds nothing more.
    if text.len() <= 40 {
        round_trip::<Operation>(text);
    }
}

fn round_trip<T: FromStr + Display + Debug + PartialEq>(text: &str)
where
    T::Err: Debug,
{
    if let Ok(value) = text.parse::<T>() {
        assert_eq!(value.to_string().parse::<T>().expect("its own text"), value);
    }
}
