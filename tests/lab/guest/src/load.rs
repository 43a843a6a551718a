// SPDX-License-Identifier: GPL-2.0

//! The storage load: random reads by io_uring with fixed buffers and fixed files.

use crate::{
    gate::Gate,
    report::{
        Latency,
        Load, //
    },
    sys::{
        self,
        Pages, //
    },
};
use hdrhistogram::Histogram;
use io_uring::{
    opcode,
    squeue,
    types,
    IoUring, //
};
use std::{
    fs::{
        self,
        File,
        OpenOptions, //
    },
    io,
    os::{
        fd::AsRawFd,
        unix::fs::OpenOptionsExt, //
    },
    path::{
        Path,
        PathBuf, //
    },
    sync::Arc,
    thread::JoinHandle,
    time::Duration, //
};

/// How long outstanding requests are waited for after the window.
const DRAIN: Duration = Duration::from_secs(30);

/// One disk and the CPU of its submitter.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The block device.
    pub disk: PathBuf,
    /// The CPU that submits.
    pub cpu: usize,
}

impl std::str::FromStr for Target {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        let (disk, cpu) = s
            .rsplit_once('@')
            .ok_or_else(|| format!("`{s}`: expected DISK@CPU, e.g. /dev/nvme0n1@1"))?;
        let cpu = cpu
            .parse()
            .map_err(|_| format!("`{cpu}`: expected the number of a CPU"))?;
        Ok(Self {
            disk: disk.into(),
            cpu,
        })
    }
}

/// What each submitter does.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Requests kept outstanding per disk.
    pub depth: u32,
    /// Bytes per request.
    pub block: u32,
    /// Completions to wait for in one system call.
    pub reap: u32,
    /// Block after block rather than anywhere.
    pub sequential: bool,
}

/// Which block comes next: the same in every run.
struct Walk {
    blocks: u64,
    state: u64,
    sequential: bool,
}

impl Walk {
    fn new(blocks: u64, seed: u64, sequential: bool) -> Self {
        let state = match sequential {
            true => 0,
            false => seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        };
        Self {
            blocks,
            state,
            sequential,
        }
    }

    fn step(&mut self) -> u64 {
        if self.sequential {
            let block = self.state;
            self.state = (block + 1) % self.blocks;
            return block;
        }
        // xorshift64*: cheap.
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let r = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d);
        ((u128::from(r) * u128::from(self.blocks)) >> 64) as u64
    }
}

/// A submitter that is ready to go.
pub struct Worker {
    ring: IoUring,
    _file: File,
    pages: Pages,
    shape: Shape,
    walk: Walk,
    submitted: Vec<u64>,
    latency: Histogram<u64>,
    completions: u64,
    errors: u64,
}

/// What one submitter did.
pub struct Done {
    latency: Histogram<u64>,
    completions: u64,
    errors: u64,
    lost: u64,
}

/// A submitter at work.
pub type Submitter = JoinHandle<io::Result<Done>>;

/// Turns off what would move completions elsewhere or merge requests, best effort.
///
/// Completions stay on the CPU that took the interrupt (`rq_affinity`), no I/O scheduler.
pub fn prepare(disk: &Path) {
    let Some(name) = disk.file_name() else { return };
    let queue = Path::new("/sys/block").join(name).join("queue");
    for (file, value) in [
        ("scheduler", "none"),
        ("rq_affinity", "0"),
        ("nomerges", "2"),
        ("iostats", "0"),
        ("add_random", "0"),
    ] {
        // A file that this kernel doesn't have leaves the default in force.
        let _ = fs::write(queue.join(file), value);
    }
}

impl Worker {
    /// Opens the disk and sets up the ring; `seed` decides which blocks are read in which order.
    pub fn new(disk: &Path, shape: Shape, seed: u64) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_DIRECT)
            .open(disk)?;
        let blocks = sys::device_size(&file)? / u64::from(shape.block);
        if blocks == 0 {
            return Err(io::Error::other("the disk is smaller than one block"));
        }
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_coop_taskrun()
            .build(shape.depth.next_power_of_two())?;
        let pages = Pages::new(shape.depth as usize * shape.block as usize)?;
        let worker = Self {
            ring,
            pages,
            shape,
            walk: Walk::new(blocks, seed, shape.sequential),
            submitted: vec![0; shape.depth as usize],
            latency: histogram(),
            completions: 0,
            errors: 0,
            _file: file,
        };
        worker.register()?;
        Ok(worker)
    }

    fn register(&self) -> io::Result<()> {
        let buffers: Vec<libc::iovec> = (0..self.shape.depth)
            .map(|slot| libc::iovec {
                iov_base: self.buffer(slot).cast(),
                iov_len: self.shape.block as usize,
            })
            .collect();
        let submitter = self.ring.submitter();
        // SAFETY: The mapping is owned by `self` next to the ring and is never unmapped or used by
        // safe code while the ring lives (fields drop in order: the ring first).
        unsafe { submitter.register_buffers(&buffers) }?;
        submitter.register_files(&[self._file.as_raw_fd()])
    }

    fn buffer(&self, slot: u32) -> *mut u8 {
        let offset = slot as usize * self.shape.block as usize;
        debug_assert!(offset < self.pages.len());
        self.pages.as_ptr().wrapping_add(offset)
    }

    fn push(&mut self, slot: u32, now: u64) -> io::Result<()> {
        let offset = self.walk.step() * u64::from(self.shape.block);
        let entry: squeue::Entry = opcode::ReadFixed::new(
            types::Fixed(0),
            self.buffer(slot),
            self.shape.block,
            slot as u16,
        )
        .offset(offset)
        .build()
        .user_data(u64::from(slot));
        self.submitted[slot as usize] = now;
        // SAFETY: The buffer belongs to `slot` alone and outlives the ring, see `register`.
        unsafe { self.ring.submission().push(&entry) }.map_err(io::Error::other)
    }

    /// Takes all visible completions into `slots`.
    ///
    /// Throughput counts those inside the window. Latency counts every request that was submitted
    /// in it: a disk that was left waiting for the whole window must not vanish from the tail.
    fn reap(&mut self, slots: &mut Vec<u32>, now: u64, end: u64) {
        slots.clear();
        for entry in self.ring.completion() {
            let slot = entry.user_data() as u32;
            slots.push(slot);
            if entry.result() != self.shape.block as i32 {
                self.errors += 1;
            }
            self.completions += u64::from(now < end);
            self.latency
                .saturating_record(now - self.submitted[slot as usize]);
        }
    }

    /// Keeps the disk busy until `end`, then waits for what is outstanding.
    pub fn run(mut self, end: u64) -> io::Result<Done> {
        let depth = self.shape.depth;
        let mut slots: Vec<u32> = (0..depth).collect();
        let mut outstanding = 0;
        let mut now = sys::now();
        while now < end {
            for &slot in &slots {
                self.push(slot, now)?;
            }
            outstanding += slots.len() as u32;
            self.ring
                .submit_and_wait(self.shape.reap.min(outstanding) as usize)?;
            now = sys::now();
            self.reap(&mut slots, now, end);
            outstanding -= slots.len() as u32;
        }
        let lost = self.drain(outstanding, end)?;
        Ok(Done {
            latency: self.latency,
            completions: self.completions,
            errors: self.errors,
            lost,
        })
    }

    fn drain(&mut self, mut outstanding: u32, end: u64) -> io::Result<u64> {
        let give_up = end + DRAIN.as_nanos() as u64;
        let patience = types::Timespec::new().sec(1);
        let mut slots = Vec::new();
        while outstanding > 0 && sys::now() < give_up {
            let args = types::SubmitArgs::new().timespec(&patience);
            match self.ring.submitter().submit_with_args(1, &args) {
                Ok(_) => {}
                Err(e) if e.raw_os_error() == Some(libc::ETIME) => {}
                Err(e) => return Err(e),
            }
            self.reap(&mut slots, sys::now(), end);
            outstanding -= slots.len() as u32;
        }
        Ok(u64::from(outstanding))
    }
}

fn histogram() -> Histogram<u64> {
    // Up to 100 s at three digits; both bounds are valid by the crate's rules.
    Histogram::new_with_bounds(1, 100_000_000_000, 3).expect("bounds are constants")
}

/// Starts a submitter per target, pinned, that gets ready, arrives at the gate and works.
pub fn start(targets: &[Target], shape: Shape, gate: &Arc<Gate>) -> io::Result<Vec<Submitter>> {
    targets
        .iter()
        .enumerate()
        .map(|(i, target)| {
            let (target, gate) = (target.clone(), gate.clone());
            std::thread::Builder::new()
                .name(format!("load{i}"))
                .spawn(move || {
                    // The ring is made by the thread that uses it: it has a single issuer.
                    let worker = ready(&target, shape, i as u64 + 1);
                    let window = gate.arrive();
                    worker?.run(window.end)
                })
        })
        .collect()
}

fn ready(target: &Target, shape: Shape, seed: u64) -> io::Result<Worker> {
    sys::pin(target.cpu)?;
    prepare(&target.disk);
    Worker::new(&target.disk, shape, seed)
        .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", target.disk.display())))
}

/// Waits for the submitters and sums up.
pub fn finish(workers: Vec<Submitter>) -> io::Result<Load> {
    let mut all = histogram();
    let mut load = Load::default();
    for worker in workers {
        let done = worker
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        load.errors += done.errors;
        load.lost += done.lost;
        load.completions += done.completions;
        load.per_disk.push(done.completions);
        all.add(&done.latency).map_err(io::Error::other)?;
    }
    load.latency = summary(&all);
    Ok(load)
}

fn summary(h: &Histogram<u64>) -> Latency {
    Latency {
        count: h.len(),
        mean_ns: h.mean(),
        p50_ns: h.value_at_quantile(0.5),
        p99_ns: h.value_at_quantile(0.99),
        p999_ns: h.value_at_quantile(0.999),
        max_ns: h.max(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_parsed() {
        let t: Target = "/dev/nvme0n1@3".parse().unwrap();
        assert_eq!((t.disk.to_str(), t.cpu), (Some("/dev/nvme0n1"), 3));
        assert!("/dev/x".parse::<Target>().unwrap_err().contains("DISK@CPU"));
        assert!("/dev/x@y".parse::<Target>().unwrap_err().contains("`y`"));
    }

    #[test]
    fn walks_stay_on_the_disk() {
        let mut ahead = Walk::new(3, 7, true);
        let blocks: Vec<u64> = (0..5).map(|_| ahead.step()).collect();
        assert_eq!(blocks, [0, 1, 2, 0, 1]);
        let mut anywhere = Walk::new(3, 7, false);
        let mut seen = [false; 3];
        for _ in 0..100 {
            seen[anywhere.step() as usize] = true;
        }
        assert_eq!(seen, [true; 3]);
    }

    #[test]
    fn a_histogram_is_summed_up_within_its_precision() {
        let mut h = histogram();
        (1..=1000u64).for_each(|i| h.saturating_record(i * 1000));
        let s = summary(&h);
        assert_eq!(s.count, 1000);
        let near = |a: u64, b: u64| a.abs_diff(b) as f64 <= b as f64 * 0.002;
        assert!(near(s.p50_ns, 500_000) && near(s.p99_ns, 990_000));
        assert!(near(s.p999_ns, 999_000) && near(s.max_ns, 1_000_000));
        assert!((s.mean_ns - 500_500.0).abs() < 1000.0);
    }
}
