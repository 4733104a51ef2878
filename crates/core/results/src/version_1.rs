// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Manifests of schema version 1, whose columns were all text.
//!
//! A case's settings get their types back from its canonical form, which such a manifest holds for
//! all but very large studies; without it, and for what is not a case of a study, they are refused.

use serde_json::{Map, Value, json};
use warifu_model::{Evidence, Keyword, Kind};

use crate::figures::{FigureUsed, Figures, figure_id};

/// The words of version 1 for a figure that the study sets.
const CONDITION: &str = "chosen by the study";

/// The key at fault and what to do.
type Refusal = (&'static str, String);

/// The same manifest as the current version has it, but for the number of its version.
pub(crate) fn upgrade(mut old: Map<String, Value>) -> Result<Map<String, Value>, Refusal> {
    let predicted = match old.get("half").and_then(Value::as_str) {
        Some("predicted") => true,
        Some("measured") => false,
        _ => return Err(refusal("half", "is neither predicted nor measured")),
    };
    let Some(Value::Object(cases)) = old.remove("cases").filter(|cases| cases != &json!({})) else {
        return Err(refusal("cases", "is empty, so the types of its settings are unknown"));
    };
    let labels = object(old.remove("labels"));
    let inputs = object(old.remove("inputs"));
    // A measurement said nothing of what its link rests on, and nothing known is assumed.
    let case_evidence = |case_id: &str| match inputs.get(case_id).and_then(Value::as_array) {
        Some(inputs) if predicted => Evidence::weakest(inputs.iter().filter_map(evidence)),
        _ => Evidence::Assumed,
    };
    let mut new_cases = Vec::with_capacity(cases.len());
    for (case_id, case) in cases {
        let case = match case {
            // The predicted half had the canonical form as a text within the text.
            Value::String(text) => serde_json::from_str(&text)
                .map_err(|_| refusal("cases", &format!("has a malformed case {case_id}")))?,
            case => case,
        };
        let (label, evidence) = (labels.get(&case_id).cloned(), case_evidence(&case_id));
        let label = label.unwrap_or_else(|| json!(""));
        new_cases
            .push(json!({"case_id": case_id, "label": label, "evidence": evidence, "case": case}));
    }
    let mut figures = Figures::default();
    for (case_id, list) in &inputs {
        for input in list.as_array().into_iter().flatten() {
            let Some(figure) = figure(input) else {
                return Err(refusal(
                    "inputs",
                    &format!("has a figure without a kind in case {case_id}"),
                ));
            };
            figures.add(figure, case_id);
        }
    }
    old.remove("kinds");
    let evidence = new_cases.iter().map(|case| case["evidence"].clone()).collect::<Vec<_>>();
    old.insert("methods".into(), json!([if predicted { "simulated" } else { "emulated" }]));
    old.insert("evidence".into(), Value::Array(evidence));
    old.insert("figures".into(), json!(figures.into_list(new_cases.len())));
    old.insert("cases".into(), Value::Array(new_cases));
    for key in ["file", "overrides"] {
        let was = if key == "file" { "study_file" } else { key };
        if let (Some(value), Some(Value::Object(study))) = (old.remove(was), old.get_mut("study")) {
            study.insert(key.to_owned(), value);
        }
    }
    Ok(old)
}

fn refusal(key: &'static str, what: &str) -> Refusal {
    let message =
        format!("{what}: run the study again, or use the version that wrote it (schema_version 1)");
    (key, message)
}

fn object(value: Option<Value>) -> Map<String, Value> {
    match value {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

fn kind(input: &Value) -> Option<Kind> {
    Kind::from_word(input.get("kind")?.as_str()?).ok()
}

/// What a figure rests on; `None` for a condition.
fn evidence(input: &Value) -> Option<Evidence> {
    (input["source"] != CONDITION).then(|| kind(input).unwrap_or(Kind::Assumed).evidence())
}

fn figure(input: &Value) -> Option<FigureUsed> {
    let text = |key: &str| input[key].as_str().unwrap_or_default().to_owned();
    let mut figure = FigureUsed {
        id: String::new(),
        name: text("name"),
        what: None,
        number: None,
        last_digit_ns: None,
        value: text("value"),
        unit: text("unit"),
        source: text("source"),
        kind: kind(input)?,
        evidence: evidence(input),
        cases: None,
    };
    figure.id = figure_id(&figure);
    Some(figure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Manifest;

    const OLD: &str = r#"{
        "schema_version": 1, "half": "predicted", "run_id": "run-1", "seed": 7,
        "study": {"name": "meter", "sha256": "", "text": ""}, "study_file": "meter.toml",
        "overrides": [["link.rtt", "80 ms"]], "started": "", "kinds": ["published"],
        "cases": {"b": "{\"other\":1}", "a": {"other": 2}}, "labels": {"b": "rtt 60 ms"},
        "inputs": {
            "b": [{"name": "f", "value": "1 ms", "unit": "ns", "source": "s", "kind": "simulated"}],
            "a": [
                {"name": "f", "value": "1 ms", "unit": "ns", "source": "s", "kind": "simulated"},
                {"name": "g", "value": "2 ms", "unit": "ns", "source": "", "kind": "assumed"},
                {"name": "h", "value": "3 ms", "unit": "ns", "source": "chosen by the study",
                 "kind": "emulated"}
            ]
        }
    }"#;

    #[test]
    fn predicted_half() {
        let manifest = Manifest::parse(OLD, "manifest.json").unwrap();
        assert_eq!(manifest.schema_version, crate::SCHEMA_VERSION);
        assert_eq!(manifest.study.file, "meter.toml");
        assert_eq!(manifest.study.overrides, [("link.rtt".into(), "80 ms".into())]);
        let case = &manifest.cases[0];
        assert_eq!((case.case_id.as_str(), case.label.as_str()), ("b", "rtt 60 ms"));
        assert_eq!((&case.case, case.evidence), (&json!({"other": 1}), Evidence::Published));
        assert_eq!(manifest.cases[1].evidence, Evidence::Assumed);
        let of = |name: &str| manifest.figures.iter().find(|one| one.name == name).unwrap();
        assert_eq!(manifest.figures.len(), 3);
        assert_eq!((of("f").evidence, &of("f").cases), (Some(Evidence::Published), &None));
        assert_eq!(of("g").cases, Some(vec!["a".into()]));
        assert_eq!(of("h").evidence, None);
    }

    #[test]
    fn manifest_without_cases_or_of_no_study() {
        let refused = |from: &str, to: &str| {
            let text = OLD.replace(from, to);
            Manifest::parse(&text, "manifest.json").unwrap_err().to_string()
        };
        let cases = r#"{"b": "{\"other\":1}", "a": {"other": 2}}"#;
        assert_eq!(
            refused(cases, "{}"),
            "manifest.json: cases is empty, so the types of its settings are unknown: run the \
             study \
             again, or use the version that wrote it (schema_version 1)"
        );
        let study = refused(r#"{"name": "meter", "sha256": "", "text": ""}"#, "7");
        assert_eq!(study, "manifest.json: study is 7: expected an object: run the study again");
        let emulated = refused(r#""half": "predicted""#, r#""half": "emulated""#);
        assert!(
            emulated.starts_with("manifest.json: half is neither predicted nor measured"),
            "{emulated}"
        );
    }
}
