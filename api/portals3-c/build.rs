//! Names the shared library, and keeps it loaded: threads that it has started
//! and thread-local destructors would otherwise run code that is gone.
fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libportals3.so.0");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
