// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Decimal numbers as text, so that "0.1 ms" is exactly 100,000 ns.

use std::fmt;

/// A decimal number without sign: its digits and where the point is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    /// Significant digits, most significant first; neither begins nor ends with a zero.
    digits: Vec<u8>,
    /// The value is 0.DIGITS times ten to this power.
    point: i32,
}

impl Decimal {
    /// Reads `12`, `1.5`, `.5` or `5.`; no sign, no exponent.
    pub(crate) fn parse(text: &str) -> Option<Decimal> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if (whole.is_empty() && fraction.is_empty()) || !all_digits(whole) || !all_digits(fraction)
        {
            return None;
        }
        let digits: Vec<u8> =
            whole.bytes().chain(fraction.bytes()).map(|byte| byte - b'0').collect();
        Some(Decimal { digits, point: i32::try_from(whole.len()).ok()? }.normal())
    }

    /// `value / scale`, where `scale` is a power of ten.
    pub(crate) fn of_ratio(value: u64, scale: u64) -> Decimal {
        let digits: Vec<u8> = value.to_string().bytes().map(|byte| byte - b'0').collect();
        let point = digits.len() as i32 - scale.ilog10() as i32;
        Decimal { digits, point }.normal()
    }

    /// Times ten to the power `by`.
    pub(crate) fn shifted(mut self, by: i32) -> Decimal {
        self.point += by;
        self.normal()
    }

    /// The exact product with `scale`; `Err(true)` if it is no whole number, `Err(false)` if
    /// it does not fit.
    pub(crate) fn times(&self, scale: u64) -> Result<u64, bool> {
        // A scale has at most 13 digits, so 36 digits more are either a fraction or too large.
        if self.digits.is_empty() {
            return Ok(0);
        }
        if self.point > 20 {
            return Err(false);
        }
        let fraction_digits = self.digits.len() as i32 - self.point;
        if self.digits.len() > 24 {
            return Err(fraction_digits > 0);
        }
        let number = self.digits.iter().fold(0_u128, |sum, &digit| sum * 10 + u128::from(digit));
        let product = number.checked_mul(u128::from(scale)).ok_or(false)?;
        let exact = if fraction_digits > 0 {
            let divisor = 10_u128.checked_pow(fraction_digits as u32).ok_or(true)?;
            if !product.is_multiple_of(divisor) {
                return Err(true);
            }
            product / divisor
        } else {
            let factor = 10_u128.checked_pow(fraction_digits.unsigned_abs()).ok_or(false)?;
            product.checked_mul(factor).ok_or(false)?
        };
        u64::try_from(exact).map_err(|_| false)
    }

    fn normal(mut self) -> Decimal {
        let leading = self.digits.iter().take_while(|&&digit| digit == 0).count();
        self.digits.drain(..leading);
        self.point -= leading as i32;
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
        if self.digits.is_empty() {
            self.point = 0;
        }
        self
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digit = |index: i32| {
            let found = usize::try_from(index).ok().and_then(|index| self.digits.get(index));
            char::from(b'0' + found.copied().unwrap_or(0))
        };
        let whole: String = (0..self.point).map(digit).collect();
        let fraction: String = (self.point..self.digits.len() as i32).map(digit).collect();
        write!(f, "{}", if whole.is_empty() { "0" } else { &whole })?;
        if fraction.is_empty() { Ok(()) } else { write!(f, ".{fraction}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_products() {
        let times = |text: &str, scale| Decimal::parse(text).unwrap().times(scale);
        assert_eq!(times("0.1", 1_000_000), Ok(100_000));
        assert_eq!(times("18446744073709551615", 1), Ok(u64::MAX));
        assert_eq!(times("18446744073709551616", 1), Err(false));
        assert_eq!(times("0.0000001", 1_000_000), Err(true));
        assert_eq!(times("000", 7), Ok(0));
        assert_eq!(times(&"9".repeat(400), 1), Err(false));
        assert_eq!(times(&format!("0.{}1", "0".repeat(400)), 1), Err(true));
    }

    #[test]
    fn written_without_exponent() {
        assert_eq!(Decimal::of_ratio(1_500, 1_000).to_string(), "1.5");
        assert_eq!(Decimal::of_ratio(7, 1_000).to_string(), "0.007");
        assert_eq!(Decimal::of_ratio(0, 1_000).to_string(), "0");
        assert_eq!(Decimal::of_ratio(20_000, 1_000).to_string(), "20");
        assert_eq!(Decimal::parse("0.07").unwrap().shifted(2).to_string(), "7");
        assert_eq!(Decimal::parse("7").unwrap().shifted(-2).to_string(), "0.07");
    }
}
