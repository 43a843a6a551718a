// SPDX-License-Identifier: GPL-2.0

//! Where the kernel's source comes from: a tree of the user's, or Debian's package.

use crate::{
    apt::{
        self,
        Suite, //
    },
    failure::{
        At,
        Failure,
        Result, //
    },
    host::Host,
    key::Key,
    lab::{
        make_dir,
        Lab, //
    },
    step::{
        quote,
        Step, //
    },
};
use std::{
    fs,
    path::{
        Path,
        PathBuf, //
    },
};

const SERIES: &str = "7.3";
const SUITE: &str = "trixie-backports";
const PRISTINE: &str = "pristine";

/// A kernel source tree, and where it is built.
pub(crate) struct Source {
    /// What tells this source from others.
    pub(crate) version: String,
    folder: PathBuf,
    own: Option<PathBuf>,
}

/// Where one flavour of a kernel is built.
pub(crate) struct BuildTree {
    /// The source, into which irqmod goes.
    pub(crate) source: PathBuf,
    /// The products; the same folder unless the source is the user's.
    pub(crate) output: PathBuf,
}

impl Source {
    /// The user's own tree, if it is that.
    pub(crate) fn own(&self) -> Option<&Path> {
        self.own.as_deref()
    }

    /// The tree as it came, to look at.
    pub(crate) fn pristine(&self) -> PathBuf {
        let debian = || self.folder.join(PRISTINE);
        self.own.clone().unwrap_or_else(debian)
    }

    /// The tree of one flavour: a copy of Debian's source, built in place, or the user's own
    /// tree, built beside it.
    pub(crate) fn build_tree(&self, lab: &Lab, flavour: &str) -> Result<BuildTree> {
        let output = self.folder.join(flavour);
        if let Some(tree) = &self.own {
            return Ok(BuildTree {
                source: tree.clone(),
                output,
            });
        }
        if !output.is_dir() {
            self.copy_to(lab, &output)?;
        }
        Ok(BuildTree {
            source: output.clone(),
            output,
        })
    }

    fn copy_to(&self, lab: &Lab, output: &Path) -> Result<()> {
        let temporary = output.with_extension("copying");
        if lab.dry_run {
            lab.would(&format!("copy the kernel's source to {}", output.display()));
            return Ok(());
        }
        remove_dir(&temporary)?;
        let step = Step::new(lab, "copy the kernel's source", "cp");
        let from = self.folder.join(PRISTINE);
        step.args(["-a", "--reflink=auto"])
            .args([&from, &temporary])
            .run()?;
        fs::rename(&temporary, output).at("keep the copy of the kernel's source")
    }
}

/// Finds or fetches the source.
pub(crate) fn get(lab: &Lab, tree: Option<&Path>) -> Result<Source> {
    if let Some(tree) = tree {
        return own(lab, tree);
    }
    let _lock = lab.lock("kernel source")?;
    match cached(lab) {
        Some(source) => Ok(source),
        None => fetch(lab),
    }
}

fn own(lab: &Lab, tree: &Path) -> Result<Source> {
    let step = format!("use the kernel tree {}", tree.display());
    let tree = fs::canonicalize(tree).at(&step)?;
    fits(&tree, &step)?;
    let mut key = Key::new();
    key.part(tree.to_string_lossy().as_bytes());
    let makefile = fs::read_to_string(tree.join("Makefile")).at(&step)?;
    let name = format!("tree-{}", &key.name()[..12]);
    Ok(Source {
        folder: lab.cache.join("linux").join(&name),
        version: format!("{name} {}", version(&makefile)),
        own: Some(tree),
    })
}

/// What make leaves in a tree that it has built in place, and asks to be removed.
const BUILT_IN_PLACE: [&str; 3] = [
    ".config",
    "include/config",
    "arch/x86/include/generated", //
];

/// Whether the kernel can be built beside this tree.
fn fits(tree: &Path, step: &str) -> Result<()> {
    if !tree.join("rust/kernel/lib.rs").is_file() {
        let cause = "this is no Linux source tree with Rust in it";
        return Err(Failure::new(step, cause));
    }
    let name = tree.to_string_lossy();
    if name.contains(|c: char| c.is_whitespace() || c == ':') {
        let cause = "the kernel's make refuses spaces and colons in the name of a folder";
        return Err(Failure::new(step, cause));
    }
    if BUILT_IN_PLACE.iter().any(|mark| tree.join(mark).exists()) {
        let cause =
            "it was built in place; the lab builds beside the source and needs a clean tree";
        let repeat = format!("make -C {} mrproper", quote(tree.as_os_str()));
        return Err(Failure::new(step, cause).repeat(repeat));
    }
    Ok(())
}

/// The version that a kernel's Makefile states.
fn version(makefile: &str) -> String {
    let field = |name: &str| {
        let value = |line: &str| {
            Some(
                line.strip_prefix(name)?
                    .trim()
                    .strip_prefix('=')?
                    .to_owned(),
            )
        };
        makefile
            .lines()
            .find_map(value)
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    let (major, minor, patch) = (field("VERSION"), field("PATCHLEVEL"), field("SUBLEVEL"));
    format!("{major}.{minor}.{patch}{}", field("EXTRAVERSION"))
}

fn cached(lab: &Lab) -> Option<Source> {
    let entries = fs::read_dir(lab.cache.join("linux")).ok()?;
    let is_ours = |path: &PathBuf| {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        name.starts_with(SERIES) && path.join(PRISTINE).join("Makefile").is_file()
    };
    let newest = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(is_ours)
        .max()?;
    Some(in_folder(newest))
}

fn in_folder(folder: PathBuf) -> Source {
    Source {
        version: folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        folder,
        own: None,
    }
}

fn fetch(lab: &Lab) -> Result<Source> {
    let host = Host::detect();
    if host.distribution != "debian" {
        let cause = format!("only Debian has it as a package; name a tree of Linux {SERIES}");
        let repeat = "cargo lab kernel --tree PATH   (or KDIR=PATH in the environment)";
        return Err(Failure::new("get the kernel's source", cause)
            .repeat(repeat)
            .exit_code(2));
    }
    let package = format!("linux-source-{SERIES}");
    lab.say(&format!(
        "fetching the kernel's source ({package} of Debian's {SUITE}, 170 MB)"
    ));
    let suite = Suite::open(lab, &host.codename, SUITE)?;
    if lab.dry_run {
        lab.would(&format!(
            "download and unpack {package} into {}",
            lab.cache.display()
        ));
        return Ok(in_folder(lab.cache.join("linux").join(SERIES)));
    }
    let temporary = lab.cache.join("linux/unpack");
    fresh_dir(&temporary)?;
    suite.download(&package, &temporary)?;
    let file = apt::package_in(&temporary)?;
    let folder = lab.cache.join("linux").join(apt::version_of(lab, &file)?);
    unpack(lab, &file, &temporary, &package)?;
    make_dir(&folder)?;
    let tree = temporary.join(&package);
    fs::rename(&tree, folder.join(PRISTINE)).at("keep the kernel's source")?;
    fs::remove_dir_all(&temporary).at("remove what was unpacked")?;
    Ok(in_folder(folder))
}

fn unpack(lab: &Lab, file: &Path, temporary: &Path, package: &str) -> Result<()> {
    let step = Step::new(lab, "unpack the kernel's package", "dpkg-deb");
    step.args(["--extract"]).args([file, temporary]).run()?;
    let archive = temporary.join(format!("usr/src/{package}.tar.xz"));
    let bar = lab.bar(1, "unpack the kernel's source");
    let step = Step::new(lab, "unpack the kernel's source", "tar");
    step.args(["--extract", "--file"])
        .args([&archive])
        .dir(temporary)
        .run()?;
    bar.finish_and_clear();
    Ok(())
}

/// An empty folder; what an interrupted run has left in it goes.
pub(crate) fn fresh_dir(path: &Path) -> Result<()> {
    remove_dir(path)?;
    make_dir(path)
}

fn remove_dir(path: &Path) -> Result<()> {
    if path.exists() {
        fs::remove_dir_all(path).at(format!("remove {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_that_of_the_makefile() {
        let makefile =
            "# SPDX\nVERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 4\nEXTRAVERSION =\nNAME = x\n";
        assert_eq!(version(makefile), "7.3.4");
    }

    #[test]
    fn trees_that_can_not_be_built_are_told_from_others() {
        let root = std::env::temp_dir().join(format!("irqmod-fits-{}", std::process::id()));
        let refused = |tree: &Path| fits(tree, "step").err().map(|f| f.to_string());
        let (good, bad) = (root.join("good"), root.join("not good"));
        for tree in [&good, &bad] {
            make_dir(&tree.join("rust/kernel")).unwrap();
            assert!(refused(tree).unwrap().contains("no Linux source tree"));
            fs::write(tree.join("rust/kernel/lib.rs"), "").unwrap();
        }
        assert_eq!(refused(&good), None);
        assert!(refused(&bad).unwrap().contains("spaces"));
        make_dir(&good.join("include/config")).unwrap();
        assert!(refused(&good).unwrap().contains("mrproper"));
        fs::remove_dir_all(&root).unwrap();
    }
}
