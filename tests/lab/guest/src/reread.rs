// SPDX-License-Identifier: GPL-2.0

//! A reader whose buffer is on the disk: each read waits for one of a block device in the middle.

use crate::sys;
use std::{
    fs::File,
    io::{
        self,
        Read,
        Seek, //
    },
    path::Path, //
};

/// Pages are at least as large.
const PAGE: usize = 4096;

/// Reads `file` into one page of `disk` after the other, until `stop` exists, and returns how often.
///
/// The mapping is private: what is read is not written to the disk.
pub fn run(file: &Path, disk: &Path, stop: &Path) -> io::Result<u64> {
    let mut file = File::open(file)?;
    let disk = File::open(disk)?;
    let len = usize::try_from(sys::device_size(&disk)?).map_err(io::Error::other)?;
    let mut reads = 0;
    loop {
        sys::forget_cached(&disk)?;
        let mut buffer = sys::Pages::of(&disk, len)?;
        for page in buffer.as_mut_slice().chunks_exact_mut(PAGE) {
            if stop.exists() {
                return Ok(reads);
            }
            file.rewind()?;
            let _ = file.read(page)?;
            reads += 1;
        }
    }
}
