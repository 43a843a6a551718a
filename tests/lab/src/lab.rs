// SPDX-License-Identifier: GPL-2.0

//! Where the lab works: checkout, cache and output folders, and how it talks to its user.

use crate::{
    failure::{
        At,
        Failure,
        Result, //
    },
    step::repeat_all,
};
use indicatif::{
    MultiProgress,
    ProgressBar,
    ProgressStyle, //
};
use std::{
    env,
    fs,
    fs::{
        File,
        TryLockError, //
    },
    io::IsTerminal,
    path::{
        Path,
        PathBuf, //
    },
    time::Duration, //
};

/// The lab's surroundings.
pub(crate) struct Lab {
    /// The checkout.
    pub(crate) root: PathBuf,
    /// What may be kept between checkouts: kernel source, builds, tools.
    pub(crate) cache: PathBuf,
    /// What this checkout's runs leave: logs, results.
    pub(crate) out: PathBuf,
    /// Print what would be done, do nothing.
    pub(crate) dry_run: bool,
    bars: MultiProgress,
    terminal: bool,
}

impl Lab {
    /// Finds the folders.
    pub(crate) fn new(dry_run: bool) -> Result<Self> {
        let root = checkout()?;
        let cache = cache_folder(|name| env::var_os(name).map(PathBuf::from))?;
        Ok(Self {
            out: root.join("target/lab"),
            root,
            cache,
            dry_run,
            bars: MultiProgress::new(),
            terminal: std::io::stderr().is_terminal(),
        })
    }

    /// Tells the user one thing.
    pub(crate) fn say(&self, line: &str) {
        if !self.terminal || self.bars.println(line).is_err() {
            eprintln!("{line}");
        }
    }

    /// Tells what a dry run leaves out.
    pub(crate) fn would(&self, line: &str) {
        self.say(&format!("would: {line}"));
    }

    /// Shows progress of a long step; without a terminal it is announced once.
    pub(crate) fn bar(&self, len: u64, what: &str) -> ProgressBar {
        if self.dry_run {
            return ProgressBar::hidden();
        }
        if !self.terminal {
            eprintln!("{what} ...");
            return ProgressBar::hidden();
        }
        let bar = self.bars.add(ProgressBar::new(len));
        let template = "{elapsed_precise} {bar:30} {percent:>3}% {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(500));
        bar
    }

    /// The log file of a step.
    pub(crate) fn log_path(&self, step: &str) -> PathBuf {
        self.out.join("logs").join(format!("{}.log", slug(step)))
    }

    /// Waits for sole use of one thing in the cache; the lock ends with the returned file. A dry
    /// run needs none.
    pub(crate) fn lock(&self, what: &str) -> Result<Option<File>> {
        if self.dry_run {
            return Ok(None);
        }
        if let Some(file) = self.try_lock(what)? {
            return Ok(Some(file));
        }
        self.say(&format!("waiting for another lab that uses the {what}"));
        let file = self.lock_file(what)?;
        file.lock().at(format!("lock the {what}"))?;
        Ok(Some(file))
    }

    /// Like [`Lab::lock`], but gives up at once if another lab has it.
    pub(crate) fn try_lock(&self, what: &str) -> Result<Option<File>> {
        let file = self.lock_file(what)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(Failure::new(format!("lock the {what}"), error)),
        }
    }

    fn lock_file(&self, what: &str) -> Result<File> {
        let folder = self.cache.join("lock");
        let elsewhere = || format!("XDG_CACHE_HOME=/another/folder {}", repeat_all());
        make_dir(&folder).map_err(|failure| failure.or_repeat(elsewhere))?;
        let path = folder.join(slug(what));
        File::create(&path).at(format!("open the lock {}", path.display()))
    }
}

/// Creates a folder and its parents.
pub(crate) fn make_dir(path: &Path) -> Result<()> {
    fs::create_dir_all(path).at(format!("create {}", path.display()))
}

/// Puts content into a file as a whole: it is either the old or the new one.
pub(crate) fn replace_file(path: &Path, content: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        make_dir(folder)?;
    }
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let written = fs::write(&temporary, content).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // A part of the content, which nobody is going to look for.
        let _ = fs::remove_file(&temporary);
    }
    written.at(format!("write {}", path.display()))
}

/// A name for files, made from words for people.
pub(crate) fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '_' => slug.push(c),
            _ if slug.ends_with('-') || slug.is_empty() => {}
            _ => slug.push('-'),
        }
    }
    slug.trim_end_matches('-').to_owned()
}

fn checkout() -> Result<PathBuf> {
    let here = env::current_dir().at("find the current folder")?;
    let manifest = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    [Some(here), manifest]
        .iter()
        .flatten()
        .flat_map(|start| start.ancestors())
        .find(|folder| folder.join("tests/lab/Cargo.toml").is_file())
        .map(Path::to_path_buf)
        .ok_or_else(|| Failure::new("find the checkout", "run this inside a checkout of irqmod"))
}

fn cache_folder(var: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf> {
    let base = var("XDG_CACHE_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| Some(var("HOME")?.join(".cache")));
    base.map(|base| base.join("irqmod")).ok_or_else(|| {
        Failure::new(
            "find the cache folder",
            "neither XDG_CACHE_HOME nor HOME is set",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slug_keeps_names_readable() {
        assert_eq!(
            slug("build the base kernel (make)"),
            "build-the-base-kernel-make"
        );
        assert_eq!(slug("/a//b"), "a-b");
    }

    fn lab(name: &str, dry_run: bool) -> Lab {
        let folder = format!("irqmod-lab-test-{name}-{}", std::process::id());
        let cache = env::temp_dir().join(folder);
        Lab {
            cache,
            ..Lab::new(dry_run).unwrap()
        }
    }

    #[test]
    fn a_lock_is_for_one_and_a_dry_run_leaves_no_trace() {
        let lab = lab("lock", false);
        let held = lab.lock("one thing").unwrap();
        assert!(held.is_some());
        assert!(lab.try_lock("one thing").unwrap().is_none());
        assert!(lab.try_lock("another").unwrap().is_some());
        drop(held);
        assert!(lab.try_lock("one thing").unwrap().is_some());
        fs::remove_dir_all(&lab.cache).unwrap();
        let dry = self::lab("dry", true);
        assert!(dry.lock("one thing").unwrap().is_none() && !dry.cache.exists());
    }

    #[test]
    fn what_can_not_be_written_leaves_nothing() {
        let folder = lab("replace", false).cache;
        // A folder in the place of the file: the content can be written, but not put there.
        make_dir(&folder.join("file/in it")).unwrap();
        let failure = replace_file(&folder.join("file"), b"new").unwrap_err();
        assert!(failure.to_string().contains("file"), "{failure}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn cache_prefers_an_absolute_xdg_folder() {
        let both = |name: &str| Some(PathBuf::from(if name == "HOME" { "/h" } else { "/x" }));
        assert_eq!(cache_folder(both).unwrap(), Path::new("/x/irqmod"));
        let relative = |name: &str| Some(PathBuf::from(if name == "HOME" { "/h" } else { "x" }));
        assert_eq!(
            cache_folder(relative).unwrap(),
            Path::new("/h/.cache/irqmod")
        );
        assert!(cache_folder(|_| None).is_err());
    }
}
