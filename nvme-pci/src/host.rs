// SPDX-License-Identifier: GPL-2.0

//! The pure halves of the driver, for host tests.

#![no_std]
