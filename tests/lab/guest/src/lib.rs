// SPDX-License-Identifier: GPL-2.0

//! What runs inside the guest, and the document it prints.
//!
//! The binary is linked statically, started by the lab over the guest's console, and prints one
//! JSON document ([`report::Report`]), which the lab reads back with the same types.

pub mod canary;
pub mod edu;
pub mod gate;
pub mod load;
pub mod msix;
pub mod proc;
pub mod report;
pub mod reread;
pub mod sample;
pub mod sys;
