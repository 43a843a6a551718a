// SPDX-License-Identifier: GPL-2.0

//! The main job.

use crate::{
    cli::RunArgs,
    failure::{
        Failure,
        Result, //
    },
    lab::Lab,
};

/// Runs it.
pub(crate) fn main(_lab: &Lab, _args: &RunArgs) -> Result<()> {
    Err(Failure::new("run", "not built yet"))
}
