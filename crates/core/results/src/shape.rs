// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The shape of what a manifest holds without a type of its own: the canonical form of a case, and
//! what the lab and the link report. Readers go by it, so a manifest of another shape is refused
//! here, by its key, and not where it is used.

use serde_json::Value;

use crate::words::shown;

/// A key and what is wrong with it.
pub(crate) type Mistake = (String, String);

/// What a value may be; null is allowed wherever a key may be absent.
enum Shape {
    Text,
    Number,
    Whole,
    Flag,
    /// These keys, each of which may be absent, and any others.
    Object(&'static [(&'static str, Shape)]),
    /// An object whose values all have this shape.
    Each(&'static Shape),
    List(&'static Shape),
    /// A list, or the only item of one, as version 1 had it.
    OneOrList(&'static Shape),
}

use Shape::{Each, Flag, List, Number, Object, OneOrList, Text, Whole};

/// A case's canonical form, as far as readers use it; `kernel` is version 1's.
pub(crate) fn check_case(case: &Value, key: &str) -> Result<(), Mistake> {
    const TCP: Shape = Object(&[("device", Text), ("server", Text)]);
    const LINK: Shape =
        Object(&[("profile", Text), ("rtt", Number), ("jitter", List(&Number)), ("mtu", Number)]);
    const STACK: Shape = Object(&[("protocol", Text), ("kernel", Text), ("tcp", TCP)]);
    const CASE: Shape =
        Object(&[("link", LINK), ("stack", STACK), ("key_store", Object(&[("profile", Text)]))]);
    CASE.check_set(case, key)
}

/// The emulated link's reports by case id: one for each part that the case was measured in.
pub(crate) fn check_link_report(report: &Value, key: &str) -> Result<(), Mistake> {
    const LATENESS: Shape = Object(&[("p50", Number), ("p99", Number), ("max", Number)]);
    const DIRECTION: Shape =
        Object(&[("lateness_us", LATENESS), ("delivered", Whole), ("dropped_by_loss", Whole)]);
    const WINDOW: Shape = Object(&[
        ("accepted", Flag),
        ("late_fraction", Number),
        ("a_to_b", DIRECTION),
        ("b_to_a", DIRECTION),
    ]);
    const REPORT: Shape = OneOrList(&WINDOW);
    REPORT.check_set(report, key)
}

/// A measured cell: how many trials it has, and the parts that they were measured in.
pub(crate) fn check_cell(cell: &Value, key: &str) -> Result<(), Mistake> {
    const PART: Shape = Object(&[("route", Object(&[])), ("processor_shares", Each(&Number))]);
    const CELL: Shape = Object(&[("trials", Whole), ("parts", List(&PART))]);
    CELL.check_set(cell, key)
}

/// What is an object whatever its keys.
pub(crate) fn check_object(value: &Value, key: &str) -> Result<(), Mistake> {
    Shape::ANY.check(value, key)
}

impl Shape {
    /// An object, whatever its keys.
    const ANY: Shape = Object(&[]);

    fn check(&self, value: &Value, key: &str) -> Result<(), Mistake> {
        let fits = match (self, value) {
            (_, Value::Null)
            | (Text, Value::String(_))
            | (Number, Value::Number(_))
            | (Flag, Value::Bool(_)) => true,
            (Whole, Value::Number(number)) => number.is_u64(),
            (Object(known), Value::Object(map)) => {
                return known.iter().try_for_each(|(name, shape)| match map.get(*name) {
                    Some(inner) => shape.check(inner, &format!("{key}.{name}")),
                    None => Ok(()),
                });
            }
            (Each(shape), Value::Object(map)) => {
                return map.iter().try_for_each(|(name, inner)| {
                    shape.check_set(inner, &format!("{key}.{name}"))
                });
            }
            (List(shape) | OneOrList(shape), Value::Array(items)) => {
                return items.iter().enumerate().try_for_each(|(place, inner)| {
                    shape.check_set(inner, &format!("{key}[{place}]"))
                });
            }
            (OneOrList(shape), other) => return shape.check(other, key),
            _ => false,
        };
        if fits { Ok(()) } else { Err(self.mistake(value, key)) }
    }

    /// The same where null stands for nothing.
    fn check_set(&self, value: &Value, key: &str) -> Result<(), Mistake> {
        if value.is_null() { Err(self.mistake(value, key)) } else { self.check(value, key) }
    }

    fn mistake(&self, value: &Value, key: &str) -> Mistake {
        let expected = match self {
            Text => "a text",
            Number => "a number",
            Whole => "a whole number",
            Flag => "true or false",
            Object(_) | Each(_) => "an object",
            List(_) | OneOrList(_) => "a list",
        };
        (key.to_owned(), format!("is {}: expected {expected}", shown(value)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(result: Result<(), Mistake>) -> String {
        result.err().map_or(String::new(), |(key, message)| format!("{key} {message}"))
    }

    #[test]
    fn key_at_any_depth() {
        let window = json!([{"a_to_b": {"lateness_us": {"p99": "late"}}}]);
        assert_eq!(
            told(check_link_report(&window, "link_reports.x")),
            "link_reports.x[0].a_to_b.lateness_us.p99 is \"late\": expected a number"
        );
        assert_eq!(told(check_cell(&json!(3), "cells.x")), "cells.x is 3: expected an object");
        let parts = json!({"parts": [{"route": 7}]});
        assert_eq!(
            told(check_cell(&parts, "cells.x")),
            "cells.x.parts[0].route is 7: expected an object"
        );
        assert_eq!(
            told(check_case(&json!({"link": {"jitter": [0, null]}}), "cases[0].case")),
            "cases[0].case.link.jitter[1] is null: expected a number"
        );
    }

    #[test]
    fn absent_keys_others_and_a_report_without_a_list() {
        assert_eq!(told(check_case(&json!({"pattern": 1, "link": null}), "case")), "");
        assert_eq!(told(check_link_report(&json!({"accepted": true}), "x")), "");
        assert_eq!(told(check_link_report(&json!([{"late_fraction": 0.5}]), "x")), "");
        assert_eq!(told(check_cell(&json!({"trials": 5, "parts": [{}]}), "x")), "");
    }
}
