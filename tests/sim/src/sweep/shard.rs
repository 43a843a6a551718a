// SPDX-License-Identifier: GPL-2.0

//! Pieces of a sweep.

use serde::{
    Deserialize,
    Serialize, //
};

/// Most pieces.
const MOST: u64 = 100_000;

/// Piece `index` of `of`: every `of`-th point, from number `index` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// `0..of`
    pub index: u64,
    /// `1..=100_000`
    pub of: u64,
}

impl Shard {
    /// All of it.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// Parses `I/N`. `auto` takes both from the environment of a Slurm array, `auto/N` the index from
    /// that of a Slurm array or of a Kubernetes indexed job.
    ///
    /// # Errors
    ///
    /// One line that says what is allowed, or which variable is missing.
    pub fn parse(text: &str, env: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let number = |name: &str, text: &str| {
            text.parse::<u64>()
                .map_err(|_| format!("--shard: {name} '{text}' is not a whole number"))
        };
        let variable = |name: &str| env(name).map(|text| number(name, &text)).transpose();
        let (index, of) = match text.split_once('/') {
            Some((index, of)) => (index, Some(number("N", of)?)),
            None => (text, None),
        };
        let index = match index {
            "auto" => {
                let first = variable("SLURM_ARRAY_TASK_MIN")?.unwrap_or(0);
                let task = variable("SLURM_ARRAY_TASK_ID")?.map(|task| task.saturating_sub(first));
                let found = task.or(variable("JOB_COMPLETION_INDEX")?);
                found
                    .ok_or("--shard: neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX is set")?
            }
            index => number("I", index)?,
        };
        let of = match of {
            Some(of) => of,
            None => variable("SLURM_ARRAY_TASK_COUNT")?.ok_or(
                "--shard: is not I/N, and SLURM_ARRAY_TASK_COUNT, which auto needs, is not set",
            )?,
        };
        if !(1..=MOST).contains(&of) {
            return Err(format!("--shard: N {of} is not in 1..={MOST}"));
        }
        if index >= of {
            return Err(format!("--shard: I {index} is not in 0..={}", of - 1));
        }
        Ok(Self { index, of })
    }

    /// The numbers of its points, of `count` in all.
    pub fn of_points(self, count: u64) -> impl Iterator<Item = u64> {
        (self.index..count).step_by(self.of as usize)
    }

    /// The name of its file.
    pub fn file(self) -> String {
        format!("shard-{:05}-of-{:05}.json", self.index, self.of)
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, env: &[(&str, &str)]) -> Result<Shard, String> {
        Shard::parse(text, |name| {
            let found = env.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_shard_is_given_or_found_in_the_environment() {
        let shard = |index, of| Ok(Shard { index, of });
        assert_eq!(parse("3/8", &[]), shard(3, 8));
        let slurm = [
            ("SLURM_ARRAY_TASK_ID", "4"),
            ("SLURM_ARRAY_TASK_MIN", "1"),
            ("SLURM_ARRAY_TASK_COUNT", "8"),
        ];
        assert_eq!(parse("auto", &slurm), shard(3, 8));
        assert_eq!(parse("auto/16", &slurm[..1]), shard(4, 16));
        assert_eq!(
            parse("auto/16", &[("JOB_COMPLETION_INDEX", "15")]),
            shard(15, 16)
        );
    }

    #[test]
    fn other_shards_are_refused() {
        for (text, env, part) in [
            ("8/8", &[][..], "I 8 is not in 0..=7"),
            ("0/0", &[], "N 0 is not in 1..=100000"),
            ("x/8", &[], "I 'x' is not a whole number"),
            ("1", &[], "SLURM_ARRAY_TASK_COUNT"),
            ("auto/8", &[], "JOB_COMPLETION_INDEX"),
            (
                "auto/8",
                &[("JOB_COMPLETION_INDEX", "y")],
                "JOB_COMPLETION_INDEX 'y' is not a whole number",
            ),
        ] {
            let error = parse(text, env).expect_err(text);
            assert!(
                error.starts_with("--shard: ") && error.contains(part),
                "{error}"
            );
        }
    }

    #[test]
    fn shards_are_disjoint_and_complete() {
        for of in 1..9 {
            let mut all: Vec<u64> = (0..of)
                .flat_map(|index| Shard { index, of }.of_points(20))
                .collect();
            all.sort_unstable();
            assert_eq!(all, (0..20).collect::<Vec<_>>());
        }
    }
}
