// SPDX-License-Identifier: GPL-2.0

//! What the lines do, in `/sys/kernel/debug/irqmod/LINE/`: `state`, `stats`, `mask` and `policy`; what the
//! CPUs have, in `/sys/kernel/debug/irqmod/cpus`.
//!
//! Writing to `policy` switches this line, until its driver requests it anew. Writing 1 to `watch`
//! makes `reasons` and `batches` of the line count, until 0 is written.
//!
//! All file operations live in this library and never in a driver: a file that is still open does
//! not keep the driver's module, and must survive it.

use core::{
    fmt::Display,
    ptr::NonNull, //
};
use kernel::{
    debugfs::{
        Dir,
        File,
        Scope, //
    },
    fmt,
    prelude::*,
    str::CString,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        SetOnce, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
    uaccess::UserSliceReader, //
};

use super::{
    cpus,
    mask::Vector,
    params, //
};
use crate::{
    moderator::Moderator,
    policy::{
        Choice,
        Config, //
    }, //
};

/// A value of the inner rings, which format by `core::fmt`, for the kernel's `fmt!`.
pub(super) struct Shown<'a, T>(pub(super) &'a T);

impl<T: Display> fmt::Display for Shown<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self.0, f)
    }
}

/// The directory of the library: made by the first user, kept for good.
static ROOT: SetOnce<Dir> = SetOnce::new();

/// The file `cpus` in it.
static CPUS: SetOnce<Pin<KBox<File<()>>>> = SetOnce::new();

/// Whether somebody makes, or made, [`ROOT`].
static ROOT_CLAIMED: Atomic<bool> = Atomic::new(false);

/// `/sys/kernel/debug/irqmod`; may sleep.
fn root() -> &'static Dir {
    if !ROOT_CLAIMED.xchg(true, Relaxed) {
        ROOT.populate(Dir::new(c"irqmod"));
        if let Some(dir) = ROOT.as_ref() {
            let file = dir.read_callback_file(c"cpus", Ok::<_, Error>(()), &show_cpus);
            // Without memory for it there is no such file.
            let _ = KBox::pin_init(file, GFP_KERNEL).map(|file| CPUS.populate(file));
        }
    }
    loop {
        match ROOT.as_ref() {
            Some(dir) => return dir,
            // Another line is just making it.
            None => fsleep(Delta::from_millis(1)),
        }
    }
}

/// A line of any type, for its files.
pub(super) trait Watched: Send + Sync {
    fn moderator(&self) -> &Moderator;
    fn vector(&self) -> &Vector;
    /// See [`Line::set_policy`](crate::Line::set_policy).
    fn switch_to(&self, choice: Choice) -> Result;
    /// See [`Moderator::set_watched`]. May sleep.
    fn watch(&self, watched: bool);
}

/// What the files of a line read and write.
///
/// # Invariants
///
/// `line` is valid for as long as the view exists, and it was requested once. It may be free now.
struct View {
    line: NonNull<dyn Watched>,
    /// For the log.
    name: CString,
}

// SAFETY: The view only has a shared reference, and what is `Watched` is `Sync`.
unsafe impl Send for View {}

// SAFETY: As above.
unsafe impl Sync for View {}

impl View {
    fn line(&self) -> &dyn Watched {
        // SAFETY: Valid by the type invariant.
        unsafe { self.line.as_ref() }
    }

    fn moderator(&self) -> &Moderator {
        self.line().moderator()
    }
}

fn show_state(view: &View, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (name, _) in view.moderator().snapshot().iter_names() {
        f.write_fmt(fmt!("{} ", name))?;
    }
    f.write_str("\n")
}

fn show_stats(view: &View, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    Display::fmt(&view.moderator().stats().read(), f)
}

fn show_mask(view: &View, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let moderator = view.moderator();
    Display::fmt(&view.line().vector().masks(moderator.choice().mask), f)?;
    let counts = moderator.stats().read();
    let strays = counts.absorbed.wrapping_add(counts.forgiven);
    f.write_fmt(fmt!("strays {}\n", strays))
}

/// All policies, the line's own in brackets with its parameters.
fn show_policy(view: &View, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let choice = view.moderator().choice();
    for (i, name) in Config::NAMES.iter().enumerate() {
        let separator = if i == 0 { "" } else { " " };
        if *name == choice.policy.name() {
            f.write_fmt(fmt!("{}[{}]", separator, Shown(&choice)))?;
        } else {
            f.write_fmt(fmt!("{}{}", separator, name))?;
        }
    }
    f.write_str("\n")
}

/// Longest text that chooses a policy.
const MAX_CHOICE: usize = 256;

fn choose_policy(view: &View, reader: &mut UserSliceReader) -> Result {
    let mut text = [0; MAX_CHOICE];
    let text = text.get_mut(..reader.len()).ok_or(E2BIG)?;
    reader.read_slice(text)?;
    let choice = params::choose(text, &view.name)?;
    view.line().switch_to(choice).inspect_err(|error| {
        pr_err!("{}: {}: {:?}\n", &*view.name, Shown(&choice), error);
    })
}

fn show_reasons(view: &View, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    Display::fmt(&view.moderator().reasons(), f)
}

fn show_batches(view: &View, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    Display::fmt(&view.moderator().batches(), f)
}

fn show_watch(view: &View, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_fmt(fmt!("{}\n", u8::from(view.moderator().is_watched())))
}

fn choose_watch(view: &View, reader: &mut UserSliceReader) -> Result {
    let mut text = [0; 2];
    let text = text.get_mut(..reader.len()).unwrap_or_default();
    reader.read_slice(text)?;
    let watched = match text.strip_suffix(b"\n").unwrap_or(text) {
        b"0" => false,
        b"1" => true,
        _ => {
            pr_err!("{}: watch: not a number; allowed: 0..=1\n", &*view.name);
            return Err(EINVAL);
        }
    };
    view.line().watch(watched);
    Ok(())
}

fn show_cpus(_: &(), f: &mut fmt::Formatter<'_>) -> fmt::Result {
    Display::fmt(&cpus::Table, f)
}

/// The directory of one line; gone when dropped, after all readers have left.
pub(super) struct LineDir {
    _scope: Pin<KBox<Scope<View>>>,
}

impl LineDir {
    /// Shows a line under `name`. May sleep.
    ///
    /// # Safety
    ///
    /// `line` was requested, and it stays valid until the result is dropped.
    pub(super) unsafe fn new(line: &(dyn Watched + 'static), name: &CStr) -> Result<Self> {
        // INVARIANT: The contract of this function covers the life of the view.
        let view = View {
            line: NonNull::from(line),
            name: CString::try_from(name)?,
        };
        let scope = root().scope::<_, Error, _>(Ok(view), name, |view, dir| {
            dir.read_callback_file(c"state", view, &show_state);
            dir.read_callback_file(c"stats", view, &show_stats);
            dir.read_callback_file(c"mask", view, &show_mask);
            dir.read_callback_file(c"reasons", view, &show_reasons);
            dir.read_callback_file(c"batches", view, &show_batches);
            dir.read_write_callback_file(c"policy", view, &show_policy, &choose_policy);
            dir.read_write_callback_file(c"watch", view, &show_watch, &choose_watch);
        });
        Ok(Self {
            _scope: KBox::pin_init(scope, GFP_KERNEL)?,
        })
    }
}

/// Something that a user starts by writing a line of text, and that has a result to read.
pub trait Job: Send + Sync {
    /// Does what `request` says, in the context of the writer.
    fn run(&self, request: &str) -> Result;

    /// Shows the result of the last run.
    fn result(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// Longest request of a [`Job`].
const MAX_REQUEST: usize = 256;

struct Worker {
    job: Arc<dyn Job>,
}

fn run_job(worker: &Worker, reader: &mut UserSliceReader) -> Result {
    let mut text = [0; MAX_REQUEST];
    let text = text.get_mut(..reader.len()).ok_or(E2BIG)?;
    reader.read_slice(text)?;
    worker
        .job
        .run(core::str::from_utf8(text).map_err(|_| EINVAL)?)
}

fn show_result(worker: &Worker, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    worker.job.result(f)
}

/// A directory `/sys/kernel/debug/NAME` with the files `run` and `result` of a [`Job`]; gone when
/// dropped, after the last run has ended.
pub struct JobDir {
    _scope: Pin<KBox<Scope<Worker>>>,
}

impl JobDir {
    /// Offers `job` to the administrator. May sleep.
    pub fn new(job: Arc<dyn Job>, name: &CStr) -> Result<Self> {
        let scope = Scope::dir::<Error, _>(Ok(Worker { job }), name, |worker, dir| {
            dir.write_only_callback_file(c"run", worker, &run_job);
            dir.read_callback_file(c"result", worker, &show_result);
        });
        Ok(Self {
            _scope: KBox::pin_init(scope, GFP_KERNEL)?,
        })
    }
}
