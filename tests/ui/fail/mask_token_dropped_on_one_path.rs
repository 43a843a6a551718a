// SPDX-License-Identifier: GPL-2.0

//! Also if it is only sometimes.

use irqmod::MaskToken;

pub fn sometimes(unmask: bool) {
    let token = MaskToken::mint();
    if unmask {
        token.redeem();
    }
    //~ a MaskToken is dropped here: the line would stay masked for ever
}
