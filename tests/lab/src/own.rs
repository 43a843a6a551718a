// SPDX-License-Identifier: GPL-2.0

//! Folders for things that are to end with this process, however that ends: those of labs that
//! are no more are removed by the next one.

use crate::{
    failure::{
        At,
        Result, //
    },
    lab::make_dir,
};
use std::{
    fs,
    path::{
        Path,
        PathBuf, //
    },
    process, //
};

const PREFIX: &str = "irqmod-lab.";

/// This process's folder in `parent`.
pub(crate) fn folder(parent: &Path) -> Result<PathBuf> {
    let entries = fs::read_dir(parent).at(format!("read {}", parent.display()))?;
    for entry in entries.flatten() {
        let name = entry.file_name();
        if owner(&name.to_string_lossy()).is_some_and(is_gone) {
            // Another lab may have been faster.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let folder = parent.join(format!("{PREFIX}{}", process::id()));
    make_dir(&folder)?;
    Ok(folder)
}

/// The process that a folder belongs to.
fn owner(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.parse().ok()
}

fn is_gone(pid: u32) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_the_dead_are_removed() {
        let parent = std::env::temp_dir().join(format!("own-{}", process::id()));
        let dead = parent.join(format!("{PREFIX}{}", u32::MAX));
        let alive = parent.join(format!("{PREFIX}1"));
        let other = parent.join("other.4294967295");
        for path in [&dead, &alive, &other] {
            make_dir(path).unwrap();
        }
        let ours = folder(&parent).unwrap();
        assert!(!dead.exists() && alive.exists() && other.exists() && ours.exists());
        fs::remove_dir_all(&parent).unwrap();
    }
}
