//! Information, measurement and plots of Portals on this machine.
fn main() {}
