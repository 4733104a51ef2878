// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All profiles at hand, by kind and name.

use std::collections::BTreeMap;

use super::accelerator::AcceleratorProfile;
use super::device::DeviceProfile;
use super::key_store::KeyStoreProfile;
use super::link::LinkProfile;
use super::recipe::RecipeProfile;
use super::tcp::TcpProfile;
use crate::error::Error;
use crate::nearest::nearest;

/// The kinds of profiles, each with its folder under `profiles/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProfileKind {
    /// `profiles/devices/`.
    Device,
    /// `profiles/key-stores/`.
    KeyStore,
    /// `profiles/links/`.
    Link,
    /// `profiles/tcp/`.
    Tcp,
    /// `profiles/accelerators/`.
    Accelerator,
    /// `profiles/recipes/`.
    Recipe,
}

/// All profiles at hand, by kind and name.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    devices: BTreeMap<String, DeviceProfile>,
    key_stores: BTreeMap<String, KeyStoreProfile>,
    links: BTreeMap<String, LinkProfile>,
    tcp: BTreeMap<String, TcpProfile>,
    accelerators: BTreeMap<String, AcceleratorProfile>,
    recipes: BTreeMap<String, RecipeProfile>,
    /// The first mistake of each profile that cannot be read.
    broken: BTreeMap<(ProfileKind, String), Error>,
}

impl ProfileKind {
    /// Every kind.
    pub const ALL: [ProfileKind; 6] = [
        ProfileKind::Device,
        ProfileKind::KeyStore,
        ProfileKind::Link,
        ProfileKind::Tcp,
        ProfileKind::Accelerator,
        ProfileKind::Recipe,
    ];

    /// The folder under `profiles/`.
    pub const fn folder(self) -> &'static str {
        match self {
            ProfileKind::Device => "devices",
            ProfileKind::KeyStore => "key-stores",
            ProfileKind::Link => "links",
            ProfileKind::Tcp => "tcp",
            ProfileKind::Accelerator => "accelerators",
            ProfileKind::Recipe => "recipes",
        }
    }

    /// The key in a study, as one word: `device`, `key_store`, `link`, `tcp`;
    /// `accelerator`, which only `warifu dds advise` takes, and `recipe`, which devices name as
    /// their `library`.
    pub const fn name(self) -> &'static str {
        match self {
            ProfileKind::Device => "device",
            ProfileKind::KeyStore => "key_store",
            ProfileKind::Link => "link",
            ProfileKind::Tcp => "tcp",
            ProfileKind::Accelerator => "accelerator",
            ProfileKind::Recipe => "recipe",
        }
    }

    /// The kind of a word or a folder.
    pub fn from_name(name: &str) -> Option<ProfileKind> {
        ProfileKind::ALL.into_iter().find(|kind| kind.name() == name || kind.folder() == name)
    }
}

impl Catalog {
    /// Reads a profile and adds it; one with the same kind and name takes the older one's place.
    /// `file` is the name to give in errors.
    ///
    /// # Errors
    /// The first mistake in the text; the catalog is then unchanged.
    pub fn add(
        &mut self,
        kind: ProfileKind,
        name: &str,
        text: &str,
        file: &str,
    ) -> Result<(), Error> {
        let key = name.to_string();
        match kind {
            ProfileKind::Device => {
                self.devices.insert(key, DeviceProfile::parse(name, text, file)?);
            }
            ProfileKind::KeyStore => {
                self.key_stores.insert(key, KeyStoreProfile::parse(name, text, file)?);
            }
            ProfileKind::Link => {
                self.links.insert(key, LinkProfile::parse(name, text, file)?);
            }
            ProfileKind::Tcp => {
                self.tcp.insert(key, TcpProfile::parse(name, text, file)?);
            }
            ProfileKind::Accelerator => {
                let profile = AcceleratorProfile::parse(name, text, file)?;
                self.accelerators.insert(key, profile);
            }
            ProfileKind::Recipe => {
                self.recipes.insert(key, RecipeProfile::parse(name, text, file)?);
            }
        }
        Ok(())
    }

    /// As [`Catalog::add`], but a mistake is kept for the study that names the profile: one that is
    /// half written must not stop those that do without it.
    pub fn add_or_keep_mistake(&mut self, kind: ProfileKind, name: &str, text: &str, file: &str) {
        if let Err(error) = self.add(kind, name, text, file) {
            self.broken.insert((kind, name.into()), error);
        }
    }

    /// The device profile of a name.
    pub fn device(&self, name: &str) -> Option<&DeviceProfile> {
        self.devices.get(name)
    }

    /// The key-store profile of a name.
    pub fn key_store(&self, name: &str) -> Option<&KeyStoreProfile> {
        self.key_stores.get(name)
    }

    /// The link profile of a name.
    pub fn link(&self, name: &str) -> Option<&LinkProfile> {
        self.links.get(name)
    }

    /// The TCP profile of a name.
    pub fn tcp(&self, name: &str) -> Option<&TcpProfile> {
        self.tcp.get(name)
    }

    /// The accelerator profile of a name.
    pub fn accelerator(&self, name: &str) -> Option<&AcceleratorProfile> {
        self.accelerators.get(name)
    }

    /// The recipes of a library, by name.
    pub fn recipe(&self, name: &str) -> Option<&RecipeProfile> {
        self.recipes.get(name)
    }

    /// The names of a kind, sorted.
    pub fn names(&self, kind: ProfileKind) -> Vec<&str> {
        fn keys<T>(map: &BTreeMap<String, T>) -> Vec<&str> {
            map.keys().map(String::as_str).collect()
        }
        match kind {
            ProfileKind::Device => keys(&self.devices),
            ProfileKind::KeyStore => keys(&self.key_stores),
            ProfileKind::Link => keys(&self.links),
            ProfileKind::Tcp => keys(&self.tcp),
            ProfileKind::Accelerator => keys(&self.accelerators),
            ProfileKind::Recipe => keys(&self.recipes),
        }
    }

    /// What to say of a name that is not there: `expected one of ...`, or what is wrong with it.
    pub(crate) fn hint(&self, kind: ProfileKind, name: &str) -> String {
        if let Some(error) = self.broken.get(&(kind, name.to_string())) {
            return format!("its profile has a mistake: {error}");
        }
        let names = self.names(kind);
        let known = if names.is_empty() {
            format!("there are no profiles in profiles/{}", kind.folder())
        } else {
            format!("expected one of {}", names.join(", "))
        };
        let hint = match nearest(name, names.iter().copied()) {
            Some(name) => format!("; did you mean \"{name}\"?"),
            None => String::new(),
        };
        // The one profile that every user makes and none is shipped of.
        if kind == ProfileKind::Device && name == "this-host" {
            return format!("{known}; `warifu calibrate host` makes the profile of this machine");
        }
        format!("{known}{hint}")
    }
}
