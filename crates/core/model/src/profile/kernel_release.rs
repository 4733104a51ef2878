// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Releases of the Linux kernel.

use std::str::FromStr;

/// A release of the Linux kernel, as `uname -r` begins: `6.18`, `6.18.5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelRelease {
    /// The 6 of 6.18.5.
    pub major: u32,
    /// Its 18.
    pub minor: u32,
    /// Its 5; `None` where every patch level is meant.
    pub patch: Option<u32>,
}

impl FromStr for KernelRelease {
    type Err = String;

    /// Reads it; what a distribution appends (`6.1.0-40-amd64`, `6.18-rc2`) says no more of it.
    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "expected a kernel's release such as \"6.18\"".to_string();
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let mut numbers = text[..end].split('.').map(str::parse::<u32>);
        let mut number = || numbers.next().transpose().map_err(|_| expected());
        let (major, minor, patch) = (number()?, number()?, number()?);
        match (major, minor) {
            (Some(major), Some(minor)) => Ok(KernelRelease { major, minor, patch }),
            _ => Err(expected()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_of_kernels_and_distributions() {
        let of = |text: &str| {
            let KernelRelease { major, minor, patch } = text.parse().ok()?;
            Some((major, minor, patch))
        };
        assert_eq!(of("6.18"), Some((6, 18, None)));
        assert_eq!(of("6.18.5"), Some((6, 18, Some(5))));
        assert_eq!(of("6.1.0-40-cloud-amd64"), Some((6, 1, Some(0))));
        assert_eq!(of("6.18-rc2"), Some((6, 18, None)));
        for wrong in ["", "6", "linux-6.18", "6.", "6..1", "6.18.", "99999999999.1"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
