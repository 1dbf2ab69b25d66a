//! What libportals3 knows of the job: the program has set it, or a launcher has put it into the
//! environment.

use portals3_sys::{Handle, ProcessId, PtlGetRank, PtlGetRankId};

/// The name of each rank.
pub(crate) fn names() -> Option<Vec<ProcessId>> {
    let (_, size) = place()?;
    (0..size).map(|rank| name(rank as u32)).collect()
}

/// Rank and size.
pub(crate) fn place() -> Option<(usize, usize)> {
    let (mut rank, mut size) = (0, 0);
    // SAFETY: both outputs are ours.
    let code = unsafe { PtlGetRank(Handle::INVALID, &raw mut rank, &raw mut size) };
    (code == 0).then_some((rank as usize, size as usize))
}

fn name(rank: u32) -> Option<ProcessId> {
    let mut id = ProcessId::new(0, 0);
    // SAFETY: the output is ours.
    let code = unsafe { PtlGetRankId(Handle::INVALID, rank, &raw mut id) };
    (code == 0).then_some(id)
}
