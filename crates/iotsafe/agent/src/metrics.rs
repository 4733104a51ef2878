// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Metrics for Prometheus. Sakomoto et al. 2025 name four to watch: signatures (success and time),
//! session reuse, card errors, authentication timeouts.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// Upper bounds, s, for the virtual card without its timing model, fast hardware (tens of ms), a
/// SIM (half a second) and its tail.
const SIGNATURE_BUCKETS_S: [f64; 14] =
    [0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.5, 0.7, 1.0, 2.0];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CardLabel {
    card: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CardAndKindLabels {
    card: String,
    kind: String,
}

/// The counters of one agent.
pub struct Metrics {
    registry: Registry,
    signatures: Family<CardAndKindLabels, Counter>,
    signature_seconds: Family<CardLabel, Histogram>,
    sessions_opened: Family<CardLabel, Counter>,
    sessions_reused: Family<CardLabel, Counter>,
    card_errors: Family<CardAndKindLabels, Counter>,
    retries: Family<CardLabel, Counter>,
    authentication_timeouts: Family<CardLabel, Counter>,
    tokens: Family<CardAndKindLabels, Counter>,
    requests: Family<CardAndKindLabels, Counter>,
    ahead: Family<CardAndKindLabels, Counter>,
}

impl Default for Metrics {
    fn default() -> Metrics {
        let seconds: fn() -> Histogram = || Histogram::new(SIGNATURE_BUCKETS_S);
        let mut metrics = Metrics {
            registry: Registry::with_prefix("warifu_agent"),
            signatures: Family::default(),
            signature_seconds: Family::new_with_constructor(seconds),
            sessions_opened: Family::default(),
            sessions_reused: Family::default(),
            card_errors: Family::default(),
            retries: Family::default(),
            authentication_timeouts: Family::default(),
            tokens: Family::default(),
            requests: Family::default(),
            ahead: Family::default(),
        };
        let registry = &mut metrics.registry;
        registry.register("signatures", "By outcome: ok, failed", metrics.signatures.clone());
        registry.register_with_unit(
            "signature",
            "From the card's turn to the checked signature, retries included",
            Unit::Seconds,
            metrics.signature_seconds.clone(),
        );
        let (opened, reused) = (&metrics.sessions_opened, &metrics.sessions_reused);
        registry.register("sessions_opened", "Sessions opened on the card", opened.clone());
        registry.register("sessions_reused", "Operations in an open session", reused.clone());
        registry.register("card_errors", "By kind", metrics.card_errors.clone());
        registry.register("retries", "Operations tried again", metrics.retries.clone());
        registry.register(
            "authentication_timeouts",
            "PINs whose verification the card did not answer in time",
            metrics.authentication_timeouts.clone(),
        );
        let tokens = metrics.tokens.clone();
        registry.register("tokens", "JSON Web Tokens: hit, miss, renewed, not_renewed", tokens);
        registry.register("requests", "Requests of callers, by what for", metrics.requests.clone());
        let ahead = metrics.ahead.clone();
        registry.register("ahead", "Work ahead: made (made_) and used (used_)", ahead);
        metrics
    }
}

impl Metrics {
    /// All metrics as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    pub(crate) fn signature(&self, card: &str, ok: bool, took: Duration) {
        count(&self.signatures, card, if ok { "ok" } else { "failed" });
        let label = CardLabel { card: card.to_owned() };
        self.signature_seconds.get_or_create(&label).observe(took.as_secs_f64());
    }

    pub(crate) fn session(&self, card: &str, reused: bool) {
        let family = if reused { &self.sessions_reused } else { &self.sessions_opened };
        family.get_or_create(&CardLabel { card: card.to_owned() }).inc();
    }

    pub(crate) fn card_error(&self, card: &str, kind: &str) {
        count(&self.card_errors, card, kind);
    }

    pub(crate) fn retry(&self, card: &str) {
        self.retries.get_or_create(&CardLabel { card: card.to_owned() }).inc();
    }

    pub(crate) fn authentication_timeout(&self, card: &str) {
        self.authentication_timeouts.get_or_create(&CardLabel { card: card.to_owned() }).inc();
    }

    pub(crate) fn token(&self, card: &str, kind: &str) {
        count(&self.tokens, card, kind);
    }

    pub(crate) fn request(&self, card: &str, kind: &str) {
        count(&self.requests, card, kind);
    }

    pub(crate) fn ahead(&self, card: &str, kind: &str) {
        count(&self.ahead, card, kind);
    }
}

fn count(family: &Family<CardAndKindLabels, Counter>, card: &str, kind: &str) {
    family.get_or_create(&CardAndKindLabels { card: card.to_owned(), kind: kind.to_owned() }).inc();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_contains_the_four_indicators() {
        let metrics = Metrics::default();
        metrics.signature("sim", true, Duration::from_millis(476));
        metrics.signature("sim", false, Duration::from_millis(3));
        metrics.session("sim", true);
        metrics.card_error("sim", "timeout");
        metrics.authentication_timeout("sim");
        metrics.token("sim", "hit");
        let text = metrics.text();
        for line in [
            "warifu_agent_signatures_total{card=\"sim\",kind=\"ok\"} 1",
            "warifu_agent_signatures_total{card=\"sim\",kind=\"failed\"} 1",
            "warifu_agent_signature_seconds_bucket{le=\"0.5\",card=\"sim\"} 2",
            "warifu_agent_sessions_reused_total{card=\"sim\"} 1",
            "warifu_agent_card_errors_total{card=\"sim\",kind=\"timeout\"} 1",
            "warifu_agent_authentication_timeouts_total{card=\"sim\"} 1",
            "warifu_agent_tokens_total{card=\"sim\",kind=\"hit\"} 1",
        ] {
            assert!(text.contains(line), "{line} is not in:\n{text}");
        }
    }
}
