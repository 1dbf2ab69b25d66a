//! `limits`: what the machine itself can do, without Portals.

use super::session::Session;
use crate::error::Result;
use crate::harness::{Workload, measure};
use crate::limits::copies::{CrossMemory, Memcpy, SharedCopy, SharedStream};
use crate::limits::kernel::{BusyWake, FutexWake, FutexWakeWithoutWaiter, SystemCall};
use crate::limits::lines::{FetchAdd, Handover, LockedXor, Slots};
use crate::limits::network::{Burst, TcpPingPong, UdpPingPong, UdpStream, Waiting};
use crate::limits::{ETHERNET, XOR_TABLE};
use crate::report::Row;
use crate::report::names::{CROSS_MEMORY_COPY, SHARED_STREAM};
use crate::stats::Times;

/// Measures all of them.
///
/// # Errors
/// What the system refused; cross-memory attach that is forbidden here is left out.
pub fn run(session: &mut Session) -> Result<()> {
    cache_lines(session)?;
    copies(session)?;
    kernel(session)?;
    network(session)
}

fn cache_lines(session: &mut Session) -> Result<()> {
    let one = Handover::one_line(&session.team)?;
    time(session, "one line there and back, half", 8, 2.0, one)?;
    let two = Handover::two_lines(&session.team)?;
    time(session, "two lines there and back, half", 8, 2.0, two)?;
    let slots = Slots::new(&session.team)?;
    rate(
        session,
        "64 B slots, one producer, one consumer",
        1.0,
        slots,
    )?;
    let add = FetchAdd::new(&session.team)?;
    time(session, "contended fetch-add, each core", 8, 1.0, add)?;
    let xor = LockedXor::new(&session.team, XOR_TABLE)?;
    rate(session, "locked xor on a shared table, both", 2.0, xor)
}

fn copies(session: &mut Session) -> Result<()> {
    for bytes in [4 << 10, 64 << 10, 1 << 20, 4 << 20] {
        let hot = Memcpy::hot(&session.team, bytes)?;
        time(session, "memcpy, hot", bytes as u64, 1.0, hot)?;
    }
    for bytes in [64, 256, 1 << 10, 4 << 10, 8 << 10, 16 << 10] {
        let copy = SharedCopy::new(&session.team, bytes, bytes)?;
        time(
            session,
            "copy through shared memory, half",
            bytes as u64,
            2.0,
            copy,
        )?;
        let stream = SharedStream::new(&session.team, bytes)?;
        time(session, SHARED_STREAM, bytes as u64, 1.0, stream)?;
    }
    let cold = Memcpy::cold(&session.team, 1 << 20)?;
    time(session, "memcpy, cold", 1 << 20, 1.0, cold)?;
    if !CrossMemory::is_allowed(&session.team)? {
        return session.note("cross-memory attach is forbidden here; its rows are left out");
    }
    for bytes in [
        8,
        1 << 10,
        4 << 10,
        16 << 10,
        64 << 10,
        256 << 10,
        1 << 20,
        4 << 20,
    ] {
        let copy = CrossMemory::new(&session.team, bytes)?;
        time(session, CROSS_MEMORY_COPY, bytes as u64, 1.0, copy)?;
    }
    Ok(())
}

fn kernel(session: &mut Session) -> Result<()> {
    let wake = FutexWake::new(&session.team)?;
    time(session, "futex hand-over to the other core", 0, 2.0, wake)?;
    time(
        session,
        "futex_wake, nobody waits",
        0,
        1.0,
        FutexWakeWithoutWaiter::default(),
    )?;
    time(session, "system call", 0, 1.0, SystemCall)?;
    busy_wake(session)
}

/// Timed trial by trial: falling asleep must not be on the watch.
fn busy_wake(session: &mut Session) -> Result<()> {
    session.announce("futex wake onto a busy core", 0);
    let samples =
        BusyWake::new(&session.team)?.repeat(&session.team, session.plan.deadline(WAKE_SHARE))?;
    if session.team.leads() && samples.is_empty() {
        return session.note("no thread fell asleep beside a busy one; that row is left out");
    }
    session.record(|| {
        let mut row = Row::new("limits", "futex wake onto a busy core", 0);
        row.times = Some(Times::of(&samples));
        row.iterations = samples.len() as u64;
        row
    });
    Ok(())
}

fn network(session: &mut Session) -> Result<()> {
    for (name, waiting) in [
        ("UDP loopback, spinning, half", Waiting::Spinning),
        ("UDP loopback, blocking, half", Waiting::Blocking),
    ] {
        let udp = UdpPingPong::new(&session.team, 8, waiting)?;
        time(session, name, 8, 2.0, udp)?;
    }
    let tcp = TcpPingPong::new(&session.team)?;
    time(session, "TCP loopback, spinning, half", 8, 2.0, tcp)?;
    for (name, burst) in [
        ("UDP stream, one call each", Burst::Datagram(ETHERNET)),
        (
            "UDP stream, GSO and GRO, a call",
            Burst::Segmented(ETHERNET),
        ),
        ("UDP stream, largest datagrams", Burst::Datagram(LARGE)),
    ] {
        udp_stream(session, name, burst)?;
    }
    Ok(())
}

fn udp_stream(session: &mut Session, name: &str, burst: Burst) -> Result<()> {
    let bytes = burst.bytes() as u64;
    session.announce(name, bytes);
    let mut stream = UdpStream::new(&session.team, burst)?;
    let outcomes = measure(&session.team, session.plan, &mut [&mut stream])?;
    session.record(|| {
        Row::new("limits", name, bytes)
            .timed(&outcomes[0], 1.0)
            .with_bandwidth(bytes)
            .with_rate(burst.datagrams() as f64)
    });
    Ok(())
}

/// Budgets of a workload for the trials of a wake, which are timed one by one.
const WAKE_SHARE: usize = 2;

/// Near the largest datagram of IPv4, in bytes.
const LARGE: usize = 60 << 10;

/// A limit whose repetition has `parts` equal parts.
fn time(
    session: &mut Session,
    name: &str,
    bytes: u64,
    parts: f64,
    mut workload: impl Workload,
) -> Result<()> {
    session.announce(name, bytes);
    let outcomes = measure(&session.team, session.plan, &mut [&mut workload])?;
    session.record(|| {
        let row = Row::new("limits", name, bytes).timed(&outcomes[0], parts);
        match bytes {
            0..64 => row,
            _ => row.with_bandwidth(bytes),
        }
    });
    Ok(())
}

/// A limit that is best read as a rate of `each` things a repetition.
fn rate(session: &mut Session, name: &str, each: f64, mut workload: impl Workload) -> Result<()> {
    session.announce(name, 8);
    let outcomes = measure(&session.team, session.plan, &mut [&mut workload])?;
    session.record(|| {
        Row::new("limits", name, 8)
            .timed(&outcomes[0], 1.0)
            .with_rate(each)
    });
    Ok(())
}
