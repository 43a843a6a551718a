// SPDX-License-Identifier: GPL-2.0

//! Numbers drawn from the seed: xoshiro256**, in integers only.

/// A generator of one stream of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random([u64; 4]);

impl Random {
    /// The stream of `seed`; neighbouring seeds have nothing in common.
    pub(crate) fn new(seed: u64) -> Self {
        let mut state = seed;
        Self([(); 4].map(|()| {
            // splitmix64
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }))
    }

    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number in `0..below`; 0 if that is empty.
    pub(crate) fn below(&mut self, below: u64) -> u64 {
        u64::try_from((u128::from(self.bits()) * u128::from(below)) >> 64).unwrap_or(0)
    }

    /// True in `permille` of 1,000 cases.
    pub(crate) fn chance(&mut self, permille: u32) -> bool {
        permille != 0 && self.below(1000) < u64::from(permille)
    }

    /// About normal around `mean`, with a standard deviation of `cv` percent of it, and never less
    /// than a tenth of it: four uniform numbers of 16 bits, which keeps to 3.5 deviations.
    pub(crate) fn spread(&mut self, mean: u64, cv: u32) -> u64 {
        if cv == 0 {
            return mean;
        }
        let bits = self.bits();
        let sum: u64 = (0..4).map(|i| (bits >> (16 * i)) & 0xffff).sum();
        // The sum has mean 131,070 and deviation sqrt(4 / 12) * 65,536 = 37,837.
        let off = (i128::from(sum) - 131_070) * i128::from(mean) * i128::from(cv) / 3_783_700;
        let value = i128::from(mean) + off;
        u64::try_from(value.max(i128::from(mean / 10))).unwrap_or(mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_has_the_mean_and_deviation_asked_for() {
        let mut random = Random::new(7);
        let values: Vec<f64> = (0..20_000)
            .map(|_| random.spread(10_000, 25) as f64)
            .collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let var = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64;
        assert!((9_950.0..10_050.0).contains(&mean), "{mean}");
        assert!((2_400.0..2_600.0).contains(&var.sqrt()), "{}", var.sqrt());
    }

    #[test]
    fn one_seed_one_stream() {
        let draw = |seed| Random::new(seed).bits();
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }
}
