// SPDX-License-Identifier: GPL-2.0

//! Completion moderation.

#![no_std]
