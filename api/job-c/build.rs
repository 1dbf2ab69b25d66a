//! Names the shared library, and keeps it loaded: the destructor of a thread-local value would
//! otherwise run code that is gone.
fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libportals_job.so.1");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
