// SPDX-License-Identifier: GPL-2.0

//! The subcommands.

pub(crate) mod explain;
pub(crate) mod fuzz;
pub(crate) mod machines;
pub(crate) mod merge;
pub(crate) mod replay;
pub(crate) mod run;
mod show;
pub(crate) mod sweep;
pub(crate) mod table;
