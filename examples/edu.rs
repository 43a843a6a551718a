// SPDX-License-Identifier: GPL-2.0

//! A storm on purpose: QEMU's `edu` device as a moderated completion source.
//!
//! `edu` has no completion queue, only an interrupt that a register write raises at once. So the
//! queue is a ring in memory ([`Ring`]), filled by whoever writes to the file `run`, on his CPU;
//! each entry raises one MSI. Collecting an entry costs a settable time. Four such devices on one
//! CPU, each below 100 % of it, add up to the overload that no single source can see.
//!
//! What to look at: [`Edu`] is all that irqmod needs of a driver, and there is no `unsafe` in this
//! file.

use irqmod::{
    debugfs::{
        Job,
        JobDir, //
    },
    Budget,
    Drain,
    DrainRight,
    Line,
    Source, //
};
use kernel::{
    device::Core,
    fmt,
    io::Io,
    new_mutex,
    pci,
    prelude::*,
    processor::cpu_relax,
    str::CString,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        Arc,
        Mutex, //
    },
    time::{
        delay::fsleep,
        Delta,
        Instant,
        Monotonic, //
    }, //
};

irqmod::policy_param!(irq_policy: "hardirq");

/// Register that raises the interrupt when written, with the value as its status.
const RAISE: usize = 0x60;

/// Length of the registers used here.
const REGISTERS: usize = 0x80;

/// Entries of a ring; a power of two.
const ENTRIES: u64 = 4096;

/// A ring of one producer and one consumer; an entry is the time when it was pushed.
///
/// `tail` counts what was pushed, `head` what was collected; each is written by one side only.
struct Ring {
    entries: KVec<Atomic<u64>>,
    head: Atomic<u64>,
    tail: Atomic<u64>,
}

impl Ring {
    fn new() -> Result<Self> {
        let mut entries = KVec::with_capacity(ENTRIES as usize, GFP_KERNEL)?;
        for _ in 0..ENTRIES {
            entries.push(Atomic::new(0), GFP_KERNEL)?;
        }
        Ok(Self {
            entries,
            head: Atomic::new(0),
            tail: Atomic::new(0),
        })
    }

    fn entry(&self, count: u64) -> &Atomic<u64> {
        &self.entries[(count % ENTRIES) as usize]
    }

    fn pushed(&self) -> u64 {
        self.tail.load(Acquire)
    }

    fn collected(&self) -> u64 {
        self.head.load(Acquire)
    }

    fn backlog(&self) -> u64 {
        // The head first: it never passes a tail that is read later.
        let collected = self.collected();
        self.pushed() - collected
    }

    /// Producer: appends `now`, or says that `depth` entries are outstanding.
    fn push(&self, now: u64, depth: u64) -> bool {
        let tail = self.tail.load(Relaxed);
        if tail - self.head.load(Acquire) >= depth.min(ENTRIES) {
            return false;
        }
        self.entry(tail).store(now, Relaxed);
        self.tail.store(tail + 1, Release);
        true
    }

    /// Consumer: the oldest entry. The right to drain the ring's owner proves that there is only
    /// one consumer.
    fn front(edu: &DrainRight<'_, Edu>) -> Option<u64> {
        let ring = &edu.ring;
        let head = ring.head.load(Relaxed);
        (ring.tail.load(Acquire) != head).then(|| ring.entry(head).load(Relaxed))
    }

    /// Consumer: gives the slot of the oldest entry back.
    fn pop(edu: &DrainRight<'_, Edu>) {
        let head = &edu.ring.head;
        head.store(head.load(Relaxed) + 1, Release);
    }
}

/// Buckets of a latency histogram: eight to an octave.
const BUCKETS: usize = 512;

fn bucket(ns: u64) -> usize {
    match ns.checked_ilog2() {
        Some(octave) if octave >= 3 => {
            ((octave as usize) << 3) | ((ns >> (octave - 3)) & 7) as usize
        }
        _ => ns as usize,
    }
}

/// The least time that is above everything in `bucket`.
fn bucket_end(bucket: usize) -> u64 {
    match (bucket >> 3, (bucket & 7) as u64) {
        (0, ns) => ns + 1,
        (octave, part) => (9 + part) << (octave - 3),
    }
}

/// What draining saw; written by the holder of the right to drain only.
struct Meter {
    drains: Atomic<u64>,
    max_batch: Atomic<u64>,
    lat_sum: Atomic<u64>,
    lat_max: Atomic<u64>,
    lat: KVec<Atomic<u32>>,
}

impl Meter {
    fn new() -> Result<Self> {
        let mut lat = KVec::with_capacity(BUCKETS, GFP_KERNEL)?;
        for _ in 0..BUCKETS {
            lat.push(Atomic::new(0), GFP_KERNEL)?;
        }
        Ok(Self {
            drains: Atomic::new(0),
            max_batch: Atomic::new(0),
            lat_sum: Atomic::new(0),
            lat_max: Atomic::new(0),
            lat,
        })
    }

    fn reset(edu: &DrainRight<'_, Edu>) {
        let this = &edu.meter;
        for cell in [&this.drains, &this.max_batch, &this.lat_sum, &this.lat_max] {
            cell.store(0, Relaxed);
        }
        for cell in &this.lat {
            cell.store(0, Relaxed);
        }
    }

    fn latency(edu: &DrainRight<'_, Edu>, ns: u64) {
        let this = &edu.meter;
        this.lat_sum.store(this.lat_sum.load(Relaxed) + ns, Relaxed);
        this.lat_max
            .store(this.lat_max.load(Relaxed).max(ns), Relaxed);
        let cell = &this.lat[bucket(ns)];
        cell.store(cell.load(Relaxed) + 1, Relaxed);
    }

    fn batch(edu: &DrainRight<'_, Edu>, found: u32) {
        let this = &edu.meter;
        if found > 0 {
            this.drains.store(this.drains.load(Relaxed) + 1, Relaxed);
            this.max_batch
                .store(this.max_batch.load(Relaxed).max(found.into()), Relaxed);
        }
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let drained: u64 = self
            .lat
            .iter()
            .map(|cell| u64::from(cell.load(Relaxed)))
            .sum();
        show(f, "drains", self.drains.load(Relaxed))?;
        show(f, "max_batch", self.max_batch.load(Relaxed))?;
        show(
            f,
            "lat_mean_ns",
            self.lat_sum.load(Relaxed) / drained.max(1),
        )?;
        show(f, "lat_p50_ns", self.percentile(500))?;
        show(f, "lat_p99_ns", self.percentile(990))?;
        show(f, "lat_p999_ns", self.percentile(999))?;
        show(f, "lat_max_ns", self.lat_max.load(Relaxed))
    }

    /// The latency that `permille` of all entries stayed below.
    fn percentile(&self, permille: u64) -> u64 {
        let total: u64 = self
            .lat
            .iter()
            .map(|cell| u64::from(cell.load(Relaxed)))
            .sum();
        let mut left = total * permille / 1000;
        for (bucket, cell) in self.lat.iter().enumerate() {
            let here = u64::from(cell.load(Relaxed));
            if here > left {
                return bucket_end(bucket);
            }
            left -= here;
        }
        0
    }
}

/// The completion source.
struct Edu {
    epoch: Instant<Monotonic>,
    ring: Ring,
    meter: Meter,
    cost_ns: Atomic<u64>,
}

impl Edu {
    fn new() -> Result<Self> {
        Ok(Self {
            epoch: Instant::now(),
            ring: Ring::new()?,
            meter: Meter::new()?,
            cost_ns: Atomic::new(*module_parameters::cost_ns.value_ref()),
        })
    }

    /// Nanoseconds since the device was bound.
    fn now(&self) -> u64 {
        self.epoch.elapsed().as_nanos().unsigned_abs()
    }

    /// Stands for the work of a completion: burns the CPU, without the `pause` of a polite wait.
    fn complete(this: &DrainRight<'_, Self>, pushed: u64) {
        let end = this.now() + this.cost_ns.load(Relaxed);
        let mut now = this.now();
        while now < end {
            now = this.now();
        }
        Meter::latency(this, now.saturating_sub(pushed));
    }

    fn collect(this: &DrainRight<'_, Self>, budget: Budget) -> Drain {
        let mut found = 0;
        while found < budget.get() {
            let Some(pushed) = Ring::front(this) else {
                return Drain::Drained(found);
            };
            Self::complete(this, pushed);
            Ring::pop(this);
            found += 1;
        }
        Drain::More(found)
    }
}

impl Source for Edu {
    fn pending(&self) -> bool {
        self.ring.backlog() > 0
    }

    fn drain(edu: &mut DrainRight<'_, Self>, budget: Budget) -> Drain {
        let drain = Self::collect(edu, budget);
        Meter::batch(edu, drain.found());
        drain
    }
}

/// What a line written to `run` asks for.
struct Request {
    ms: u64,
    gap_ns: u64,
    cost_ns: u64,
    depth: u64,
    settle_ms: u64,
}

impl Request {
    fn parse(text: &str) -> Result<Self> {
        let mut request = Self {
            ms: 1000,
            gap_ns: *module_parameters::gap_ns.value_ref(),
            cost_ns: *module_parameters::cost_ns.value_ref(),
            depth: ENTRIES,
            settle_ms: 10_000,
        };
        for word in text.split_ascii_whitespace() {
            let (key, value) = word.split_once('=').ok_or(EINVAL)?;
            request.set(key, value.parse().map_err(|_| EINVAL)?)?;
        }
        Ok(request)
    }

    fn set(&mut self, key: &str, value: u64) -> Result {
        let (field, range) = match key {
            "ms" => (&mut self.ms, 1..=600_000),
            "gap_ns" => (&mut self.gap_ns, 0..=1_000_000_000),
            "cost_ns" => (&mut self.cost_ns, 0..=1_000_000_000),
            "depth" => (&mut self.depth, 1..=ENTRIES),
            "settle_ms" => (&mut self.settle_ms, 0..=600_000),
            _ => return Err(EINVAL),
        };
        if !range.contains(&value) {
            return Err(ERANGE);
        }
        *field = value;
        Ok(())
    }
}

/// Counts of the last run that the source itself does not keep.
#[derive(Clone, Copy, Default)]
struct Report {
    produced: u64,
    consumed: u64,
    left: u64,
    lost: u64,
    elapsed_ns: u64,
    full_ns: u64,
}

fn show(f: &mut fmt::Formatter<'_>, key: &str, value: u64) -> fmt::Result {
    f.write_fmt(fmt!("{} {}\n", key, value))
}

impl Report {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, "produced", self.produced)?;
        show(f, "consumed", self.consumed)?;
        show(f, "left", self.left)?;
        show(f, "lost", self.lost)?;
        show(f, "elapsed_ns", self.elapsed_ns)?;
        show(f, "full_ns", self.full_ns)
    }
}

/// The load generator of one device.
#[pin_data]
struct Load {
    line: Arc<Line<Edu>>,
    bar: pci::DevresBar<REGISTERS>,
    stopping: Atomic<bool>,
    #[pin]
    running: Mutex<()>,
    #[pin]
    report: Mutex<Report>,
}

impl Load {
    fn new(line: Arc<Line<Edu>>, bar: pci::DevresBar<REGISTERS>) -> impl PinInit<Self> {
        pin_init!(Self {
            line,
            bar,
            stopping: Atomic::new(false),
            running <- new_mutex!(()),
            report <- new_mutex!(Report::default()),
        })
    }

    fn raise(&self) -> Result {
        self.bar.try_access().ok_or(ENODEV)?.write32(1, RAISE);
        Ok(())
    }

    fn check_stop(&self) -> Result {
        if self.stopping.load(Relaxed) || current!().signal_pending() {
            return Err(EINTR);
        }
        Ok(())
    }

    /// Pushes one entry, waiting for room until `end`; says how long it waited.
    fn push(&self, depth: u64, end: u64) -> Result<u64> {
        let start = self.line.now();
        let mut now = start;
        while !self.line.ring.push(now, depth) && now < end {
            self.check_stop()?;
            // A polite wait: under emulation it lets the other CPUs run.
            cpu_relax();
            now = self.line.now();
        }
        Ok(now - start)
    }

    /// Pushes an entry each `gap_ns` for `ms`, as far as the ring has room, and raises an interrupt
    /// for each.
    fn produce(&self, request: &Request, full_ns: &mut u64) -> Result {
        let mut next = self.line.now();
        let end = next + request.ms * 1_000_000;
        while next < end {
            self.check_stop()?;
            if self.line.now() < next {
                cpu_relax();
                continue;
            }
            match self.push(request.depth, end)? {
                0 => next += request.gap_ns,
                // The time before a full ring is not made up for.
                waited => {
                    *full_ns += waited;
                    next = self.line.now() + request.gap_ns;
                }
            }
            self.raise()?;
        }
        Ok(())
    }

    /// Sleeps until the ring is empty, at most `ms`.
    fn settle(&self, ms: u64) {
        let end = self.line.now() + ms * 1_000_000;
        while self.line.pending() && self.line.now() < end && self.check_stop().is_ok() {
            fsleep(Delta::from_millis(1));
        }
    }

    fn measure(&self, request: &Request, report: &mut Report) -> Result {
        let ring = &self.line.ring;
        let (head, tail, start) = (ring.collected(), ring.pushed(), self.line.now());
        let produced = self.produce(request, &mut report.full_ns);
        report.elapsed_ns = self.line.now() - start;
        report.consumed = ring.collected() - head;
        report.produced = ring.pushed() - tail;
        report.left = ring.backlog();
        self.settle(request.settle_ms);
        report.lost = ring.backlog();
        produced
    }
}

impl Job for Load {
    fn run(&self, request: &str) -> Result {
        let request = Request::parse(request)?;
        let _running = self.running.try_lock().ok_or(EBUSY)?;
        self.line.exclusive(|edu| {
            Meter::reset(edu);
            edu.cost_ns.store(request.cost_ns, Relaxed);
        });
        let mut report = Report::default();
        let done = self.measure(&request, &mut report);
        *self.report.lock() = report;
        done
    }

    fn result(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = *self.report.lock();
        report.show(f)?;
        self.line.meter.show(f)
    }
}

struct Driver;

kernel::pci_device_table!(
    PCI_TABLE,
    (),
    [(irqmod::pci::device_id(0x1234, 0x11e8), ())]
);

/// What a bound device owns; dropped before the device frees the interrupt.
struct Bound {
    // First: no run is left when the rest goes.
    _files: JobDir,
    load: Arc<Load>,
}

impl pci::Driver for Driver {
    type IdInfo = ();
    type Data<'bound> = Bound;

    const ID_TABLE: pci::IdTable<()> = &PCI_TABLE;

    fn probe<'bound>(
        device: &'bound pci::Device<Core<'_>>,
        _info: Option<&'bound ()>,
    ) -> impl PinInit<Bound, Error> + 'bound {
        device.enable_device_mem()?;
        device.set_master();
        let name = device.as_ref().name();
        let bar = device
            .iomap_region_sized::<REGISTERS>(0, c"irqmod_edu")?
            .into_devres()?;
        let line = irqmod::pci::attach(
            device,
            Line::new(Edu::new(), irq_policy.get(name)),
            fmt!("edu-{}", name),
        )?;
        let load = Arc::pin_init(Load::new(line, bar), GFP_KERNEL)?;
        let directory = CString::try_from_fmt(fmt!("irqmod-edu-{}", name))?;
        Ok(Bound {
            _files: JobDir::new(load.clone(), &directory)?,
            load,
        })
    }

    fn unbind<'bound>(_device: &'bound pci::Device<Core<'_>>, this: Pin<&Bound>) {
        this.load.stopping.store(true, Relaxed);
    }
}

kernel::module_pci_driver! {
    type: Driver,
    name: "irqmod_edu",
    authors: ["irqmod contributors"],
    description: "Moderated interrupts of QEMU's edu device",
    license: "GPL v2",
    params: {
        cost_ns: u64 {
            default: 14_000,
            description: "Time that collecting a completion takes, in ns",
        },
        gap_ns: u64 {
            default: 24_000,
            description: "Time between two completions of a device, in ns",
        },
    },
}
