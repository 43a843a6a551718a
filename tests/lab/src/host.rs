// SPDX-License-Identifier: GPL-2.0

//! What kind of machine the lab runs on.

use std::{
    env,
    ffi::OsStr,
    fs,
    os::unix::fs::PermissionsExt,
    path::{
        Path,
        PathBuf, //
    },
    process::Command,
};

/// What decides how missing things can be had.
pub(crate) struct Host {
    /// `ID` of os-release.
    pub(crate) distribution: String,
    /// `VERSION_CODENAME` of os-release.
    pub(crate) codename: String,
    /// Whether packages may be installed.
    pub(crate) root: bool,
}

impl Host {
    /// Looks at this machine.
    pub(crate) fn detect() -> Self {
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        Self {
            distribution: field(&release, "ID"),
            codename: field(&release, "VERSION_CODENAME"),
            // SAFETY: The call has no preconditions.
            root: unsafe { libc::geteuid() } == 0,
        }
    }

    /// Whether the lab can install packages here by itself.
    pub(crate) fn can_install(&self) -> bool {
        self.root && self.distribution == "debian"
    }
}

fn field(release: &str, key: &str) -> String {
    let value = |line: &str| Some(line.strip_prefix(key)?.strip_prefix('=')?.to_owned());
    let value = release.lines().find_map(value).unwrap_or_default();
    value.trim_matches('"').to_owned()
}

/// Finds a program like a shell does, also where only root's shell looks.
pub(crate) fn which(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/bin", "/usr/sbin", "/bin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|candidate| is_executable(candidate))
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// The first line that a program prints about its version; empty if it can't be run.
pub(crate) fn version(program: impl AsRef<OsStr>) -> String {
    let output = Command::new(program).arg("--version").output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&text)
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Whether Perl finds a module, which is named by its file.
pub(crate) fn perl_module(path: &str) -> bool {
    let load = format!("require '{path}'");
    let output = Command::new("perl").args(["-e", &load]).output();
    output.is_ok_and(|output| output.status.success())
}

/// Where a Rust compiler has its library.
pub(crate) fn rust_sysroot(rustc: &Path) -> Option<PathBuf> {
    let output = Command::new(rustc)
        .args(["--print", "sysroot"])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (!text.is_empty()).then(|| PathBuf::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_os_release() {
        let release = "NAME=\"Debian GNU/Linux\"\nVERSION_CODENAME=bookworm\nID=debian\n";
        assert_eq!(field(release, "ID"), "debian");
        assert_eq!(field(release, "VERSION_CODENAME"), "bookworm");
        assert_eq!(field(release, "NOTHING"), "");
    }

    #[test]
    fn which_finds_only_what_can_be_run() {
        assert!(which("sh").is_some());
        assert!(which("no-such-program-here").is_none());
    }
}
