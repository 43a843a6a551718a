// SPDX-License-Identifier: GPL-2.0

//! A built kernel: found in the store by what it would be made from, or built.

use crate::{
    cli::From,
    failure::{
        At,
        Failure,
        Result, //
    },
    key::Key,
    lab::{
        make_dir,
        replace_file,
        Lab, //
    },
    progress::Meter,
    source::{
        self,
        fresh_dir,
        BuildTree,
        Source, //
    },
    step::Step,
    toolchain::Toolchain,
};
use std::{
    fs,
    path::{
        Path,
        PathBuf, //
    },
    thread,
};

pub(crate) use crate::cli::Flavour;

/// What a kernel is made from, apart from its source and its configuration.
const INPUTS: &[&str] = &[
    "irqmod/src",
    "nvme-pci/src",
    "examples",
    "kbuild/files",
    "kbuild/patches",
    "kbuild/integrate",
    "kbuild/integration",
    "Cargo.lock",
];

/// Lines that a build from nothing prints, until a build here has told.
const LINES: u64 = 1900;

impl Flavour {
    /// The name in paths.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Debug => "debug",
        }
    }

    fn fragments(self) -> &'static [&'static str] {
        match self {
            Self::Base => &["kbuild/kernel.config"],
            Self::Debug => &[
                "kbuild/kernel.config",
                "kbuild/debug.config",
                "kbuild/kasan.config",
            ],
        }
    }
}

/// The products of one build.
pub(crate) struct Kernel {
    /// Folder with the image and the modules.
    pub(crate) dir: PathBuf,
    /// What `uname -r` says.
    pub(crate) release: String,
}

impl Kernel {
    /// What QEMU boots.
    pub(crate) fn image(&self) -> PathBuf {
        self.dir.join("bzImage")
    }

    /// All loadable modules.
    pub(crate) fn modules(&self) -> Result<Vec<PathBuf>> {
        let folder = self.dir.join("modules");
        let mut modules = Vec::new();
        for entry in fs::read_dir(&folder).at(format!("read {}", folder.display()))? {
            modules.push(entry.at("read the modules")?.path());
        }
        modules.sort();
        Ok(modules)
    }

    fn stored(dir: PathBuf) -> Option<Self> {
        let release = fs::read_to_string(dir.join("release")).ok()?;
        Some(Self {
            dir,
            release: release.trim().to_owned(),
        })
    }
}

/// The kernel of this checkout, from the store or built now.
pub(crate) fn get(lab: &Lab, flavour: Flavour, from: &From) -> Result<Kernel> {
    if let Some(dir) = &from.built {
        return built(dir, flavour);
    }
    let toolchain = Toolchain::get(lab)?;
    let source = source::get(lab, from.tree.as_deref())?;
    if let (Some(tree), false) = (source.own(), lab.dry_run) {
        lab.say(&format!(
            "irqmod goes into {0} (kbuild/integrate --revert {0} takes it out)",
            tree.display()
        ));
        integrate(lab, tree)?;
    }
    let dir = lab
        .cache
        .join("kernels")
        .join(key(lab, flavour, &source, &toolchain)?);
    if let Some(kernel) = Kernel::stored(dir.clone()) {
        return Ok(kernel);
    }
    let _lock = lab.lock(&format!("build of the {} kernel", flavour.name()))?;
    if let Some(kernel) = Kernel::stored(dir.clone()) {
        return Ok(kernel);
    }
    let build = Build {
        lab,
        flavour,
        tree: source.build_tree(lab, flavour.name())?,
        version: source.version,
        toolchain,
    };
    build.run(&dir)
}

/// A kernel that the user has named.
fn built(dir: &Path, flavour: Flavour) -> Result<Kernel> {
    let step = format!(
        "use the built {} kernel in {}",
        flavour.name(),
        dir.display()
    );
    let config = fs::read_to_string(dir.join("config")).unwrap_or_default();
    let is_debug = config.lines().any(|line| line == "CONFIG_PROVE_LOCKING=y");
    if is_debug != (flavour == Flavour::Debug) {
        return Err(Failure::new(step, "it has another configuration"));
    }
    Kernel::stored(dir.to_path_buf()).ok_or_else(|| Failure::new(step, "there is none"))
}

fn key(lab: &Lab, flavour: Flavour, source: &Source, toolchain: &Toolchain) -> Result<String> {
    let mut key = Key::new();
    key.part(source.version.as_bytes());
    if let Some(tree) = source.own() {
        key.stamps(tree)?;
    }
    key.part(toolchain.versions().as_bytes());
    for input in INPUTS.iter().chain(flavour.fragments()) {
        key.path(&lab.root, Path::new(input))?;
    }
    Ok(format!("{}-{}", flavour.name(), key.name()))
}

fn integrate(lab: &Lab, tree: &Path) -> Result<()> {
    let name = "integrate irqmod into the kernel tree";
    Step::new(lab, name, "kbuild/integrate").args([tree]).run()
}

struct Build<'a> {
    lab: &'a Lab,
    flavour: Flavour,
    version: String,
    tree: BuildTree,
    toolchain: Toolchain,
}

impl Build<'_> {
    fn run(&self, dir: &Path) -> Result<Kernel> {
        let name = self.flavour.name();
        let what = format!("build the {name} kernel of Linux {}", self.version);
        integrate(self.lab, &self.tree.source)?;
        self.configure()?;
        self.compile(&what)?;
        if self.lab.dry_run {
            return Ok(Kernel {
                dir: dir.to_path_buf(),
                release: self.version.clone(),
            });
        }
        self.keep(dir)?;
        let cause = "its products are not in the store";
        Kernel::stored(dir.to_path_buf()).ok_or_else(|| Failure::new(what, cause))
    }

    /// Writes the configuration, but touches it only if it changes: make takes its age as a
    /// reason to build all of Rust again.
    fn configure(&self) -> Result<()> {
        let name = self.flavour.name();
        let wishes = self.tree.output.join("lab.config");
        if !self.lab.dry_run {
            replace_file(&wishes, &self.wishes()?)?;
        }
        let fresh = self.tree.output.join("lab.config.new");
        let step = self.make(&format!("configure the {name} kernel"));
        let step = step
            .env("KCONFIG_ALLCONFIG", &wishes)
            .env("KCONFIG_CONFIG", &fresh);
        step.args(["allnoconfig"]).run()?;
        let what = format!("check the {name} configuration");
        let step = Step::new(self.lab, what, "kbuild/check-config");
        step.args([&wishes, &fresh]).run()?;
        if self.lab.dry_run {
            return Ok(());
        }
        let config = self.tree.output.join(".config");
        let text = fs::read(&fresh).at("read the configuration")?;
        if fs::read(&config).is_ok_and(|old| old == text) {
            return Ok(());
        }
        replace_file(&config, &text)
    }

    fn wishes(&self) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        for fragment in self.flavour.fragments() {
            let path = self.lab.root.join(fragment);
            text.extend(fs::read(&path).at(format!("read {}", path.display()))?);
        }
        Ok(text)
    }

    fn compile(&self, what: &str) -> Result<()> {
        let jobs = thread::available_parallelism().map_or(1, usize::from);
        let step = self.make(&format!("build the {} kernel", self.flavour.name()));
        let step = step.args([&format!("-j{jobs}"), "bzImage", "modules"]);
        if self.lab.dry_run {
            return step.run();
        }
        let count = self.tree.output.join("lab.lines");
        let known = fs::read_to_string(&count)
            .ok()
            .and_then(|text| text.trim().parse().ok());
        let mut meter = Meter::new(self.lab, known.unwrap_or(LINES), what);
        let mut lines = 0;
        step.run_with(|line| {
            if line.starts_with("  ") {
                lines += 1;
                meter.advance(lines);
            }
        })?;
        meter.finish();
        if known.is_none() && lines > LINES / 2 {
            replace_file(&count, lines.to_string().as_bytes())?;
        }
        Ok(())
    }

    /// Variables that a developer of kernels may have set for other trees lead nowhere else.
    fn make(&self, name: &str) -> Step<'_> {
        let (key, value) = self.toolchain.libclang();
        let mut step = Step::new(self.lab, name, "make");
        step = step.args(["-C".as_ref(), self.tree.source.as_os_str()]);
        if self.tree.output != self.tree.source {
            step = step.args([format!("O={}", self.tree.output.display())]);
        }
        step.args(self.toolchain.make_words())
            .env(key, value)
            .env("ARCH", "x86")
            .env("CROSS_COMPILE", "")
            .env("KBUILD_OUTPUT", "")
            .env("KBUILD_BUILD_TIMESTAMP", "@0")
            .env("KBUILD_BUILD_USER", "irqmod")
            .env("KBUILD_BUILD_HOST", "lab")
    }

    /// Copies the products into the store: as a whole or not at all.
    fn keep(&self, dir: &Path) -> Result<()> {
        let temporary = dir.with_extension("tmp");
        fresh_dir(&temporary)?;
        make_dir(&temporary.join("modules"))?;
        let copy = |from: &str, to: &str| {
            let from = self.tree.output.join(from);
            let step = format!("copy {}", from.display());
            fs::copy(&from, temporary.join(to)).at(step).map(drop)
        };
        copy("arch/x86/boot/bzImage", "bzImage")?;
        copy("System.map", "System.map")?;
        copy(".config", "config")?;
        let order = self.tree.output.join("modules.order");
        let order = fs::read_to_string(&order).at(format!("read {}", order.display()))?;
        for object in order.lines() {
            let module = format!("{}.ko", object.trim_end_matches(".o"));
            let name = module.rsplit('/').next().unwrap_or(&module).to_owned();
            copy(&module, &format!("modules/{name}"))?;
        }
        copy("include/config/kernel.release", "release")?;
        fs::rename(&temporary, dir).at(format!("keep the kernel in {}", dir.display()))
    }
}
