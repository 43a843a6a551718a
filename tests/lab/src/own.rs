// SPDX-License-Identifier: GPL-2.0

//! Folders for things that are to end with this process, however that ends: those of labs that
//! are no more are removed by the next one.

use crate::failure::{
    At,
    Failure,
    Result, //
};
use std::{
    fs,
    fs::DirBuilder,
    io::ErrorKind,
    os::unix::fs::{
        DirBuilderExt,
        MetadataExt, //
    },
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
    make(&folder)?;
    Ok(folder)
}

/// Creates a folder that nobody else can put anything into.
///
/// The parents are open to everyone and the name can be guessed. A folder that waits there with a
/// link in it would have us write to what the link names.
fn make(folder: &Path) -> Result<()> {
    let step = format!("create {}", folder.display());
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        done => return done.at(step),
    }
    let found = fs::symlink_metadata(folder).at(&step)?;
    // SAFETY: The call has no preconditions.
    let ours = found.uid() == unsafe { libc::geteuid() };
    if found.is_dir() && ours && found.mode() & 0o077 == 0 {
        return Ok(());
    }
    let cause = "something is there that others may write to; remove it";
    Err(Failure::new(step, cause))
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
    use std::{
        fs::Permissions,
        os::unix::fs::{
            symlink,
            PermissionsExt, //
        },
    };

    #[test]
    fn only_folders_of_the_dead_are_removed() {
        let parent = std::env::temp_dir().join(format!("own-{}", process::id()));
        let dead = parent.join(format!("{PREFIX}{}", u32::MAX));
        let alive = parent.join(format!("{PREFIX}1"));
        let other = parent.join("other.4294967295");
        for path in [&dead, &alive, &other] {
            fs::create_dir_all(path).unwrap();
        }
        let ours = folder(&parent).unwrap();
        assert!(!dead.exists() && alive.exists() && other.exists() && ours.exists());
        assert_eq!(folder(&parent).unwrap(), ours);
        fs::remove_dir_all(&parent).unwrap();
    }

    #[test]
    fn a_folder_that_others_prepared_is_refused() {
        let parent = std::env::temp_dir().join(format!("own-theirs-{}", process::id()));
        fs::create_dir_all(parent.join("elsewhere")).unwrap();
        let (open, link, file) = (parent.join("1"), parent.join("2"), parent.join("3"));
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
        symlink("elsewhere", &link).unwrap();
        fs::write(&file, "").unwrap();
        assert!([open, link, file].iter().all(|path| make(path).is_err()));
        assert!(make(&parent.join("4")).is_ok());
        fs::remove_dir_all(&parent).unwrap();
    }
}
