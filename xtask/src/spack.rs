//! A repository of recipes for Spack, with the archive of the sources in it.
//!
//! ```text
//!   vendor's archive ──▶ DIR/repo.yaml, DIR/packages/lintel: recipe with its checksum, archive
//!   --try: a Spack of its own settings ──▶ spack install ──▶ a program is compiled and run
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::dist::write;
use crate::report::Outcome;
use crate::shell::{self, Arguments, Tree};
use crate::{prerequisites, vendor};

const NEEDS: [(&str, &str, &str); 1] = [("pkg-config", "the recipe", "pkg-config")];

const REPOSITORY: &str = "\
repo:
  namespace: lintel
";

/// What a user does. `spack` has the repository, and this machine's compilers.
const SCRIPT: &str = r#"
spack spec lintel
spack install --fail-fast lintel
cd "$(mktemp -d)"
eval "$(spack load --sh lintel)"
prefix=$(spack location --install-dir lintel)
cp "$prefix"/share/doc/lintel/examples/*.[ch] .
cc ring.c -o ring $(pkg-config --cflags --libs portals4_job)
case "$(command -v yod)" in "$prefix"/*) ;; *) echo "another yod: $(command -v yod)"; exit 1;; esac
yod -n 2 ./ring
"#;

/// `cargo xtask spack [--out DIR] [--try]`.
pub fn run(tree: &Tree, words: &[&str]) -> Outcome {
    let is_tried = words.contains(&"--try");
    let rest: Vec<&str> = words
        .iter()
        .copied()
        .filter(|word| *word != "--try")
        .collect();
    let options = Arguments::new(&rest)?.only(&["--out"])?;
    let out = options
        .get("--out")
        .map_or(tree.target.join("spack/repository"), PathBuf::from);
    if is_tried && shell::find_program("spack").is_none() {
        return Err(
            "missing: spack (to try the recipe); it is no package of Debian: clone its \
            repository, and add the clone's bin to PATH"
                .into(),
        );
    }
    make(tree, &out)?;
    println!("   {}", out.display());
    match is_tried {
        true => try_recipe(tree, &out),
        false => Ok(()),
    }
}

/// Writes the repository.
fn make(tree: &Tree, out: &Path) -> Outcome {
    let version = tree.version()?;
    let folder = out.join("packages/lintel");
    write(&out.join("repo.yaml"), REPOSITORY)?;
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let archive = folder.join(format!("lintel-{version}-vendored.tar.gz"));
    vendor::archive(tree, &archive)?;
    let sum = shell::output(Command::new("sha256sum").arg(&archive))?;
    let sum = sum.split_whitespace().next().unwrap_or_default();
    let recipe = shell::read(&tree.path("packaging/spack/package.py.in"))?;
    let recipe = recipe
        .replace("@VERSION@", &version)
        .replace("@SHA256@", sum);
    write(&folder.join("package.py"), &recipe)
}

/// Installs from the repository into a folder of its own, with settings of its own; Rust and
/// pkg-config are this machine's.
fn try_recipe(tree: &Tree, repository: &Path) -> Outcome {
    prerequisites::programs(&NEEDS)?;
    let work = tree.fresh_folder("spack/try")?;
    let settings = work.join("settings");
    let repositories = format!("repos:\n- {}\n", repository.display());
    write(&settings.join("repos.yaml"), &repositories)?;
    write(&settings.join("packages.yaml"), &externals()?)?;
    let store = work.join("store");
    let stage = work.join("stage");
    let config = format!(
        "config:\n  install_tree:\n    root: {}\n  build_stage: [{}]\n",
        store.display(),
        stage.display()
    );
    write(&settings.join("config.yaml"), &config)?;
    let mut sh = Command::new("bash");
    sh.args(["-euc", SCRIPT])
        .env("SPACK_USER_CONFIG_PATH", &settings)
        .env("SPACK_USER_CACHE_PATH", work.join("cache"));
    shell::run(&mut sh)?;
    fs::remove_dir_all(&work).map_err(|e| format!("{}: {e}", work.display()))
}

/// What Spack doesn't build anew.
fn externals() -> Result<String, String> {
    let asked = |program: &str, word: &[&str]| {
        shell::output(Command::new(program).args(word)).map(|said| said.trim().to_owned())
    };
    let rust = asked("rustc", &["--version"])?;
    let rust = rust.split(' ').nth(1).unwrap_or_default();
    let toolchain = asked("rustc", &["--print", "sysroot"])?;
    let pkg_config = asked("pkg-config", &["--version"])?;
    Ok(format!(
        "\
packages:
  rust:
    buildable: false
    externals:
    - spec: rust@{rust}
      prefix: {toolchain}
  pkg-config:
    buildable: false
    externals:
    - spec: pkg-config@{pkg_config}
      prefix: /usr
  pkgconfig:
    require: pkg-config
"
    ))
}
