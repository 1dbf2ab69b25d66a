//! Names the shared library, and keeps it loaded: it is called when the process exits. Functions of
//! libportals3 stay undefined; the program links it too.
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libcnos.so.0");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
