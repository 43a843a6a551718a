// SPDX-License-Identifier: GPL-2.0

//! The subcommands.

pub(crate) mod fuzz;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod table;
