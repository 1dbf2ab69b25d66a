//! The image that `packaging/Containerfile` describes.
//!
//! ```text
//!   --try: mmdebstrap ──▶ the two images that it begins with, one with this machine's Rust
//!          vendor's sources ──▶ buildah build ──▶ a program is compiled and run in the image
//! ```
//!
//! A trial so takes no image registry, only Debian's packages.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::report::Outcome;
use crate::shell::{self, Tree};
use crate::{prerequisites, vendor};

const NEEDS: [(&str, &str, &str); 1] = [("buildah", "images", "buildah")];
const TRIAL_NEEDS: [(&str, &str, &str); 1] = [("mmdebstrap", "a fresh Debian", "mmdebstrap")];

const CONTAINERFILE: &str = "packaging/Containerfile";
const IMAGE: &str = "localhost/lintel";
const TRIED: &str = "localhost/lintel-try";
/// The stages' first images in a trial, by the arguments of the Containerfile.
const DEBIAN: (&str, &str) = ("DEBIAN", "localhost/lintel-try-debian");
const RUST: (&str, &str) = ("RUST", "localhost/lintel-try-rust");
/// The release that the Containerfile names.
const RELEASE: &str = "bookworm";
/// Enough for a release build of everything on a slow machine.
const LIMIT: Duration = Duration::from_secs(3600);

/// What a user does first, as the image's user: a program of two ranks, a measurement with its
/// plots, the reason of a hang, a timeline.
const SCRIPT: &str = r#"
cp /usr/share/doc/lintel/examples/*.[ch] .
flags=$(pkg-config --cflags --libs portals4_job)
cc ring.c -o ring $flags
yod -n 2 ./ring
yod -n 2 --mode generic ./ring
yod -n 2 lintel perf put --sizes 8,1K --time 20 --rounds 1 --plots plots
ls plots/*.svg plots/*.png
awk '/^```c,file=stuck.c/ { found = 1; next } /^```/ { found = 0 } found' \
    /usr/share/doc/lintel/book/observing.md > stuck.c
cc stuck.c -o stuck $flags
if yod -n 2 --dump-after 1 --timeout 3 ./stuck 2> dumped; then exit 1; fi
grep "rank 1 waits for an event in queue" dumped
mkdir timelines
PTL_TRACE=$PWD/timelines yod -n 2 ./ring
lintel trace merge timelines --out timeline.json
test "$(id -un)" = user
"#;

/// `cargo xtask container [--try]`.
pub fn run(tree: &Tree, words: &[&str]) -> Outcome {
    match words {
        [] => {
            prerequisites::programs(&NEEDS)?;
            build(IMAGE, &tree.root, &[])
        }
        ["--try"] => try_image(tree),
        _ => Err("the only option is --try".into()),
    }
}

fn try_image(tree: &Tree) -> Outcome {
    if !prerequisites::is_root() {
        return Err("--try makes images of its own, which takes root".into());
    }
    prerequisites::programs(&NEEDS)?;
    prerequisites::programs(&TRIAL_NEEDS)?;
    let work = tree.fresh_folder("container")?;
    let outcome = make_first_images(&work)
        .and_then(|()| vendor::sources(tree, &work.join("sources")))
        .and_then(|()| build(TRIED, &work.join("sources"), &[DEBIAN, RUST]))
        .and_then(|()| try_in_container());
    let images = [TRIED, DEBIAN.1, RUST.1];
    let removed = shell::output(buildah().args(["rmi", "--force"]).args(images));
    fs::remove_dir_all(&work).map_err(|e| format!("{}: {e}", work.display()))?;
    outcome.and(removed.map(drop))
}

/// The smallest Debian, and the same with the toolchain that builds this.
fn make_first_images(work: &Path) -> Outcome {
    let root = work.join("debian.tar");
    let mut mmdebstrap = Command::new("mmdebstrap");
    mmdebstrap.args(["--quiet", "--mode=root", "--variant=apt"]);
    // As the slim images have it.
    mmdebstrap.arg("--dpkgopt=path-exclude=/usr/share/doc/*");
    mmdebstrap.arg("--dpkgopt=path-exclude=/usr/share/man/*");
    mmdebstrap.arg(RELEASE);
    shell::run(mmdebstrap.arg(&root))?;
    in_container("scratch", |container| {
        shell::output(buildah().args(["add", "--quiet", container]).arg(&root))?;
        commit(container, DEBIAN.1)
    })?;
    let mut rustc = Command::new("rustc");
    let toolchain = shell::output(rustc.args(["--print", "sysroot"]))?;
    let toolchain = Path::new(toolchain.trim());
    in_container(DEBIAN.1, |container| {
        for folder in ["bin", "lib"] {
            let mut copy = buildah();
            copy.args(["copy", "--quiet", container])
                .arg(toolchain.join(folder));
            shell::output(copy.arg(format!("/usr/local/{folder}")))?;
        }
        commit(container, RUST.1)
    })
}

/// Builds the image from sources in `context`, beginning with other images than usual.
fn build(image: &str, context: &Path, first: &[(&str, &str)]) -> Outcome {
    let mut build = buildah();
    build.args(["build", "--network=host", "--tag", image, "--file"]);
    build.arg(context.join(CONTAINERFILE));
    for (argument, name) in first {
        build.arg(format!("--build-arg={argument}={name}"));
    }
    shell::run_within(build.arg(context), LIMIT)
}

fn try_in_container() -> Outcome {
    in_container(TRIED, |container| {
        let words = [
            "run",
            "--network=host",
            container,
            "--",
            "sh",
            "-euc",
            SCRIPT,
        ];
        shell::run_within(buildah().args(words), LIMIT)
    })
}

/// Does something in a container that begins as `image`, and removes it.
fn in_container(image: &str, act: impl FnOnce(&str) -> Outcome) -> Outcome {
    let made = shell::output(buildah().args(["from", "--pull-never", image]))?;
    let outcome = act(made.trim());
    let removed = shell::output(buildah().args(["rm", made.trim()]));
    outcome.and(removed.map(drop))
}

fn commit(container: &str, image: &str) -> Outcome {
    shell::output(buildah().args(["commit", "--quiet", container, image])).map(drop)
}

/// With what works in a container and on kernels without overlays, too.
fn buildah() -> Command {
    let mut buildah = Command::new("buildah");
    buildah.args(["--storage-driver", "vfs"]);
    buildah.env("BUILDAH_ISOLATION", "chroot");
    buildah
}
