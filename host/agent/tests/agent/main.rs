//! An agent with its clients, by themselves and beside processes that need none.

#![forbid(unsafe_code)]

mod commands;
mod ends;
mod guest;
mod missed;
mod rig;
mod starts;
mod traffic;
