// SPDX-License-Identifier: GPL-2.0

//! The lab.

fn main() {}
