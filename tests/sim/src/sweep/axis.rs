// SPDX-License-Identifier: GPL-2.0

//! What is varied.

use serde::{
    Deserialize,
    Serialize, //
};

/// Most values of an axis.
const MOST: usize = 100_000;

/// A key and its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// A key of the machine or its load, `policy`, or `policy.KEY`.
    pub key: String,
    /// Its values.
    pub values: Vec<String>,
}

impl Axis {
    /// Parses `KEY=A,B,C`, `KEY=A..B/STEP` or `KEY=A..B*FACTOR`; B is a value if a step leads to it.
    ///
    /// # Errors
    ///
    /// One line that says what is allowed.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (key, values) = text
            .split_once('=')
            .filter(|(key, values)| !key.is_empty() && !values.is_empty())
            .ok_or_else(|| {
                format!("{text}: is not KEY=A,B,C or KEY=A..B/STEP or KEY=A..B*FACTOR")
            })?;
        let values = match values.split_once("..") {
            Some((first, rest)) => range(key, first, rest)?,
            None if key == "policy" => crate::matrix::policies(values),
            None => values.split(',').map(str::to_owned).collect(),
        };
        Ok(Self {
            key: key.into(),
            values,
        })
    }

    /// Its values as numbers, if all are.
    pub fn numbers(&self) -> Option<Vec<f64>> {
        let numbers = self.values.iter().map(|value| value.parse().ok());
        numbers.collect()
    }
}

fn range(key: &str, first: &str, rest: &str) -> Result<Vec<String>, String> {
    let number = |text: &str| {
        text.parse::<u64>()
            .map_err(|_| format!("{key}: '{text}' is not a whole number"))
    };
    let (last, step, times) = match (rest.split_once('/'), rest.split_once('*')) {
        (Some((last, step)), _) => (last, number(step)?, 1),
        (_, Some((last, factor))) => (last, 0, number(factor)?),
        _ => (rest, 1, 1),
    };
    let (first, last) = (number(first)?, number(last)?);
    if last < first {
        return Err(format!("{key}: {last} is less than {first}"));
    }
    if step == 0 && (times < 2 || first == 0) {
        return Err(format!(
            "{key}: a range has a step of at least 1, or begins at 1 and has a factor of at least 2"
        ));
    }
    let next = |value: &u64| value.checked_mul(times)?.checked_add(step);
    let values = std::iter::successors(Some(first), next).take_while(|&value| value <= last);
    let values: Vec<String> = values
        .take(MOST + 1)
        .map(|value| value.to_string())
        .collect();
    if values.len() > MOST {
        return Err(format!("{key}: has more than {MOST} values"));
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges_are_read() {
        for (text, values) in [
            ("k=a,b,c", vec!["a", "b", "c"]),
            ("k=5", vec!["5"]),
            ("k=1..4", vec!["1", "2", "3", "4"]),
            ("k=10..35/10", vec!["10", "20", "30"]),
            ("k=1..16*4", vec!["1", "4", "16"]),
            ("k=7..7", vec!["7"]),
        ] {
            assert_eq!(Axis::parse(text).expect(text).values, values);
        }
        assert_eq!(
            Axis::parse("k=1,2").expect("numbers").numbers(),
            Some(vec![1.0, 2.0])
        );
        assert_eq!(Axis::parse("k=1,x").expect("words").numbers(), None);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "k",
            "k=",
            "=1",
            "k=1..x",
            "k=5..1",
            "k=1..5/0",
            "k=1..5*1",
            "k=0..5*2",
            "k=..5",
            "k=1..99999999",
        ] {
            let error = Axis::parse(text).expect_err(text);
            assert!(error.contains('k') || error.contains("KEY"), "{error}");
        }
    }
}
