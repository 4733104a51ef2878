// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A socket that this user may not connect to: whose it is, and who can change that.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Why a connection to `what` at a path was refused with `PermissionDenied`; `for_others` says how
/// its owner lets the user with this number in.
#[must_use]
pub fn permission_denied(what: &str, path: &Path, for_others: impl Fn(u32) -> String) -> String {
    text(what, path, rustix::process::geteuid().as_raw(), for_others)
}

fn text(what: &str, path: &Path, user: u32, for_others: impl Fn(u32) -> String) -> String {
    let at = path.display();
    // Nobody can look into a closed folder: what refuses is the last that can be looked at.
    let refuses = path
        .ancestors()
        .find_map(|refuses| Some((refuses, fs::symlink_metadata(refuses).ok()?)))
        .filter(|(refuses, _)| !refuses.as_os_str().is_empty());
    let Some((refuses, about)) = refuses else {
        return format!("{what} at {at} cannot be reached: permission denied");
    };
    let (owner, folder) = (about.uid(), refuses != path);
    let (shown, mode) = (refuses.display(), about.mode() & 0o7777);
    if owner == user {
        let fix = if folder { "700" } else { "600" };
        return format!(
            "{what} at {at}: permission denied by {shown}, which is yours and has mode {mode:04o}: \
             chmod {fix} {shown}"
        );
    }
    let whose = if folder {
        format!("is in the folder {shown} of user {owner}, closed to user {user}")
    } else {
        format!("belongs to user {owner}, and is closed to user {user}")
    };
    format!("{what} at {at} {whose}: run this as user {owner}, or {}", for_others(user))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn owner_and_fix_of_a_closed_socket_are_named() {
        let folder = std::env::temp_dir().join(format!("warifu-closed-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let socket = folder.join("card.sock");
        fs::write(&socket, "").unwrap();
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o400)).unwrap();
        let me = fs::metadata(&socket).unwrap().uid();
        let other = me + 1;
        let say = |path: &Path, user| text("the card", path, user, |uid| format!("admit {uid}"));
        let at = socket.display();
        assert_eq!(
            say(&socket, other),
            format!(
                "the card at {at} belongs to user {me}, and is closed to user {other}: run this as \
                 user {me}, or admit {other}"
            )
        );
        assert_eq!(
            say(&socket, me),
            format!(
                "the card at {at}: permission denied by {at}, which is yours and has mode 0400: \
                 chmod 600 {at}"
            )
        );
        let hidden = folder.join("none/card.sock");
        let within = format!("is in the folder {} of user {me}, closed to", folder.display());
        assert!(say(&hidden, other).contains(&within), "{}", say(&hidden, other));
        fs::remove_dir_all(&folder).unwrap();
    }
}
