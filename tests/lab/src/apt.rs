// SPDX-License-Identifier: GPL-2.0

//! Debian's packages: the machine's own suites, and one more in a configuration of our own.
//!
//! The machine's apt stays as it is: another suite is reached by a copy of the machine's own
//! entries with the suite's name, in folders of ours.

use crate::{
    failure::{
        At,
        Failure,
        Result, //
    },
    lab::{
        make_dir,
        replace_file,
        Lab, //
    },
    step::Step,
};
use std::{
    fs,
    path::{
        Path,
        PathBuf, //
    },
};

const SOURCES: &str = "/etc/apt";

/// Installs packages from the machine's own suites.
pub(crate) fn install(lab: &Lab, packages: &[&str]) -> Result<()> {
    let update = Step::new(lab, "update the list of packages", "apt-get");
    update.args(["update"]).run()?;
    finish_interrupted(lab)?;
    get(lab, "install packages")
        .args(INSTALL)
        .args(packages)
        .run()
}

/// What is in the way of a package is not removed for it: the lab does not own the machine.
const INSTALL: [&str; 4] = ["install", "--yes", "--no-install-recommends", "--no-remove"];

/// Configures what an installation that was interrupted has unpacked; until then apt refuses
/// everything.
fn finish_interrupted(lab: &Lab) -> Result<()> {
    Step::new(lab, "finish interrupted installations", "dpkg")
        .args(["--configure", "-a"])
        .env("DEBIAN_FRONTEND", "noninteractive")
        .run()
}

fn get<'a>(lab: &'a Lab, name: &str) -> Step<'a> {
    Step::new(lab, name, "apt-get")
        .args(["-o", "DPkg::Lock::Timeout=300"])
        .env("DEBIAN_FRONTEND", "noninteractive")
}

/// apt with one more suite.
pub(crate) struct Suite<'a> {
    lab: &'a Lab,
    name: String,
    folder: PathBuf,
}

impl<'a> Suite<'a> {
    /// Sets the configuration up and fetches the suite's list of packages.
    pub(crate) fn open(lab: &'a Lab, codename: &str, name: &str) -> Result<Self> {
        let suite = Self {
            lab,
            name: name.to_owned(),
            folder: lab.cache.join("apt").join(name),
        };
        let sources = with_suite(&read_sources(Path::new(SOURCES))?, codename, name)?;
        if !lab.dry_run {
            for part in ["lists/partial", "archives/partial", "parts"] {
                make_dir(&suite.folder.join(part))?;
            }
            replace_file(&suite.folder.join("parts/lab.sources"), sources.as_bytes())?;
        }
        let what = format!("update the list of packages of {name}");
        suite.step(&what).args(["update"]).run()?;
        Ok(suite)
    }

    /// Installs packages, with the suite preferred for those whose names match `preferred`.
    ///
    /// For those only: a library of the suite, where the distribution's own would do, keeps that
    /// library's development package from being installed later.
    pub(crate) fn install(&self, packages: &[&str], preferred: &str) -> Result<()> {
        let pins = self.folder.join("preferences");
        if !self.lab.dry_run {
            replace_file(&pins, pin(preferred, &self.name).as_bytes())?;
        }
        finish_interrupted(self.lab)?;
        let step = self.step(&format!("install packages from {}", self.name));
        step.args(["-o", &format!("Dir::Etc::preferences={}", pins.display())])
            .args(INSTALL)
            .args(packages)
            .run()
    }

    /// Fetches a package's file into a folder.
    pub(crate) fn download(&self, package: &str, folder: &Path) -> Result<()> {
        let step = self.step(&format!("download {package}")).dir(folder);
        step.args(["download", &format!("{package}/{}", self.name)])
            .run()
    }

    fn step(&self, name: &str) -> Step<'a> {
        let folder = |part: &str| self.folder.join(part).display().to_string();
        get(self.lab, name)
            .args(["-o", "Dir::Etc::sourcelist=/dev/null"])
            .args(["-o", &format!("Dir::Etc::sourceparts={}", folder("parts"))])
            .args(["-o", &format!("Dir::State::lists={}", folder("lists"))])
            .args([
                "-o",
                &format!("Dir::Cache::archives={}", folder("archives")),
            ])
            .args([
                "-o",
                "Dir::Cache::pkgcache=",
                "-o",
                "Dir::Cache::srcpkgcache=",
            ])
            .args(["-o", "APT::Sandbox::User=root"])
    }
}

/// What makes apt prefer a suite for some packages.
fn pin(packages: &str, suite: &str) -> String {
    format!("Package: {packages}\nPin: release n={suite}\nPin-Priority: 600\n")
}

/// All entries of the machine's apt, in the form of stanzas.
fn read_sources(folder: &Path) -> Result<Vec<String>> {
    let mut files = vec![folder.join("sources.list")];
    if let Ok(entries) = fs::read_dir(folder.join("sources.list.d")) {
        files.extend(entries.flatten().map(|entry| entry.path()));
    }
    files.sort();
    let mut stanzas = Vec::new();
    for file in files {
        let extension = file.extension().unwrap_or_default().to_owned();
        let text = match extension.to_str() {
            Some("list" | "sources") => fs::read_to_string(&file).unwrap_or_default(),
            _ => continue,
        };
        if extension == "list" {
            stanzas.extend(text.lines().filter_map(stanza_of_line));
        } else {
            stanzas.extend(stanzas_of(&text));
        }
    }
    Ok(stanzas)
}

/// The stanzas of a file, without comments and those that are switched off.
fn stanzas_of(text: &str) -> Vec<String> {
    let plain: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    plain
        .join("\n")
        .split("\n\n")
        .map(str::trim)
        .filter(|stanza| !stanza.is_empty() && field(stanza, "Enabled") != Some("no"))
        .map(str::to_owned)
        .collect()
}

/// A stanza for an entry of the old one-line form.
fn stanza_of_line(line: &str) -> Option<String> {
    let rest = line.trim().strip_prefix("deb ")?.trim();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => ("", rest),
    };
    let mut words = rest.split_whitespace();
    let (uri, suite) = (words.next()?, words.next()?);
    let components = words.collect::<Vec<_>>().join(" ");
    let mut stanza = format!("Types: deb\nURIs: {uri}\nSuites: {suite}\nComponents: {components}");
    for option in options.split_whitespace() {
        if let Some(keyring) = option.strip_prefix("signed-by=") {
            stanza.push_str(&format!("\nSigned-By: {keyring}"));
        }
    }
    Some(stanza)
}

fn field<'a>(stanza: &'a str, name: &str) -> Option<&'a str> {
    let value = |line: &'a str| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim());
    stanza.lines().find_map(value)
}

/// The machine's entries, and a copy of its main one with another suite's name.
fn with_suite(stanzas: &[String], codename: &str, suite: &str) -> Result<String> {
    let is_main = |stanza: &&String| {
        let suites = field(stanza, "Suites").unwrap_or_default();
        field(stanza, "Types")
            .unwrap_or_default()
            .split_whitespace()
            .any(|word| word == "deb")
            && suites
                .split_whitespace()
                .any(|word| word == codename || word == "stable")
    };
    let Some(main) = stanzas.iter().find(is_main) else {
        let cause = format!("no entry for {codename} in {SOURCES}: install its apt sources");
        return Err(Failure::new(format!("reach {suite}"), cause));
    };
    let suites = |line: &str| match line.strip_prefix("Suites:") {
        Some(_) => format!("Suites: {suite}"),
        None => line.to_owned(),
    };
    let copy: Vec<_> = main.lines().map(suites).collect();
    let mut all = stanzas.to_vec();
    all.push(copy.join("\n"));
    Ok(all.join("\n\n") + "\n")
}

/// The version in the file of a package.
pub(crate) fn version_of(lab: &Lab, package: &Path) -> Result<String> {
    let step = Step::new(lab, "read the version of a package", "dpkg-deb");
    let text = step
        .args(["--field"])
        .args([package])
        .args(["Version"])
        .output()?;
    Ok(text.trim().to_owned())
}

/// The one file in a folder that ends in `.deb`.
pub(crate) fn package_in(folder: &Path) -> Result<PathBuf> {
    let step = format!("find the package in {}", folder.display());
    let entries = fs::read_dir(folder).at(&step)?;
    let mut files = entries.flatten().map(|entry| entry.path());
    files
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .ok_or_else(|| Failure::new(step, "there is none"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: &str = "# snapshot\nTypes: deb\nURIs: http://mirror.invalid/debian\n\
        Suites: bookworm bookworm-updates\nComponents: main\nSigned-By: /usr/share/k.gpg\n\n\
        Types: deb\nURIs: http://mirror.invalid/security\nSuites: bookworm-security\n\
        Components: main\n\nEnabled: no\nTypes: deb\nURIs: http://other.invalid/x\nSuites: y\n";

    #[test]
    fn another_suite_is_a_copy_of_the_main_entry() {
        let stanzas = stanzas_of(MACHINE);
        assert_eq!(stanzas.len(), 2);
        let text = with_suite(&stanzas, "bookworm", "trixie-backports").unwrap();
        let copy = text.trim_end().rsplit("\n\n").next().unwrap();
        let expected = "Types: deb\nURIs: http://mirror.invalid/debian\n\
            Suites: trixie-backports\nComponents: main\nSigned-By: /usr/share/k.gpg";
        assert_eq!(copy, expected);
        assert!(text.contains("Suites: bookworm-security"));
    }

    #[test]
    fn only_the_named_packages_are_preferred() {
        let text = pin("qemu-* seabios", "bookworm-backports");
        let want =
            "Package: qemu-* seabios\nPin: release n=bookworm-backports\nPin-Priority: 600\n";
        assert_eq!(text, want);
    }

    #[test]
    fn old_form_is_understood() {
        let line = "deb [arch=amd64 signed-by=/k.gpg] http://mirror.invalid/debian bookworm main x";
        let stanza = stanza_of_line(line).unwrap();
        assert_eq!(field(&stanza, "Components"), Some("main x"));
        assert_eq!(field(&stanza, "Signed-By"), Some("/k.gpg"));
        assert!(stanza_of_line("# deb http://mirror.invalid/debian bookworm main").is_none());
        assert!(stanza_of_line("deb-src http://mirror.invalid/debian bookworm main").is_none());
    }

    #[test]
    fn machine_without_entries_is_told_so() {
        let failure = with_suite(&[], "bookworm", "bookworm-backports").unwrap_err();
        assert!(failure.to_string().contains("no entry for bookworm"));
    }
}
