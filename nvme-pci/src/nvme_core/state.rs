// SPDX-License-Identifier: GPL-2.0

//! The states of a controller, as nvme-core names them.
//!
//! ```text
//!   New ----> Resetting <---- Live          (1) reset requested, by the core or a timeout
//!                 |            ^
//!                 v            |
//!             Connecting ------+            (2)(3) restart()
//!
//!   Live, Resetting, Connecting --> Deleting --> Dead      (4) teardown, or a reset that failed
//! ```

use kernel::bindings;

/// The state of a controller.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Allocated.
    New,
    /// Does I/O.
    Live,
    /// A reset is at work or scheduled.
    Resetting,
    /// Being initialised.
    Connecting,
    /// Going away.
    Deleting,
    /// Going away, and no I/O is waited for.
    DeletingNoIo,
    /// Does not answer, and never will.
    Dead,
}

impl State {
    pub(super) const fn from_raw(raw: bindings::nvme_ctrl_state) -> Self {
        match raw {
            bindings::nvme_ctrl_state_NVME_CTRL_NEW => Self::New,
            bindings::nvme_ctrl_state_NVME_CTRL_LIVE => Self::Live,
            bindings::nvme_ctrl_state_NVME_CTRL_RESETTING => Self::Resetting,
            bindings::nvme_ctrl_state_NVME_CTRL_CONNECTING => Self::Connecting,
            bindings::nvme_ctrl_state_NVME_CTRL_DELETING => Self::Deleting,
            bindings::nvme_ctrl_state_NVME_CTRL_DELETING_NOIO => Self::DeletingNoIo,
            _ => Self::Dead,
        }
    }

    pub(super) const fn as_raw(self) -> bindings::nvme_ctrl_state {
        match self {
            Self::New => bindings::nvme_ctrl_state_NVME_CTRL_NEW,
            Self::Live => bindings::nvme_ctrl_state_NVME_CTRL_LIVE,
            Self::Resetting => bindings::nvme_ctrl_state_NVME_CTRL_RESETTING,
            Self::Connecting => bindings::nvme_ctrl_state_NVME_CTRL_CONNECTING,
            Self::Deleting => bindings::nvme_ctrl_state_NVME_CTRL_DELETING,
            Self::DeletingNoIo => bindings::nvme_ctrl_state_NVME_CTRL_DELETING_NOIO,
            Self::Dead => bindings::nvme_ctrl_state_NVME_CTRL_DEAD,
        }
    }

    /// Whether there is no way back to [`State::Live`].
    pub(crate) const fn is_terminal(self) -> bool {
        matches!(self, Self::Deleting | Self::DeletingNoIo | Self::Dead)
    }
}
