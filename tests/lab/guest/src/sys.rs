// SPDX-License-Identifier: GPL-2.0

//! The few system calls that std does not offer.

use std::{
    fs::File,
    io,
    os::fd::AsRawFd,
    time::Duration, //
};

/// `BLKGETSIZE64`: the size of a block device in bytes.
const BLKGETSIZE64: libc::c_ulong = 0x8008_1272;

/// Nanoseconds of `CLOCK_MONOTONIC`.
pub fn now() -> u64 {
    let mut ts = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `ts` is a valid timespec that the call writes.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut ts) };
    ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64
}

/// Sleeps until `deadline` of [`now`], and not at all if it has passed.
pub fn sleep_until(deadline: u64) {
    let left = deadline.saturating_sub(now());
    std::thread::sleep(Duration::from_nanos(left));
}

/// Pins the calling thread to one CPU.
pub fn pin(cpu: usize) -> io::Result<()> {
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: A CPU set is an array of integers; all zero is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `cpu` is below CPU_SETSIZE, checked above.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: `set` is valid for its size; 0 is the calling thread.
    match unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The size of a block device in bytes.
pub fn device_size(file: &File) -> io::Result<u64> {
    let mut size = 0u64;
    // SAFETY: The ioctl writes one u64 to the address given.
    match unsafe { libc::ioctl(file.as_raw_fd(), BLKGETSIZE64, &mut size) } {
        0 => Ok(size),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The release of the running kernel.
pub fn kernel_release() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease")
        .map(|s| s.trim().to_owned())
        .unwrap_or_default()
}

/// Drops what is cached of a file, but for pages that are mapped.
pub fn forget_cached(file: &File) -> io::Result<()> {
    // SAFETY: The descriptor is open; no memory is passed.
    match unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// A private mapping: page aligned, anonymous and zeroed unless it is of a file, and freed on drop.
///
/// # Invariants
///
/// `start` is a mapping of `len` bytes, readable and writable, that nothing else refers to.
pub struct Pages {
    start: *mut u8,
    len: usize,
}

impl Pages {
    /// Maps `len` bytes.
    pub fn new(len: usize) -> io::Result<Self> {
        // SAFETY: A new private anonymous mapping touches no existing memory.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // INVARIANT: Just mapped.
        Ok(Self {
            start: start.cast(),
            len,
        })
    }

    /// Maps `len` bytes of `file`, each page of which is read when it is touched first. What is
    /// written stays in memory.
    ///
    /// A file that gets shorter than `len` ends a program that touches the rest.
    pub fn of(file: &File, len: usize) -> io::Result<Self> {
        // SAFETY: A new private mapping touches no existing memory.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // INVARIANT: Just mapped.
        let pages = Self {
            start: start.cast(),
            len,
        };
        // SAFETY: The mapping is ours; the advice changes no content.
        match unsafe { libc::madvise(start, len, libc::MADV_RANDOM) } {
            0 => Ok(pages),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The bytes of the mapping.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: By the type invariant, and borrowed as long as the result lives.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }

    /// The address of the mapping.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start
    }

    /// Its length.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: The mapping was made by `new` and is unmapped once.
        unsafe { libc::munmap(self.start.cast(), self.len) };
    }
}

/// One 32-bit register of a device, mapped from a file; unmapped on drop.
pub struct Registers {
    page: *mut u8,
    offset: usize,
}

/// What a mapping begins at a multiple of.
const PAGE: u64 = 4096;

impl Registers {
    /// Maps the register at this offset of a device's region.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the offset is no multiple of 4, and what the system says of the mapping.
    pub fn map(region: &File, offset: u64) -> io::Result<Self> {
        if !offset.is_multiple_of(4) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let start = libc::off_t::try_from(offset - offset % PAGE).map_err(io::Error::other)?;
        // SAFETY: A new shared mapping touches no existing memory.
        let page = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                PAGE as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                region.as_raw_fd(),
                start,
            )
        };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            page: page.cast(),
            offset: (offset % PAGE) as usize,
        })
    }

    fn register(&self) -> *mut u32 {
        self.page.wrapping_add(self.offset).cast()
    }

    /// Reads the register.
    pub fn read(&self) -> u32 {
        // SAFETY: Inside the mapping and aligned, by `map`.
        unsafe { self.register().read_volatile() }
    }

    /// Writes the register.
    pub fn write(&self, value: u32) {
        // SAFETY: Inside the mapping and aligned, by `map`.
        unsafe { self.register().write_volatile(value) }
    }
}

impl Drop for Registers {
    fn drop(&mut self) {
        // SAFETY: The mapping was made by `map` and is unmapped once.
        unsafe { libc::munmap(self.page.cast(), PAGE as usize) };
    }
}
