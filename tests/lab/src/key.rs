// SPDX-License-Identifier: GPL-2.0

//! Content keys: a name for what a product was made from.

use crate::failure::{
    At,
    Result, //
};
use std::{
    fs,
    os::unix::{
        ffi::OsStrExt,
        fs::MetadataExt, //
    },
    path::{
        Path,
        PathBuf, //
    },
};

const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

/// A running hash (FNV-1a, 128 bits): against accidents, not against attackers.
#[derive(Clone)]
pub(crate) struct Key(u128);

impl Key {
    /// The key of nothing.
    pub(crate) fn new() -> Self {
        Self(OFFSET)
    }

    /// Adds one part; its length counts, so that parts can't run into each other.
    pub(crate) fn part(&mut self, bytes: &[u8]) {
        self.bytes(&(bytes.len() as u64).to_le_bytes());
        self.bytes(bytes);
    }

    /// Adds names and content of a file, or of all files below a folder; nothing if there is none.
    pub(crate) fn path(&mut self, root: &Path, path: &Path) -> Result<()> {
        let full = root.join(path);
        if full.is_dir() {
            for entry in sorted(&full)? {
                self.path(root, &path.join(entry))?;
            }
        } else if full.is_file() {
            self.part(path.to_string_lossy().as_bytes());
            self.part(&fs::read(&full).at(format!("read {}", full.display()))?);
        }
        Ok(())
    }

    /// Adds names, sizes and times of all files below a folder: for what make would build anew.
    pub(crate) fn stamps(&mut self, folder: &Path) -> Result<()> {
        for name in sorted(folder)? {
            let path = folder.join(&name);
            let data = fs::symlink_metadata(&path).at(format!("read {}", path.display()))?;
            self.part(name.as_os_str().as_bytes());
            if data.is_dir() {
                self.stamps(&path)?;
                // The end of a folder; no name is empty.
                self.part(&[]);
            } else {
                self.part(&data.len().to_le_bytes());
                self.part(&data.mtime().to_le_bytes());
                self.part(&data.mtime_nsec().to_le_bytes());
            }
        }
        Ok(())
    }

    /// The key as a file name.
    pub(crate) fn name(&self) -> String {
        format!("{:032x}", self.0)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(PRIME);
        }
    }
}

/// The names in a folder, without hidden ones.
fn sorted(folder: &Path) -> Result<Vec<PathBuf>> {
    let step = format!("read {}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).at(&step)? {
        let name = entry.at(&step)?.file_name();
        if !name.to_string_lossy().starts_with('.') {
            names.push(PathBuf::from(name));
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(parts: &[&str]) -> String {
        let mut key = Key::new();
        parts.iter().for_each(|part| key.part(part.as_bytes()));
        key.name()
    }

    #[test]
    fn plain_hash_is_fnv() {
        let mut key = Key::new();
        key.bytes(b"a");
        assert_eq!(key.name(), "d228cb696f1a8caf78912b704e4a8964");
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert_eq!(key(&["ab", "c"]), key(&["ab", "c"]));
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_ne!(key(&["ab"]), key(&["ab", ""]));
    }

    #[test]
    fn content_names_and_presence_of_files_count() {
        let root = std::env::temp_dir().join(format!("irqmod-key-{}", std::process::id()));
        let of = |root: &Path| {
            let mut key = Key::new();
            key.path(root, Path::new("d")).unwrap();
            key.name()
        };
        fs::create_dir_all(root.join("d/e")).unwrap();
        let empty = of(&root);
        fs::write(root.join("d/e/x"), "1").unwrap();
        let one = of(&root);
        fs::write(root.join("d/e/x"), "2").unwrap();
        let other = of(&root);
        fs::rename(root.join("d/e/x"), root.join("d/e/y")).unwrap();
        let renamed = of(&root);
        fs::write(root.join("d/.hidden"), "1").unwrap();
        assert_eq!(of(&root), renamed);
        fs::remove_dir_all(&root).unwrap();
        let all = [empty, one, other, renamed];
        assert!((0..4).all(|i| (0..i).all(|j| all[i] != all[j])));
    }

    #[test]
    fn an_edit_of_a_tree_is_noticed_without_reading_it() {
        let root = std::env::temp_dir().join(format!("irqmod-stamps-{}", std::process::id()));
        let now = || {
            let mut key = Key::new();
            key.stamps(&root).unwrap();
            key.name()
        };
        fs::create_dir_all(root.join("d/e")).unwrap();
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::write(root.join("d/x"), "1").unwrap();
        let first = now();
        fs::write(root.join(".git/index"), "1").unwrap();
        assert_eq!(now(), first);
        let file = fs::File::options().write(true).open(root.join("d/x"));
        let time = std::time::SystemTime::UNIX_EPOCH;
        file.unwrap().set_modified(time).unwrap();
        let touched = now();
        fs::rename(root.join("d/x"), root.join("d/e/x")).unwrap();
        let moved = now();
        fs::write(root.join("d/e/x"), "12").unwrap();
        let edited = now();
        fs::remove_dir_all(&root).unwrap();
        let all = [first, touched, moved, edited];
        assert!((0..4).all(|i| (0..i).all(|j| all[i] != all[j])));
    }
}
