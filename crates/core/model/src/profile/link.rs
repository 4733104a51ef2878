// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A link profile: the values of a network that a study need not repeat.

use super::figure::{FigureOf, Figures, Input, Provenance, non_empty};
use super::heading::heading;
use crate::case::{Link, Loss};
use crate::error::Error;
use crate::quantities as read;
use crate::reader::{Mistakes, Section};

/// A network's values, as a study's `[link]` may override them one by one.
#[derive(Clone, Debug)]
pub struct LinkProfile {
    /// Its name, the file's without ending.
    pub name: String,
    /// The file it was read from, for errors.
    pub file: String,
    /// What it is.
    pub description: String,
    /// Its values.
    pub link: Link,
    /// What its values leave out, in words for people.
    pub not_included: Option<String>,
    figures: Vec<Input>,
}

impl LinkProfile {
    /// Reads a profile; `file` is the name to give in errors.
    pub fn parse(name: &str, text: &str, file: &str) -> Result<LinkProfile, Error> {
        let mistakes = Mistakes::new(file);
        let profile = mistakes.parse(text).and_then(|table| parse(name, &table, file, &mistakes));
        mistakes.first_or(profile)
    }

    /// Its figure for a key of `[link]`, if it has one.
    pub(crate) fn input(&self, key: &str) -> Option<&Input> {
        self.figures.iter().find(|figure| figure.key == key)
    }
}

fn parse(
    name: &str,
    table: &toml::Table,
    file: &str,
    mistakes: &Mistakes<'_>,
) -> Option<LinkProfile> {
    let root = Section::root(table, mistakes);
    let description = heading(&root, name);
    let around = Provenance::read(&root, &Provenance::NONE);
    let mut figures = Figures::new(FigureOf::Link, name, &root, &around);
    let rtt = figures.need("rtt", "ns", read::link_delay);
    let jitter = figures.read("jitter", "ns", read::jitter);
    let keep_order = figures.read("keep_order", "", crate::reader::boolean);
    let rate_up = figures.read("rate_up", "bit/s", read::rate);
    let rate_down = figures.read("rate_down", "bit/s", read::rate);
    let queue_packets = figures.need("queue_packets", "1", read::queue_packets);
    let mtu = figures.need("mtu", "B", read::mtu);
    let loss = figures.read("loss", "1", read::loss);
    let inputs = figures.inputs;
    let not_included = not_included(&root);
    root.refuse_unknown();
    if mistakes.any() {
        return None;
    }
    let link = Link {
        profile: name.into(),
        rtt: rtt?,
        jitter: jitter.unwrap_or_default(),
        keep_order: keep_order.unwrap_or(true),
        rate_up,
        rate_down,
        queue_packets: queue_packets?,
        mtu: mtu?,
        loss: loss.unwrap_or(Loss::None),
    };
    let (name, file) = (name.into(), file.into());
    Some(LinkProfile { name, file, description, link, not_included, figures: inputs })
}

/// A text, or a table of the text with its source and kind, as figures have them.
fn not_included(root: &Section<'_>) -> Option<String> {
    if !root.get("not_included")?.is_table() {
        return root.read("not_included", non_empty);
    }
    let stated = root.section("not_included")?;
    Provenance::read(&stated, &Provenance::NONE);
    if stated.get("value").is_none() {
        stated.refuse("value", "is missing: say what the figures leave out");
    }
    let text = stated.read("value", non_empty);
    stated.refuse_unknown();
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: &str = "name = \"a\"\ndescription = \"b\"\nrtt = \"1 ms\"\nqueue_packets = 1\n\
                        mtu = 1500\nkind = \"assumed\"\n";

    #[test]
    fn what_a_link_leaves_out() {
        let parsed = |line: &str| LinkProfile::parse("a", &format!("{LINK}{line}"), "a.toml");
        assert_eq!(parsed("").unwrap().not_included, None);
        for line in [
            "not_included = \"waking the radio\"",
            "not_included = { value = \"waking the radio\", source = \"s\", kind = \"published\" }",
        ] {
            assert_eq!(parsed(line).unwrap().not_included.as_deref(), Some("waking the radio"));
        }
        for (line, part) in [
            ("not_included = \"\"", "not_included is \"\": expected a text"),
            ("not_included = { source = \"s\", kind = \"published\" }", "value is missing"),
            ("not_included = { value = \"x\", sorce = \"s\" }", "did you mean source?"),
        ] {
            let error = parsed(line).unwrap_err().to_string();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
