// SPDX-License-Identifier: GPL-2.0

// Planting a bug in a text. Included by the models' build script, and by the kill matrix.

use std::ops::Range;

/// Where `pattern` occurs in `text`, whatever the white space in both: it moves with formatting.
fn find(text: &str, pattern: &str) -> Vec<Range<usize>> {
    let words: Vec<_> = text
        .char_indices()
        .filter(|(_, c)| !c.is_whitespace())
        .collect();
    let pattern: Vec<_> = pattern.chars().filter(|c| !c.is_whitespace()).collect();
    words
        .windows(pattern.len())
        .filter(|window| window.iter().map(|(_, c)| c).eq(&pattern))
        .map(|window| window[0].0..window[window.len() - 1].0 + 1)
        .collect()
}

/// `text` with the changes of `bug`; an error if one of its places is not there exactly once.
fn with_bug(mut text: String, bug: &Bug) -> Result<String, String> {
    for (from, to) in bug.changes {
        let places = find(&text, from);
        let [place] = &places[..] else {
            return Err(format!("bug {}: {} places to plant it: {from}", bug.name, places.len()));
        };
        text.replace_range(place.clone(), to);
    }
    Ok(text)
}
