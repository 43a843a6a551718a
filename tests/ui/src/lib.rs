// SPDX-License-Identifier: GPL-2.0

//! Mistakes that do not compile.
//!
//! `fail/` has one file for each mistake, named after it, and `pass/` what is right. Each is
//! compiled against irqmod as the kernel compiles it, with panics that abort. A comment
//! `//~ TEXT` in a file of `fail/` says what the compiler must print; without one for each file the
//! test does not pass, so no file can fail for a reason that nobody meant.
