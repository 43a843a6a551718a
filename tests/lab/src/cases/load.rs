// SPDX-License-Identifier: GPL-2.0

//! Words for fio.

/// A load on the disk, in fio's words.
pub(crate) struct Load {
    words: Vec<String>,
}

impl Load {
    /// A direct load of this kind (fio's `rw`) on a disk.
    pub(crate) fn new(name: &str, kind: &str) -> Self {
        let load = Self { words: Vec::new() };
        load.set("name", name)
            .set("rw", kind)
            .set("filename", "/dev/nvme0n1")
            .set("direct", 1)
            .set("thread", 1)
            .set("group_reporting", 1)
    }

    /// Adds an option.
    pub(crate) fn set(mut self, key: &str, value: impl ToString) -> Self {
        self.words.push(format!("--{key}={}", value.to_string()));
        self
    }

    /// Writes blocks of any size with checksums, reads them back and compares.
    pub(crate) fn verify(name: &str, engine: &str, depth: u32, jobs: u32, mib: u32) -> Self {
        let each = mib / jobs;
        Self::new(name, "randwrite")
            .set("bsrange", "512-1m")
            .set("ioengine", engine)
            .set("iodepth", depth)
            .set("numjobs", jobs)
            .set("size", format!("{each}m"))
            .set("offset_increment", format!("{each}m"))
            .set("verify", "crc32c")
            .set("verify_fatal", 1)
            .set("verify_state_save", 0)
            .set("verify_backlog", 128)
    }

    /// Reads all over the disk for some seconds.
    pub(crate) fn read(depth: u32, jobs: u32, seconds: u32) -> Self {
        Self::new("read", "randread")
            .set("bs", 4096)
            .set("ioengine", "io_uring")
            .set("iodepth", depth)
            .set("numjobs", jobs)
            .set("time_based", 1)
            .set("runtime", seconds)
    }

    /// Reads one block after the other, none of which may be late.
    pub(crate) fn alone(requests: u32) -> Self {
        Self::new("qd1", "randread")
            .set("bs", 4096)
            .set("ioengine", "io_uring")
            .set("iodepth", 1)
            .set("number_ios", requests)
            .set("max_latency", "5s")
    }

    /// The shell command.
    pub(crate) fn command(&self) -> String {
        format!("fio {}", self.words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_share_the_disk_without_overlap() {
        let command = Load::verify("v", "libaio", 32, 4, 64).command();
        assert!(
            command.contains("--size=16m --offset_increment=16m"),
            "{command}"
        );
    }
}
