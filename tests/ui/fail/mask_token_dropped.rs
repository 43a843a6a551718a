// SPDX-License-Identifier: GPL-2.0

//! The line would stay masked for ever.

use irqmod::MaskToken;

pub struct Line;

impl Line {
    pub fn mask(&self) -> MaskToken {
        MaskToken::mint()
    }
}

pub fn dropped(line: &Line) {
    let _token = line.mask(); //~ a MaskToken is dropped here: the line would stay masked for ever
}

