// SPDX-License-Identifier: GPL-2.0

//! The policy as a module parameter: a string with its own `kernel_param_ops`.
//!
//! One line in a driver, [`policy_param!`](crate::policy_param), gives it
//! `/sys/module/NAME/parameters/PARAM` (0644), the argument of `insmod` and, built in,
//! `NAME.PARAM=` on the kernel command line. A rejected value changes nothing and leaves one line
//! in the log that names what is allowed. A new value is for lines that are requested from then on,
//! also because their device is reset; the file `policy` of [`debugfs`](super::debugfs) is for one
//! that is in use.

use core::{
    cell::UnsafeCell,
    fmt::Write as _, //
};
use kernel::{
    bindings,
    prelude::*,
    str::Formatter, //
};

use crate::{
    kernel::debugfs::Shown,
    params::{
        self,
        Choices,
        ParamError, //
    },
    policy::{
        Choice,
        Config, //
    }, //
};

/// Longest text that is kept, with a choice for some devices of their own. Unit: bytes.
const MAX_TEXT: usize = 1024;

/// What C offers to write a value to. Unit: bytes.
const PAGE: usize = kernel::page::PAGE_SIZE;

/// A text that was checked.
struct Text {
    bytes: [u8; MAX_TEXT],
    len: usize,
}

/// The value behind one policy parameter.
///
/// # Invariants
///
/// `value` is only accessed under the parameter lock of `module`.
pub struct PolicyParam {
    value: UnsafeCell<Text>,
    default: &'static str,
    module: *mut bindings::module,
}

// SAFETY: `value` is protected by a lock by the type invariant, the other fields are never written.
unsafe impl Sync for PolicyParam {}

impl PolicyParam {
    /// Creates a parameter that was not set yet. Called by [`policy_param!`](crate::policy_param).
    #[doc(hidden)]
    pub const fn new(default: &'static str, module: *mut bindings::module) -> Self {
        Self {
            value: UnsafeCell::new(Text {
                bytes: [0; MAX_TEXT],
                len: 0,
            }),
            default,
            module,
        }
    }

    /// The address that C hands back to the operations.
    #[doc(hidden)]
    pub const fn as_void_ptr(&self) -> *mut c_void {
        core::ptr::from_ref(self).cast_mut().cast()
    }

    /// What was chosen last for `device`, or the default. May sleep.
    pub fn get(&self, device: &CStr) -> Choice {
        // SAFETY: `module` is the module that contains `self`, or null for built-in code.
        unsafe { bindings::irqmod_param_lock(self.module) };
        // SAFETY: The lock of the type invariant is held.
        let choice = unsafe { self.choices() }.of(device.to_str().unwrap_or_default());
        // SAFETY: Locked above.
        unsafe { bindings::irqmod_param_unlock(self.module) };
        choice
    }

    /// # Safety
    ///
    /// The caller holds the parameter lock of `self.module`.
    unsafe fn choices(&self) -> Choices<'_> {
        // SAFETY: By the contract nobody writes now.
        let value = unsafe { &*self.value.get() };
        let text = match value.bytes.get(..value.len) {
            Some(text) if !text.is_empty() => text,
            _ => self.default.as_bytes(),
        };
        params::parse_choices(text).unwrap_or(Choices::from(Config::HARDIRQ))
    }

    /// # Safety
    ///
    /// The caller holds the parameter lock of `self.module`.
    unsafe fn set_locked(&self, text: &[u8], name: &CStr) -> Result {
        checked(params::parse_choices(text), name)?;
        // SAFETY: By the contract nobody else accesses it now.
        let value = unsafe { &mut *self.value.get() };
        let Some(bytes) = value.bytes.get_mut(..text.len()) else {
            pr_err!("{}: too long; allowed: 1..={} bytes\n", name, MAX_TEXT);
            return Err(EINVAL);
        };
        bytes.copy_from_slice(text);
        value.len = text.len();
        Ok(())
    }
}

/// Reads a choice; what is wrong with it goes to the log, under `name`.
pub(super) fn choose(text: &[u8], name: &CStr) -> Result<Choice> {
    checked(params::parse(text), name)
}

fn checked<T>(read: Result<T, ParamError<'_>>, name: &CStr) -> Result<T> {
    read.map_err(|reason| {
        pr_err!("{}: {}\n", name, Shown(&reason));
        if reason.is_range() {
            ERANGE
        } else {
            EINVAL
        }
    })
}

/// `kernel_param_ops.set`.
///
/// # Safety
///
/// `val` is null or a C string, `kp` was made by [`policy_param!`](crate::policy_param), and the
/// caller holds the parameter lock: the contract of the module subsystem.
unsafe extern "C" fn set(val: *const c_char, kp: *const bindings::kernel_param) -> c_int {
    if val.is_null() {
        return EINVAL.to_errno();
    }
    // SAFETY: A C string by the contract.
    let text = unsafe { CStr::from_char_ptr(val) };
    // SAFETY: `name` of a `kernel_param` is a C string that lives as long as it does.
    let name = unsafe { CStr::from_char_ptr((*kp).name) };
    // SAFETY: `arg` was set from a `&'static PolicyParam` by the macro.
    let param = unsafe { &*(*kp).__bindgen_anon_1.arg.cast::<PolicyParam>() };
    // SAFETY: The caller holds the lock by the contract.
    match unsafe { param.set_locked(text.to_bytes(), name) } {
        Ok(()) => 0,
        Err(error) => error.to_errno(),
    }
}

/// `kernel_param_ops.get`.
///
/// # Safety
///
/// `buffer` has a page of room, `kp` was made by [`policy_param!`](crate::policy_param), and the
/// caller holds the parameter lock: the contract of the module subsystem.
unsafe extern "C" fn get(buffer: *mut c_char, kp: *const bindings::kernel_param) -> c_int {
    // SAFETY: `arg` was set from a `&'static PolicyParam` by the macro.
    let param = unsafe { &*(*kp).__bindgen_anon_1.arg.cast::<PolicyParam>() };
    // SAFETY: The caller holds the lock by the contract.
    let choices = unsafe { param.choices() };
    // SAFETY: `buffer` has a page of room by the contract, which is ours until we return.
    let page = unsafe { core::slice::from_raw_parts_mut(buffer.cast::<u8>(), PAGE) };
    let mut formatter = Formatter::new(page);
    if formatter.write_fmt(fmt!("{}\n", Shown(&choices))).is_err() {
        return EINVAL.to_errno();
    }
    // CAST: At most a page.
    formatter.bytes_written() as c_int
}

/// The operations of every policy parameter.
#[doc(hidden)]
pub static OPS: bindings::kernel_param_ops = bindings::kernel_param_ops {
    flags: 0,
    set: Some(set),
    get: Some(get),
    free: None,
};

/// The length of [`joined`] parts.
#[doc(hidden)]
pub const fn joined_len(parts: &[&[u8]]) -> usize {
    let (mut total, mut part) = (1, 0);
    while part < parts.len() {
        total += parts[part].len();
        part += 1;
    }
    total
}

/// Joins `parts` to one NUL-terminated string at compile time; hyphens become underscores.
#[doc(hidden)]
pub const fn joined<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut text = [0; N];
    let (mut at, mut part) = (0, 0);
    while part < parts.len() {
        let mut byte = 0;
        while byte < parts[part].len() {
            let raw = parts[part][byte];
            text[at] = if raw == b'-' { b'_' } else { raw };
            at += 1;
            byte += 1;
        }
        part += 1;
    }
    text
}

/// Declares a module parameter that holds a moderation policy.
///
/// To be used next to [`module!`](kernel::prelude::module) or one of its wrappers, at the root of
/// the driver. `NAME.get(device)` is the [`Choice`](crate::policy::Choice) that was chosen for a device
/// of this name.
///
/// ```ignore
/// irqmod::policy_param!(irq_policy: "hardirq");
///
/// let line = Line::new(source, irq_policy.get(device.as_ref().name()));
/// ```
// `crate` is the driver on purpose: `module!` puts `LocalModule` at its root.
#[allow(clippy::crate_in_macro_def)]
#[macro_export]
macro_rules! policy_param {
    ($name:ident: $default:literal) => {
        #[allow(non_upper_case_globals)]
        static $name: $crate::kernel::params::PolicyParam =
            $crate::kernel::params::PolicyParam::new(
                $default,
                <crate::LocalModule as ::kernel::ModuleMetadata>::THIS_MODULE.as_ptr(),
            );

        const _: () = {
            use $crate::kernel::params::{
                joined,
                joined_len, //
            };

            // Built in, names carry the module's name, as in `nvme_rust.irq_policy`.
            const MODULE: &[u8] = <crate::LocalModule as ::kernel::ModuleMetadata>::NAME.to_bytes();
            const PREFIX: &[&[u8]] = if cfg!(MODULE) {
                &[b"", b""]
            } else {
                &[MODULE, b"."]
            };
            const PARAM: &[u8] = stringify!($name).as_bytes();

            const NAME: &[&[u8]] = &[PREFIX[0], PREFIX[1], PARAM];
            static NAME_TEXT: [u8; joined_len(NAME)] = joined(NAME);

            const TYPE: &[&[u8]] = &[PREFIX[0], PREFIX[1], b"parmtype=", PARAM, b":policy"];
            #[allow(unsafe_code)]
            #[link_section = ".modinfo"]
            #[used(compiler)]
            static TYPE_TEXT: [u8; joined_len(TYPE)] = joined(TYPE);

            const HELP: &[&[u8]] = &[
                PREFIX[0],
                PREFIX[1],
                b"parm=",
                PARAM,
                b":Completion moderation policy, NAME[:key=value,...][;DEVICE=NAME...] (default ",
                $default.as_bytes(),
                b")",
            ];
            #[allow(unsafe_code)]
            #[link_section = ".modinfo"]
            #[used(compiler)]
            static HELP_TEXT: [u8; joined_len(HELP)] = joined(HELP);

            #[allow(unsafe_code)]
            #[link_section = "__param"]
            #[used(compiler)]
            static KERNEL_PARAM: ::kernel::module_param::KernelParam =
                ::kernel::module_param::KernelParam::new(::kernel::bindings::kernel_param {
                    name: NAME_TEXT.as_ptr().cast(),
                    mod_: <crate::LocalModule as ::kernel::ModuleMetadata>::THIS_MODULE.as_ptr(),
                    ops: ::core::ptr::from_ref(&$crate::kernel::params::OPS),
                    perm: 0o644,
                    level: -1,
                    flags: 0,
                    __bindgen_anon_1: ::kernel::bindings::kernel_param__bindgen_ty_1 {
                        arg: $name.as_void_ptr(),
                    },
                });
        };
    };
}
