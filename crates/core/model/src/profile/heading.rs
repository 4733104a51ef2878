// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What every profile begins with.

use super::figure::non_empty;
use crate::reader::Section;

/// A profile's description, once its name is known to be the file's.
pub(super) fn heading(root: &Section<'_>, name: &str) -> String {
    match root.read("name", non_empty) {
        Some(stated) if stated != name => {
            root.refuse(
                "name",
                format!("is \"{stated}\": expected \"{name}\", as the file is called"),
            );
        }
        None if root.table.get("name").is_none() => {
            root.refuse("name", format!("is missing: expected name = \"{name}\""));
        }
        _ => {}
    }
    if root.get("description").is_none() {
        root.refuse("description", "is missing: say in a sentence what this is");
    }
    root.read("description", non_empty).unwrap_or_default()
}
