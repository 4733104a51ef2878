// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The JSON Schema of a case, from which `scripts/generate_case.py` makes Python's types.

use serde_json::{Value, json};

use super::Case;
use super::canonical::CANONICAL_VERSION;

#[test]
fn committed_schema_is_current() {
    let current = json!({ "version": CANONICAL_VERSION, "schema": schemars::schema_for!(Case) });
    // `make golden` takes the file from this line.
    println!("case schema: {current}");
    let committed: Value =
        serde_json::from_str(include_str!("../../case.schema.json")).unwrap_or_default();
    assert_eq!(committed, current, "run `make golden` and give the reason in the commit");
}
