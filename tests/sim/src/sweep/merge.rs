// SPDX-License-Identifier: GPL-2.0

//! Joins the pieces of a sweep.

use super::{
    Piece,
    Plan,
    Point,
    Shard, //
};
use serde_json::Value;
use std::collections::BTreeMap;

/// The whole of what `pieces`, with the names of their files, are parts of.
///
/// # Errors
///
/// One line that names the shards that are missing, or the files that are there twice, are not
/// complete, or belong to another sweep.
pub fn merge(pieces: Vec<(String, Piece)>) -> Result<(Plan, Vec<Point>), String> {
    let Some((first, piece)) = pieces.first() else {
        return Err("merge: no shard".into());
    };
    let (first, plan, of) = (first.clone(), piece.plan.clone(), piece.shard.of);
    let count = plan.count()?;
    let mut known: BTreeMap<u64, String> = BTreeMap::new();
    let mut points = Vec::new();
    for (file, piece) in pieces {
        if let Some(what) = difference(&plan, &piece.plan)? {
            return Err(format!("{file}: is of another sweep than {first}: {what}"));
        }
        if piece.shard.of != of {
            return Err(format!(
                "{file}: is shard {}, {first} is one of {of}",
                piece.shard
            ));
        }
        check(&file, &piece, count)?;
        if let Some(other) = known.insert(piece.shard.index, file.clone()) {
            return Err(format!("{file}: is shard {}, as {other} is", piece.shard));
        }
        points.extend(piece.points);
    }
    let missing: Vec<String> = (0..of)
        .filter(|index| !known.contains_key(index))
        .map(|index| Shard { index, of }.to_string())
        .collect();
    if !missing.is_empty() {
        return Err(format!("merge: missing: {}", few(&missing)));
    }
    points.sort_by_key(|point| point.number);
    Ok((plan, points))
}

/// Whether a piece has the points that it should have, each once, with its settings.
fn check(file: &str, piece: &Piece, count: u64) -> Result<(), String> {
    let found: Vec<u64> = piece.points.iter().map(|point| point.number).collect();
    let wanted: Vec<u64> = piece.shard.of_points(count).collect();
    if found != wanted {
        let missing = wanted.iter().filter(|number| !found.contains(number));
        let missing: Vec<String> = missing.map(u64::to_string).collect();
        return Err(format!(
            "{file}: has {} points, shard {} has {}; missing: {}",
            found.len(),
            piece.shard,
            wanted.len(),
            few(&missing)
        ));
    }
    let wrong = piece.points.iter().find(|point| {
        let (settings, seed) = piece.plan.settings(point.number);
        settings != point.settings || seed != point.seed
    });
    match wrong {
        Some(point) => Err(format!("{file}: point {} is another one", point.number)),
        None => Ok(()),
    }
}

/// The first of many.
fn few(names: &[String]) -> String {
    match names.len() {
        0 => "none".into(),
        1..=20 => names.join(", "),
        all => format!("{} and {} more", names[..20].join(", "), all - 20),
    }
}

/// The first key in which two plans differ, with both values.
fn difference(a: &Plan, b: &Plan) -> Result<Option<String>, String> {
    let json = |plan: &Plan| serde_json::to_value(plan).map_err(|error| error.to_string());
    Ok(differs("", &json(a)?, &json(b)?))
}

fn differs(under: &str, a: &Value, b: &Value) -> Option<String> {
    match (a.as_object(), b.as_object()) {
        _ if a == b => None,
        (Some(a), Some(b)) => a.iter().find_map(|(key, value)| {
            let other = b.get(key).unwrap_or(&Value::Null);
            let key = if under.is_empty() {
                key.clone()
            } else {
                format!("{under}.{key}")
            };
            differs(&key, value, other)
        }),
        _ => Some(format!("{under} is {b}, not {a}")),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::plan,
        *, //
    };

    fn pieces(of: u64) -> Vec<(String, Piece)> {
        let piece = |index| {
            let shard = Shard { index, of };
            let piece = plan().run(shard, 2, |_| ()).expect("a piece");
            (shard.file(), piece)
        };
        (0..of).map(piece).collect()
    }

    fn error(pieces: Vec<(String, Piece)>) -> String {
        merge(pieces).expect_err("merged")
    }

    /// Also through files: nothing is lost in JSON.
    #[test]
    fn merged_shards_are_the_sweep() {
        let whole = plan().run(Shard::WHOLE, 1, |_| ()).expect("a sweep");
        let mut parts: Vec<(String, Piece)> = pieces(5)
            .into_iter()
            .map(|(name, piece)| {
                let text = serde_json::to_string(&piece).expect("JSON");
                (name, serde_json::from_str(&text).expect("a piece"))
            })
            .collect();
        parts.reverse();
        assert_eq!(merge(parts), Ok((whole.plan, whole.points)));
    }

    #[test]
    fn missing_shards_are_named() {
        let mut parts = pieces(5);
        parts.remove(3);
        parts.remove(1);
        assert_eq!(error(parts), "merge: missing: 1/5, 3/5");
        assert_eq!(error(Vec::new()), "merge: no shard");
    }

    #[test]
    fn doubled_shards_are_named() {
        let mut parts = pieces(3);
        let mut copy = parts[1].clone();
        copy.0 = "copy.json".into();
        parts.push(copy);
        assert_eq!(
            error(parts),
            "copy.json: is shard 1/3, as shard-00001-of-00003.json is"
        );
    }

    #[test]
    fn shards_of_another_sweep_are_named() {
        let mut parts = pieces(3);
        parts[2].1.plan.scenario.machine.kernel.hz = 1000;
        assert_eq!(
            error(parts),
            "shard-00002-of-00003.json: is of another sweep than shard-00000-of-00003.json: \
             scenario.machine.kernel.hz is 1000, not 250"
        );
        let mut parts = pieces(3);
        parts[1].1.shard.of = 4;
        assert!(error(parts).contains("is shard 1/4, shard-00000-of-00003.json is one of 3"));
    }

    #[test]
    fn shards_that_are_not_complete_are_named() {
        let mut parts = pieces(3);
        parts[1].1.points.remove(2);
        let expected = "shard-00001-of-00003.json: has 3 points, shard 1/3 has 4; missing: 7";
        assert_eq!(error(parts), expected);
        let mut parts = pieces(3);
        parts[1].1.points[0].seed = 99;
        assert!(error(parts).ends_with("point 1 is another one"));
    }
}
