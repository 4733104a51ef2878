// SPDX-License-Identifier: Apache-2.0 OR MIT
//! By what the operations of a study's cases were priced, each record once.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use warifu_model::{CostSource, CostUse};

/// What an operation costs in cases, and by what: the device's own figure, or a library's recipe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostUsed {
    /// The device's profile.
    pub device: String,
    /// The operation, by its dotted name.
    pub operation: String,
    /// By what: `"own"`, `{"recipe": "mbedtls-3.6"}`, or `"primitive"` of a signature.
    pub source: CostSource,
    /// How often a case does it.
    pub count: u32,
    /// Mean of all of them together with warm caches, ns.
    pub mean_ns: f64,
    /// The share that is priced by the instruction, from 0 to 1; `None` for an own figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remainder: Option<f64>,
    /// The cases, by their ids; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cases: Option<Vec<String>>,
}

/// Records as they come, case by case, in the order in which each was first met.
#[derive(Default)]
pub(crate) struct CostsUsed {
    list: Vec<CostUsed>,
    places: HashMap<String, usize>,
}

impl CostsUsed {
    /// Adds a cost of a case.
    pub(crate) fn add(&mut self, of: CostUse, case_id: &str) {
        let key = format!("{of:?}");
        let place = *self.places.entry(key).or_insert_with(|| {
            self.list.push(of.into());
            self.list.len() - 1
        });
        self.list[place].cases.get_or_insert_default().push(case_id.to_owned());
    }

    /// All of them; one that holds in every one of `cases` does not list them.
    pub(crate) fn into_list(mut self, cases: usize) -> Vec<CostUsed> {
        for cost in &mut self.list {
            cost.cases = cost.cases.take().filter(|users| users.len() < cases);
        }
        self.list
    }
}

impl From<CostUse> for CostUsed {
    fn from(of: CostUse) -> CostUsed {
        CostUsed {
            device: of.device,
            operation: of.operation.to_string(),
            source: of.source,
            count: of.count,
            // A tenth of a nanosecond is finer than any figure.
            mean_ns: (of.mean_ns * 10.0).round() / 10.0,
            remainder: of.remainder_share.map(|share| (share * 1e4).round() / 1e4),
            cases: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(source: CostSource, mean_ns: f64, share: Option<f64>) -> CostUse {
        CostUse {
            device: "nrf52840".into(),
            operation: "client.receive.Certificate".parse().unwrap(),
            source,
            count: 1,
            mean_ns,
            remainder_share: share,
        }
    }

    #[test]
    fn costs_of_cases_each_once() {
        let mut costs = CostsUsed::default();
        let recipe =
            || used(CostSource::Recipe("mbedtls-3.6".into()), 88_000_000.04, Some(0.031_26));
        costs.add(recipe(), "a");
        costs.add(recipe(), "b");
        costs.add(used(CostSource::Own, 5.0, None), "c");
        let list = costs.into_list(3);
        assert_eq!(list.len(), 2);
        assert_eq!(list[0].cases.as_deref(), Some(&["a".to_owned(), "b".to_owned()][..]));
        let json = serde_json::to_value(&list[0]).unwrap();
        let expected = serde_json::json!({
            "device": "nrf52840", "operation": "client.receive.Certificate",
            "source": {"recipe": "mbedtls-3.6"}, "count": 1, "mean_ns": 88_000_000.0,
            "remainder": 0.0313, "cases": ["a", "b"],
        });
        assert_eq!(json, expected);
        let own = serde_json::to_value(&list[1]).unwrap();
        assert_eq!((&own["source"], own.get("remainder")), (&serde_json::json!("own"), None));
        assert_eq!(serde_json::from_value::<CostUsed>(json).unwrap(), list[0]);
    }
}
