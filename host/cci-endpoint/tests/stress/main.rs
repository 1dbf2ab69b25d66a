//! Many messages, many connections, a bad network, and processes that are killed.

mod idle;
mod killed;
mod killed_server;
mod load;
mod rig;
mod shares;
