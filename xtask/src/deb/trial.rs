//! Tries the packages in a fresh Debian: installs them with apt, compiles and runs a program,
//! and removes them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::prerequisites;
use crate::report::Outcome;
use crate::shell::{self, Tree};

const NEEDS: [(&str, &str, &str); 2] = [
    ("mmdebstrap", "a fresh Debian", "mmdebstrap"),
    ("unshare", "namespaces", "util-linux"),
];
/// Enough for apt on a slow machine.
const LIMIT: Duration = Duration::from_secs(300);

/// What a user does. It runs in the fresh system, whose `/debs` holds the packages.
const SCRIPT: &str = r#"
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
apt-get -qq -y --no-install-recommends install /debs/*.deb
cd "$(mktemp -d)"
cp /usr/share/doc/lintel/examples/*.[ch] .
flags=$(pkg-config --cflags --libs portals4_job)
case "$flags" in *rpath*) echo "a run path: $flags"; exit 1;; esac
cc ring.c -o ring $flags
yod -n 3 ./ring
static=$(pkg-config --static --cflags --libs portals4 | sed 's/-lportals\>/-l:libportals.a/')
cc ring.c -o ring-static $static -lportals_job
yod -n 2 ./ring-static
for package in portals3 cnos ptlcoll cci; do
    pkg-config --cflags --libs $package
done
lintel info > /dev/null
yod -n 2 --mode generic ./ring
zcat /usr/share/man/man3/PtlPut.3.gz > /dev/null
dpkg --verify libportals4 libportals4-dev lintel-tools
ls /usr/lib/systemd/user/lintel-agent.service
apt-get -qq -y purge libportals4 libportals4-dev lintel-tools lintel-doc
left=$(find /usr /etc /var/lib/dpkg/info -name '*portals*' -o -name '*lintel*')
test -z "$left" || { echo "left behind: $left"; exit 1; }
"#;

pub fn run(tree: &Tree, packages: &[PathBuf]) -> Outcome {
    if !prerequisites::is_root() {
        return Err("--try makes a system of its own, which takes root".into());
    }
    prerequisites::programs(&NEEDS)?;
    let root = tree.fresh_folder("deb/try")?;
    let outcome = make_system(&root).and_then(|()| try_in(&root, packages));
    // After a failure the system is left, to look for the fault in it.
    if outcome.is_ok() {
        fs::remove_dir_all(&root).map_err(|e| format!("{}: {e}", root.display()))?;
    }
    outcome
}

/// The smallest Debian that compiles.
fn make_system(root: &Path) -> Outcome {
    let release = shell::read(Path::new("/etc/os-release"))?;
    let name = release
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let mut mmdebstrap = Command::new("mmdebstrap");
    mmdebstrap
        .args(["--quiet", "--mode=root", "--variant=apt"])
        .arg("--include=gcc,libc6-dev,pkg-config")
        .arg(name.unwrap_or("stable"))
        .arg(root);
    shell::run_within(&mut mmdebstrap, LIMIT)
}

fn try_in(root: &Path, packages: &[PathBuf]) -> Outcome {
    for package in packages {
        let name = package.file_name().unwrap_or_default();
        crate::dist::install(package, &root.join("debs").join(name), 0o644)?;
    }
    crate::dist::write(&root.join("try.sh"), SCRIPT)?;
    let enter = "\
        mount -t proc proc \"$0/proc\"
        mount --rbind /dev \"$0/dev\"
        mount -t tmpfs tmpfs \"$0/dev/shm\"
        exec chroot \"$0\" sh -eu /try.sh";
    let mut unshare = Command::new("unshare");
    unshare
        .args(["--mount", "--pid", "--ipc", "--fork", "--kill-child"])
        .args(["sh", "-euc", enter])
        .arg(root);
    shell::run_within(&mut unshare, LIMIT)
}
