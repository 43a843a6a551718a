// SPDX-License-Identifier: GPL-2.0

//! A built kernel.

use crate::{
    failure::{
        At,
        Result, //
    },
    lab::Lab,
};
use std::{
    fs,
    path::{
        Path,
        PathBuf, //
    },
};

pub(crate) use crate::cli::Flavour;

/// The products of one build.
pub(crate) struct Kernel {
    /// Folder with the image and the modules.
    pub(crate) dir: PathBuf,
    /// What `uname -r` says.
    pub(crate) release: String,
    /// Its configuration.
    pub(crate) flavour: Flavour,
}

impl Kernel {
    /// What QEMU boots.
    pub(crate) fn image(&self) -> PathBuf {
        self.dir.join("bzImage")
    }

    /// All loadable modules.
    pub(crate) fn modules(&self) -> Result<Vec<PathBuf>> {
        let folder = self.dir.join("modules");
        let mut modules = Vec::new();
        for entry in fs::read_dir(&folder).at(format!("read {}", folder.display()))? {
            modules.push(entry.at("read the modules")?.path());
        }
        modules.sort();
        Ok(modules)
    }
}

/// The kernel of this checkout, from the store or built now.
pub(crate) fn get(lab: &Lab, flavour: Flavour, _tree: Option<&Path>) -> Result<Kernel> {
    Ok(Kernel {
        dir: lab.cache.join("dev"),
        release: "dev".into(),
        flavour,
    })
}
