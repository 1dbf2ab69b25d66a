//! What programs for Portals 3.3 find in their environment: rank, job, and the name of each
//! rank (`PtlSetRank`).

use std::ffi::OsString;
use std::net::Ipv4Addr;

use crate::layout::RankSlot;
use crate::plan::Plan;

/// The pids of jobs: above those that programs agree upon, below the ports that systems give
/// out.
const FIRST_PID: u64 = 22_000;
const PIDS: u64 = 10_000;
/// Jobs of a node begin so far from each other, or at the same pid.
const STEP: u64 = 64;

/// The variables of a rank; none if the ranks find their nodes' addresses by themselves.
pub(crate) fn variables(plan: &Plan, slot: &RankSlot) -> Vec<(&'static str, OsString)> {
    let Some(nids) = nids(plan) else {
        return Vec::new();
    };
    // The name is random, and as good as one for this.
    let number = u64::from_str_radix(&plan.id, 16).unwrap_or(0);
    let first = FIRST_PID + number % (PIDS / STEP) * STEP;
    let slots = &plan.layout.slots;
    let join = |each: &mut dyn Iterator<Item = String>| each.collect::<Vec<_>>().join(":");
    let nids = join(&mut slots.iter().map(|slot| nids[slot.node].to_string()));
    let pids = join(
        &mut slots
            .iter()
            .map(|s| (first + s.local_rank as u64).to_string()),
    );
    vec![
        ("PTL_MY_RID", slot.rank.to_string().into()),
        ("PTL_NIDMAP", nids.into()),
        ("PTL_PIDMAP", pids.into()),
        ("PTL_MY_JID", (number & JOB_MASK | 1).to_string().into()),
    ]
}

/// Job numbers are neither 0, which is none, nor PTL_JID_ANY.
const JOB_MASK: u64 = 0x7fff_ffff;

/// The address of each node, if it is known here.
fn nids(plan: &Plan) -> Option<Vec<Ipv4Addr>> {
    plan.agent_addresses(crate::plan::Scope::AllNodes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Job;
    use crate::layout::{Map, Nodes};

    fn plan(nodes: Nodes, env: &[(&str, &str)]) -> Plan {
        let mut job = Job::new(3, "true");
        job.nodes = nodes;
        job.map = Map::Cyclic;
        job.env = env.iter().map(|(n, v)| (n.into(), v.into())).collect();
        Plan::new(&job).expect("a sound job")
    }

    fn text(plan: &Plan, rank: usize) -> Vec<String> {
        let all = variables(plan, &plan.layout.slots[rank]);
        all.into_iter()
            .map(|(_, value)| value.to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn each_rank_finds_the_names_of_all() {
        let first = Ipv4Addr::LOCALHOST;
        let plan = plan(Nodes::Virtual { count: 2, first }, &[]);
        let (zero, two) = (text(&plan, 0), text(&plan, 2));
        assert_eq!((&*zero[0], &*two[0]), ("0", "2"));
        assert_eq!(zero[1..], two[1..]);
        assert_eq!(zero[1], "127.0.0.1:127.0.0.2:127.0.0.1");
        let pids: Vec<u64> = zero[2].split(':').map(|pid| pid.parse().unwrap()).collect();
        assert_eq!([pids[1], pids[2]], [pids[0], pids[0] + 1]);
        assert!(pids[0] >= FIRST_PID && pids[2] < FIRST_PID + PIDS + STEP);
        assert_ne!(zero[3].parse::<u32>().unwrap(), 0);
    }

    #[test]
    fn ranks_that_find_their_address_by_themselves_get_no_names() {
        let named = plan(Nodes::Local, &[("PTL_IFACE", "eth0")]);
        assert!(text(&named, 0).is_empty());
        let local = plan(Nodes::Local, &[("PTL_IFACE", "10.0.0.7")]);
        assert_eq!(text(&local, 0)[1], "10.0.0.7:10.0.0.7:10.0.0.7");
    }
}
