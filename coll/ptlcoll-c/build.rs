//! Names the shared library, keeps it loaded, and has it load libportals.so.4, which
//! may not be there yet: an empty library stands in for it while this one is linked.
use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libptlcoll.so.1");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    let folder = env::var("OUT_DIR").expect("cargo says where to build");
    let stand_in = Path::new(&folder).join("libportals.so");
    let linked = Command::new("cc")
        .args(["-shared", "-nostdlib", "-x", "c", "/dev/null"])
        .args(["-Wl,-soname,libportals.so.4", "-o"])
        .arg(&stand_in)
        .status();
    match linked {
        Ok(status) if status.success() => {}
        other => panic!("cc must be able to link a shared library: {other:?}"),
    }
    println!("cargo::rustc-cdylib-link-arg=-Wl,--no-as-needed");
    println!("cargo::rustc-cdylib-link-arg={}", stand_in.display());
}
