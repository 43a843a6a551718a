// SPDX-License-Identifier: GPL-2.0

//! One disable is ended once.

use irqmod::{MaskToken, Platform};

pub fn twice<P: Platform>(platform: &P, token: MaskToken) {
    platform.unmask(token.clone()); //~ no method named `clone` found for struct `MaskToken
    platform.unmask(token);
}
