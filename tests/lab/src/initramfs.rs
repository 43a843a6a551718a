// SPDX-License-Identifier: GPL-2.0

//! The guest's whole file system, as an archive in memory.

use crate::{
    closure,
    cpio::Archive,
    failure::{
        At,
        Failure,
        Result, //
    },
    kernel::Kernel,
    lab::Lab,
    programs,
    step::Step, //
};
use std::{
    fs,
    path::{
        Path,
        PathBuf, //
    },
};

/// What goes into the archive besides the lab's own things.
#[derive(Clone, Default)]
pub(crate) struct Extra {
    /// Path in the guest and content.
    pub(crate) files: Vec<(String, Vec<u8>)>,
}

/// Makes the archive.
pub(crate) fn build(lab: &Lab, kernel: &Kernel, extra: &Extra) -> Result<Vec<u8>> {
    let mut archive = Archive::new();
    for folder in ["proc", "sys", "dev", "tmp", "mnt"] {
        archive.directory(folder);
    }
    archive.character("dev/console", 5, 1);
    archive.file("init", 0o755, include_bytes!("init.sh"));
    archive.file("serve", 0o755, include_bytes!("serve.sh"));
    for (path, content) in &extra.files {
        archive.file(path, 0o755, content);
    }
    for program in programs::guest(lab)? {
        add_program(lab, &mut archive, &in_bin(&program), &program)?;
    }
    add_program(lab, &mut archive, "bin/fio", &host_program("fio")?)?;
    add_modules(&mut archive, kernel)?;
    add_busybox(lab, &mut archive)?;
    Ok(archive.finish())
}

fn in_bin(program: &Path) -> String {
    format!(
        "bin/{}",
        program.file_name().unwrap_or_default().to_string_lossy()
    )
}

fn add_program(lab: &Lab, archive: &mut Archive, path: &str, program: &Path) -> Result<()> {
    add_host_file(archive, path, program)?;
    for library in closure::libraries(lab, program)? {
        add_host_file(archive, &library.to_string_lossy(), &library)?;
    }
    Ok(())
}

fn add_host_file(archive: &mut Archive, path: &str, file: &Path) -> Result<()> {
    if !archive.contains(path) {
        archive.file(
            path,
            0o755,
            &fs::read(file).at(format!("read {}", file.display()))?,
        );
    }
    Ok(())
}

fn add_modules(archive: &mut Archive, kernel: &Kernel) -> Result<()> {
    for module in kernel.modules()? {
        let name = module.file_name().unwrap_or_default().to_string_lossy();
        add_host_file(archive, &format!("lib/modules/{name}"), &module)?;
    }
    Ok(())
}

fn add_busybox(lab: &Lab, archive: &mut Archive) -> Result<()> {
    let busybox = host_program("busybox")?;
    let step = Step::new(lab, "list the commands of busybox", &busybox);
    let list = step.args(["--list"]).output()?;
    add_program(lab, archive, "bin/busybox", &busybox)?;
    for command in list.lines() {
        archive.symlink(&format!("bin/{command}"), "busybox");
    }
    Ok(())
}

fn host_program(name: &str) -> Result<PathBuf> {
    let missing = || Failure::new("make the guest's file system", format!("{name} is missing"));
    crate::host::which(name).ok_or_else(missing)
}
