// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The values of a link and a pattern, read within their ranges; shared by studies and profiles.

use std::fmt;

use toml::Value;

use crate::case::{Link, Loss};
use crate::reader::{self, show, unknown};
use crate::units::{BitsPerSecond, Nanos, Probability};

/// No link is slower than this there and back; a longer value is a slip of the unit. Deep space
/// is out of scope.
const LONGEST_DELAY: Nanos = Nanos::from_secs(3600);
/// No IoT link is slower: Sigfox's uplink has 100 bit/s. Below it TCP gives up before a handshake
/// is over, and a study would find nothing but failed connections.
const LOWEST_RATE: BitsPerSecond = BitsPerSecond(100);
/// More than 400 Gbit/s is no IoT link, and less serialisation than 1 ns cannot be told.
const HIGHEST_RATE: BitsPerSecond = BitsPerSecond(400_000_000_000);
/// The most jitter quantiles worth keeping.
const MOST_QUANTILES: usize = 10_001;

pub(crate) fn link_delay(value: &Value) -> Result<Nanos, String> {
    let delay = reader::duration(value)?;
    if delay > LONGEST_DELAY {
        return Err(format!("expected at most {LONGEST_DELAY}"));
    }
    Ok(delay)
}

/// One-way additional delay: evenly spaced quantiles in ascending order.
pub(crate) fn jitter(value: &Value) -> Result<Vec<Nanos>, String> {
    let expected = "expected evenly spaced quantiles in ascending order, such as \
                    [\"0 ms\", \"1 ms\", \"8 ms\"]";
    let list = value.as_array().ok_or(expected)?;
    if list.len() > MOST_QUANTILES {
        return Err(format!("expected at most {MOST_QUANTILES} quantiles"));
    }
    let mut quantiles = Vec::with_capacity(list.len());
    for value in list {
        let quantile =
            link_delay(value).map_err(|why| format!("{} is not a quantile: {why}", show(value)))?;
        quantiles.push(quantile);
    }
    if !quantiles.is_sorted() {
        return Err(format!("{expected}; these are not in order"));
    }
    // One quantile or none, or only zeros, are all the absence of jitter when zero.
    if quantiles.iter().all(|&quantile| quantile == Nanos::ZERO) {
        quantiles.clear();
    }
    Ok(quantiles)
}

pub(crate) fn show_jitter(quantiles: &[Nanos]) -> String {
    let words: Vec<String> = quantiles.iter().map(Nanos::to_string).collect();
    if words.is_empty() { "none".into() } else { format!("[{}]", words.join(", ")) }
}

pub(crate) fn rate(value: &Value) -> Result<BitsPerSecond, String> {
    let rate = reader::rate(value)?;
    if rate < LOWEST_RATE {
        return Err(format!("expected at least {LOWEST_RATE}: no connection succeeds below"));
    }
    if rate > HIGHEST_RATE {
        return Err(format!("expected at most {HIGHEST_RATE}"));
    }
    Ok(rate)
}

pub(crate) fn queue_packets(value: &Value) -> Result<u32, String> {
    reader::integer(value, 1..=1_000_000).map(|packets| packets as u32)
}

pub(crate) fn mtu(value: &Value) -> Result<u16, String> {
    reader::integer(value, u64::from(Link::LEAST_MTU)..=u64::from(u16::MAX))
        .map(|bytes| bytes as u16)
}

/// A probability for independent loss, or the four of Gilbert and Elliott.
pub(crate) fn loss(value: &Value) -> Result<Loss, String> {
    const KEYS: [&str; 4] = ["good_to_bad", "bad_to_good", "loss_good", "loss_bad"];
    let Some(table) = value.as_table() else {
        return reader::probability(value).and_then(|probability| {
            if probability.0 == 0.0 {
                Ok(Loss::None)
            } else if probability.0 < 1.0 {
                Ok(Loss::Independent { probability })
            } else {
                Err("expected a probability below 1: nothing would ever arrive".into())
            }
        });
    };
    if let Some(key) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(format!("{} {}", reader::shown_key(key), unknown(key, KEYS.into_iter())));
    }
    let read = |key: &str| {
        let value =
            table.get(key).ok_or(format!("{key} is missing: bursts need {}", KEYS.join(", ")))?;
        reader::probability(value).map_err(|why| format!("{key} is {}: {why}", show(value)))
    };
    let [good_to_bad, bad_to_good, loss_good, loss_bad] =
        [read(KEYS[0])?, read(KEYS[1])?, read(KEYS[2])?, read(KEYS[3])?];
    // Without a way back, or without any change of state, the stationary state is not defined.
    if bad_to_good.0 == 0.0 {
        return Err("bad_to_good is 0: expected a probability above 0, or bursts never end".into());
    }
    if good_to_bad.0 == 0.0 {
        return Err("good_to_bad is 0: expected a probability above 0; for loss without bursts \
                    write loss = \"2 %\""
            .into());
    }
    if loss_good.0 == 1.0 {
        return Err(
            "loss_good is 1: expected a probability below 1: nothing would ever arrive".into()
        );
    }
    if loss_good.0 == 0.0 && loss_bad.0 == 0.0 {
        return Err("loss_good and loss_bad are 0: expected one above 0, or loss = 0".into());
    }
    Ok(Loss::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad })
}

impl Loss {
    /// The fraction of packets lost in the long run.
    pub fn mean(&self) -> Probability {
        match *self {
            Loss::None => Probability(0.0),
            Loss::Independent { probability } => probability,
            Loss::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
                let bad = good_to_bad.0 / (good_to_bad.0 + bad_to_good.0);
                Probability(loss_good.0 + bad * (loss_bad.0 - loss_good.0))
            }
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Loss::None => write!(f, "{}", Probability(0.0)),
            Loss::Independent { probability } => write!(f, "{probability}"),
            Loss::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => write!(
                f,
                "bursts: good_to_bad {good_to_bad}, bad_to_good {bad_to_good}, \
                 loss_good {loss_good}, loss_bad {loss_bad}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        format!("v = {text}").parse::<toml::Table>().unwrap().remove("v").unwrap()
    }

    #[test]
    fn loss_by_probability_or_bursts() {
        assert_eq!(loss(&value("0")), Ok(Loss::None));
        assert_eq!(
            loss(&value("\"2 %\"")),
            Ok(Loss::Independent { probability: Probability(0.02) })
        );
        let bursts = loss(&value(
            "{ good_to_bad = \"1 %\", bad_to_good = 0.3, loss_good = 0, loss_bad = \"50 %\" }",
        ))
        .unwrap();
        assert!((bursts.mean().0 - 0.5 * 0.01 / 0.31).abs() < 1e-12);
        for (text, part) in [
            ("1.2", "from 0 to 1"),
            ("1", "below 1"),
            ("\"2 ms\"", "from 0 to 1"),
            ("{ good_to_bad = 0.1 }", "bad_to_good is missing"),
            ("{ god_to_bad = 0.1 }", "did you mean good_to_bad"),
            ("{ good_to_bad = 0.1, bad_to_good = 0, loss_good = 0, loss_bad = 1 }", "never end"),
            (
                "{ good_to_bad = 0.1, bad_to_good = 2, loss_good = 0, loss_bad = 1 }",
                "bad_to_good is 2",
            ),
        ] {
            let message = loss(&value(text)).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
        }
    }

    #[test]
    fn values_beyond_their_range() {
        assert!(link_delay(&value("\"2 h\"")).unwrap_err().contains("at most 3600 s"));
        assert!(mtu(&value("68")).unwrap_err().contains("576 to 65535"));
        assert!(mtu(&value("575")).unwrap_err().contains("576 to 65535"));
        assert_eq!(mtu(&value("576")), Ok(Link::LEAST_MTU));
        assert!(rate(&value("\"1000 Gbit/s\"")).unwrap_err().contains("at most 400 Gbit/s"));
        assert!(rate(&value("\"1 bit/s\"")).unwrap_err().contains("at least 100 bit/s"));
        assert_eq!(rate(&value("\"100 bit/s\"")), Ok(LOWEST_RATE));
        assert!(queue_packets(&value("0")).is_err());
        assert!(jitter(&value("[\"2 ms\", \"1 ms\"]")).unwrap_err().contains("not in order"));
        assert_eq!(jitter(&value("[\"0 ms\"]")), Ok(vec![]));
    }
}
