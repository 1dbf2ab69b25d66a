//! Memory that the ranks of a group on one node map, so that blocking operations need no
//! messages: each rank makes some, all exchange its names by the group's own operations, and
//! memory is used if every rank has mapped that of every other.

use crate::library::{self, Library};
use lintel_claim::Claim;
use lintel_group::{
    Call, Combine, Datatype, Group, MAX_SHARING_RANKS, Operation, Reduction, Result, Separate,
    SharedMemory,
};
use lintel_presence::{PeerMemory, shareable};
use lintel_types::Handle;
use std::ptr;

/// What a rank says of its memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Offer {
    /// The system's number; negative if there is none.
    id: i32,
    /// The rank's node.
    nid: u32,
    /// The number behind the bytes.
    nonce: u64,
}

const OFFER_BYTES: usize = 16;
/// Of a rank without memory for others.
const NOTHING: Offer = Offer {
    id: -1,
    nid: 0,
    nonce: 0,
};

/// This rank's memory, freed when it is dropped.
struct OwnMemory(u64);

/// Collective. `ni` is the interface if this rank wants to share, and none if not.
pub(crate) fn share(group: &mut Group<Library>, ni: Option<Handle>) -> Result<()> {
    if group.ranks() as usize > MAX_SHARING_RANKS {
        return Ok(());
    }
    let own = ni.and_then(make);
    let offer = own.as_ref().map_or(NOTHING, |(_, offer)| *offer);
    let offers = exchange(group, offer)?;
    let mapped = own.and_then(|(memory, _)| map_all(memory, group.rank() as usize, &offers));
    let all_have = is_true_everywhere(group, mapped.is_some())?;
    match mapped {
        Some(memory) if all_have => group.share(memory),
        _ => Ok(()),
    }
}

/// No memory is no error: messages do.
fn make(ni: Handle) -> Option<(OwnMemory, Offer)> {
    let nid = library::node(ni).ok()?;
    let start = shareable().allocate(SharedMemory::BYTES).ok()?;
    let memory = OwnMemory(start.expose_provenance() as u64);
    let place = shareable().find(memory.0, SharedMemory::BYTES)?;
    let (id, nonce) = (place.id, place.nonce);
    Some((memory, Offer { id, nid, nonce }))
}

/// The offers of all ranks, by rank.
fn exchange(group: &mut Group<Library>, own: Offer) -> Result<Vec<Offer>> {
    let mut all = vec![0; OFFER_BYTES * group.ranks() as usize];
    let bytes = OFFER_BYTES as u64;
    let mut buffers = Separate {
        input: &own.to_bytes(),
        output: &mut all,
    };
    group.run(Call::Gather { root: 0, bytes }, None, &mut buffers)?;
    let bytes = all.len() as u64;
    let (given, mut got) = (all.clone(), &mut all);
    let mut nothing = Vec::new();
    if group.rank() == 0 {
        got = &mut nothing;
    }
    let mut buffers = Separate {
        input: &given,
        output: got,
    };
    group.run(Call::Broadcast { root: 0, bytes }, None, &mut buffers)?;
    let offers = all.chunks_exact(OFFER_BYTES);
    Ok(offers.filter_map(Offer::from_bytes).collect())
}

/// The memory of all ranks, if each is on this node and can be mapped.
fn map_all(own: OwnMemory, rank: usize, offers: &[Offer]) -> Option<SharedMemory> {
    let length = shareable().length(own.0)?;
    let is_near = |offer: &Offer| offer.id >= 0 && offer.nid == offers[rank].nid;
    let mut memories = Vec::new();
    let mut peers = Vec::new();
    for (of, offer) in offers.iter().enumerate() {
        if !is_near(offer) {
            return None;
        }
        let start = if of == rank {
            ptr::with_exposed_provenance_mut(own.0 as usize)
        } else {
            let peer = PeerMemory::attach(offer.id, offer.nonce, length).ok()?;
            let start = peer.start();
            peers.push(peer);
            start
        };
        // SAFETY: so many bytes stay mapped as long as `own` and `peers`, which go with the
        // claims into the SharedMemory below; no reference to them is made.
        memories.push(unsafe { Claim::new(start, SharedMemory::BYTES) });
    }
    Some(SharedMemory::new(memories, Box::new((own, peers))))
}

fn is_true_everywhere(group: &mut Group<Library>, here: bool) -> Result<bool> {
    let combine = Combine {
        operation: Operation::Land,
        datatype: Datatype::Uint8,
    };
    let mut everywhere = [0];
    let mut buffers = Separate {
        input: &[u8::from(here)],
        output: &mut everywhere,
    };
    let call = Call::Allreduce(Reduction { combine, count: 1 });
    group.run(call, None, &mut buffers)?;
    Ok(everywhere == [1])
}

impl Offer {
    fn to_bytes(self) -> [u8; OFFER_BYTES] {
        let mut bytes = [0; OFFER_BYTES];
        bytes[..4].copy_from_slice(&self.id.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.nid.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.nonce.to_ne_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Offer> {
        Some(Offer {
            id: i32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?),
            nid: u32::from_ne_bytes(bytes.get(4..8)?.try_into().ok()?),
            nonce: u64::from_ne_bytes(bytes.get(8..16)?.try_into().ok()?),
        })
    }
}

impl Drop for OwnMemory {
    fn drop(&mut self) {
        shareable().free(self.0);
    }
}
