// SPDX-License-Identifier: GPL-2.0

//! The safe face of the block layer: a request on its way through the driver.
//!
//! Who owns a request is its type, and every step consumes the one before:
//!
//! ```text
//!  queue_rq --> Fresh --admit--> Ready --setup--> Setup --map--> Mapped --start--> InFlight
//!                 |                |               |               |                  |
//!                 v                v               v (drop)        v (drop)        Pending::put
//!              Status           Status       cleaned up      unmapped, cleaned up     |
//!                                                                                  (device)
//!                                                                                     |
//!                              Batch <--complete-- InFlight <------ Pending::take ----+
//! ```
//!
//! An error can be returned up to [`Mapped`], and dropping a state undoes its steps. After `start`
//! the request belongs to the timeout handler as well, and only a completion ends it.

mod batch;
mod dma;
mod mq;
mod pdu;
mod pending;
mod prp_lists;
mod request;
mod started;
mod timed_out;

pub(crate) use self::{
    batch::Batch,
    dma::DmaDevice,
    mq::{
        admin_ops,
        io_ops, //
    },
    pdu::{
        CMD_SIZE,
        MAX_SEGMENTS, //
    },
    pending::Pending,
    prp_lists::PrpLists,
    request::{
        InFlight,
        Mapped,
        Ready,
        Status, //
    },
    started::StartedList,
    timed_out::TimedOut, //
};
