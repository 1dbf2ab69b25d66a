//! Names of processes: Portals 3.3 counts pids from 0, networks number processes as ports.

use lintel_types::ProcessId;
use lintel_types::portals3::PID_ANY;

/// Pids below this one are those that programs agree upon, such as ranks.
const WELL_KNOWN: u32 = 1024;
/// The first port of those pids, below what systems give out by themselves.
const FIRST_PORT: u32 = 20_000;

/// The number on the network of a pid, if a process can have it: a pid from 1024 on is
/// itself, save those that stand for the pids below.
#[inline(always)]
pub(crate) fn to_network(pid: u32) -> Option<u32> {
    match pid {
        PID_ANY => Some(ProcessId::PID_ANY),
        0..WELL_KNOWN => Some(FIRST_PORT + pid),
        _ if is_well_known(pid) || pid >= ProcessId::PID_ANY => None,
        _ => Some(pid),
    }
}

/// The process of that name on the network.
#[inline(always)]
pub(crate) fn from_network(process: ProcessId) -> ProcessId {
    let pid = match is_well_known(process.pid) {
        true => process.pid - FIRST_PORT,
        false => process.pid,
    };
    ProcessId::new(process.nid, pid)
}

#[inline(always)]
fn is_well_known(port: u32) -> bool {
    (FIRST_PORT..FIRST_PORT + WELL_KNOWN).contains(&port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pid_comes_back_from_the_network_as_it_went() {
        for pid in (0..=u32::from(u16::MAX)).chain([1 << 20, u32::MAX - 1]) {
            let Some(port) = to_network(pid) else {
                assert!(is_well_known(pid) || pid >= ProcessId::PID_ANY, "{pid}");
                continue;
            };
            assert!(port > 0 && port < ProcessId::PID_ANY);
            assert_eq!(from_network(ProcessId::new(7, port)).pid, pid);
        }
    }
}
