// SPDX-License-Identifier: GPL-2.0

//! Which shared libraries a program needs, as the host's loader finds them.

use crate::{
    failure::Result,
    lab::Lab,
    step::Step, //
};
use std::path::{
    Path,
    PathBuf, //
};

/// The libraries and the loader of a program; none for a static one.
pub(crate) fn libraries(lab: &Lab, program: &Path) -> Result<Vec<PathBuf>> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let script = "case $(LC_ALL=C ldd \"$1\" 2>&1) in \
         *'not a dynamic executable'*|*'statically linked'*) ;; *) ldd \"$1\" ;; esac";
    let step = Step::new(lab, format!("find the libraries of {name}"), "sh");
    let text = step.args(["-c", script, "sh"]).args([program]).output()?;
    Ok(paths(&text))
}

/// The paths in the output of `ldd`.
fn paths(text: &str) -> Vec<PathBuf> {
    text.lines()
        .filter_map(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            let path = match words.as_slice() {
                [_, "=>", path, ..] => path,
                [path, ..] => path,
                [] => return None,
            };
            path.starts_with('/').then(|| PathBuf::from(path))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_libraries_and_loader() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\
                    \tlibz.so.1 => /lib/x/libz.so.1 (0x00007f)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let expected = ["/lib/x/libz.so.1", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from);
        assert_eq!(paths(text), expected);
        assert!(paths("").is_empty());
    }
}
