// SPDX-License-Identifier: GPL-2.0

//! Writer for the archive format that the kernel unpacks at boot ("newc").

use std::collections::BTreeSet;

const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;
const CHARACTER: u32 = 0o020_000;

/// An archive in memory. Parent folders are added as needed.
pub(crate) struct Archive {
    bytes: Vec<u8>,
    entries: BTreeSet<String>,
}

struct Entry<'a> {
    path: &'a str,
    mode: u32,
    device: (u32, u32),
    content: &'a [u8],
}

impl Archive {
    /// An archive with nothing in it.
    pub(crate) fn new() -> Self {
        Self {
            bytes: Vec::new(),
            entries: BTreeSet::new(),
        }
    }

    /// Adds a file; the first one of a name wins.
    pub(crate) fn file(&mut self, path: &str, permissions: u32, content: &[u8]) {
        self.add(path, REGULAR | permissions, (0, 0), content);
    }

    /// Adds an empty folder.
    pub(crate) fn directory(&mut self, path: &str) {
        self.add(path, DIRECTORY | 0o755, (0, 0), &[]);
    }

    /// Adds a symbolic link.
    pub(crate) fn symlink(&mut self, path: &str, target: &str) {
        self.add(path, SYMLINK | 0o777, (0, 0), target.as_bytes());
    }

    /// Adds a character device.
    pub(crate) fn character(&mut self, path: &str, major: u32, minor: u32) {
        self.add(path, CHARACTER | 0o600, (major, minor), &[]);
    }

    /// Whether an entry of this name exists.
    pub(crate) fn contains(&self, path: &str) -> bool {
        self.entries.contains(path.trim_matches('/'))
    }

    /// The finished archive.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.write(&Entry {
            path: "TRAILER!!!",
            mode: 0,
            device: (0, 0),
            content: &[],
        });
        self.bytes
    }

    fn add(&mut self, path: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        let path = path.trim_matches('/');
        if path.is_empty() || self.contains(path) {
            return;
        }
        if let Some((parent, _)) = path.rsplit_once('/') {
            self.directory(parent);
        }
        self.entries.insert(path.to_owned());
        self.write(&Entry {
            path,
            mode,
            device,
            content,
        });
    }

    fn write(&mut self, entry: &Entry<'_>) {
        let links = if entry.mode & DIRECTORY == DIRECTORY {
            2
        } else {
            1
        };
        let fields = [
            self.entries.len() as u32,
            entry.mode,
            0,
            0,
            links,
            0,
            entry.content.len() as u32,
            0,
            0,
            entry.device.0,
            entry.device.1,
            entry.path.len() as u32 + 1,
            0,
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes
                .extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(entry.path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(entry.content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Parsed {
        name: String,
        mode: u32,
        content: Vec<u8>,
    }

    /// Reads the format from its description, to check the writer against.
    fn parse(bytes: &[u8]) -> Vec<Parsed> {
        let mut entries = Vec::new();
        let mut at = 0;
        loop {
            assert_eq!(&bytes[at..at + 6], b"070701");
            let field = |n: usize| {
                let start = at + 6 + 8 * n;
                let digits = std::str::from_utf8(&bytes[start..start + 8]).unwrap();
                u32::from_str_radix(digits, 16).unwrap() as usize
            };
            let (mode, size, name_size) = (field(1), field(6), field(11));
            let name = &bytes[at + 110..at + 110 + name_size - 1];
            assert_eq!(bytes[at + 110 + name_size - 1], 0);
            let data = (at + 110 + name_size).next_multiple_of(4);
            at = (data + size).next_multiple_of(4);
            let name = String::from_utf8(name.to_vec()).unwrap();
            if name == "TRAILER!!!" {
                assert_eq!(at, bytes.len());
                return entries;
            }
            entries.push(Parsed {
                name,
                mode: mode as u32,
                content: bytes[data..data + size].to_vec(),
            });
        }
    }

    #[test]
    fn parents_come_first_and_once() {
        let mut archive = Archive::new();
        archive.file("/bin/deep/sh", 0o755, b"abcde");
        archive.symlink("bin/ls", "sh");
        archive.character("dev/console", 5, 1);
        let entries = parse(&archive.finish());
        let names: Vec<_> = entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "bin",
                "bin/deep",
                "bin/deep/sh",
                "bin/ls",
                "dev",
                "dev/console"
            ]
        );
        assert_eq!(entries[2].content, b"abcde");
        assert_eq!(entries[2].mode, 0o100_755);
        assert_eq!(entries[3].content, b"sh");
        assert_eq!(entries[5].mode, 0o020_600);
    }

    #[test]
    fn first_of_a_name_wins() {
        let mut archive = Archive::new();
        archive.file("a", 0o644, b"1");
        archive.file("/a", 0o644, b"2");
        let entries = parse(&archive.finish());
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0].content, b"1");
    }
}
