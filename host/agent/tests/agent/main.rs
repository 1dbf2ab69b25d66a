//! An agent with its clients, by themselves and beside processes that need none.

#![forbid(unsafe_code)]

mod client;
mod commands;
mod ends;
mod missed;
mod rig;
mod starts;
mod traffic;
