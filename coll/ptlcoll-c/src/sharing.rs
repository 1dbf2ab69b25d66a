//! Memory that the ranks of a group on one node map, so that blocking operations need no
//! messages on the node: each rank makes some, all exchange its names by the group's own operations, and
//! memory is used if every rank has mapped that of every other on its node.

use crate::library::{self, Library};
use lintel_claim::{Claim, Key, Lease, RemoteMemory};
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
    /// How others copy from the rank's other memory: its number to the system, and its lease's key.
    remote: RemoteMemory,
}

const OFFER_BYTES: usize = 40;
/// What a rank has found possible.
const CAN_MAP: u8 = 1;
const CAN_PULL: u8 = 2;
/// Of a rank without memory for others.
const NOTHING: Offer = Offer {
    id: -1,
    nid: 0,
    nonce: 0,
    remote: RemoteMemory {
        process: 0,
        key: Key {
            address: 0,
            nonce: 0,
        },
    },
};

/// This rank's memory, freed when it is dropped.
struct OwnMemory(u64);

/// What a rank offers.
struct Own {
    memory: OwnMemory,
    lease: Lease,
    offer: Offer,
}

/// What the ranks on this rank's node offer.
struct Near {
    /// By rank.
    offers: Vec<Offer>,
    /// Which one is this rank's.
    own: usize,
}

/// Collective. `ni` is the interface if this rank wants to share, and none if not; `eager` as
/// `Spec::eager_from_env` gives it.
pub(crate) fn share(
    group: &mut Group<Library>,
    ni: Option<Handle>,
    eager: Option<u64>,
) -> Result<()> {
    let own = ni.and_then(make);
    let offer = own.as_ref().map_or(NOTHING, |own| own.offer);
    let offers = exchange(group, offer)?;
    let near = near(&offers, group.rank() as usize);
    let mapped = own.and_then(|own| Some((map_all(own.memory, &near)?, own.lease)));
    let remote: Vec<RemoteMemory> = near.offers.iter().map(|offer| offer.remote).collect();
    let here = match &mapped {
        None => 0,
        Some(_) if can_pull(&remote) => CAN_MAP | CAN_PULL,
        Some(_) => CAN_MAP,
    };
    let everywhere = possible_everywhere(group, here)?;
    let memory = match mapped {
        Some((memory, _)) if everywhere == CAN_MAP => memory,
        Some((memory, lease)) if everywhere == CAN_MAP | CAN_PULL => {
            let memory = memory.with_remote(lease, remote);
            match eager {
                Some(bytes) => memory.with_eager(bytes),
                None => memory,
            }
        }
        _ => return Ok(()),
    };
    let nodes: Vec<u32> = offers.iter().map(|offer| offer.nid).collect();
    match nodes.iter().all(|nid| *nid == nodes[0]) {
        true => group.share(memory),
        false => group.share_on_nodes(memory, &nodes),
    }
}

/// The offers of the ranks on that rank's node.
fn near(offers: &[Offer], rank: usize) -> Near {
    let is_near = |offer: &&Offer| offer.nid == offers[rank].nid;
    Near {
        own: offers[..rank].iter().filter(is_near).count(),
        offers: offers.iter().filter(is_near).copied().collect(),
    }
}

/// Whether the system lets this rank copy from all.
fn can_pull(remote: &[RemoteMemory]) -> bool {
    remote.iter().all(|process| process.probe().is_ok())
}

/// No memory is no error: messages do.
fn make(ni: Handle) -> Option<Own> {
    let nid = library::node(ni).ok()?;
    let start = shareable().allocate(SharedMemory::BYTES).ok()?;
    let memory = OwnMemory(start.expose_provenance() as u64);
    let place = shareable().find(memory.0, SharedMemory::BYTES)?;
    let lease = Lease::new();
    let remote = RemoteMemory {
        process: i32::try_from(std::process::id()).ok()?,
        // Without a key nobody can copy from here, and all find that when they try.
        key: lease.key().unwrap_or_default(),
    };
    let offer = Offer {
        id: place.id,
        nid,
        nonce: place.nonce,
        remote,
    };
    Some(Own {
        memory,
        lease,
        offer,
    })
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

/// The memory of all ranks on this node, if each can be mapped.
fn map_all(own: OwnMemory, near: &Near) -> Option<SharedMemory> {
    if near.offers.len() > MAX_SHARING_RANKS {
        return None;
    }
    let length = shareable().length(own.0)?;
    let mut memories = Vec::new();
    let mut peers = Vec::new();
    for (of, offer) in near.offers.iter().enumerate() {
        if offer.id < 0 {
            return None;
        }
        let start = if of == near.own {
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

/// What all ranks have found possible.
fn possible_everywhere(group: &mut Group<Library>, here: u8) -> Result<u8> {
    let combine = Combine {
        operation: Operation::Band,
        datatype: Datatype::Uint8,
    };
    let mut everywhere = [0];
    let mut buffers = Separate {
        input: &[here],
        output: &mut everywhere,
    };
    let call = Call::Allreduce(Reduction { combine, count: 1 });
    group.run(call, None, &mut buffers)?;
    Ok(everywhere[0])
}

impl Offer {
    fn to_bytes(self) -> [u8; OFFER_BYTES] {
        let RemoteMemory { process, key } = self.remote;
        let words = [
            u64::from(self.id as u32) << 32 | u64::from(self.nid),
            self.nonce,
            u64::from(process as u32),
            key.address,
            key.nonce,
        ];
        let mut bytes = [0; OFFER_BYTES];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Offer> {
        let word = |index: usize| {
            let place = bytes.get(8 * index..8 * index + 8)?;
            Some(u64::from_ne_bytes(place.try_into().ok()?))
        };
        Some(Offer {
            id: (word(0)? >> 32) as i32,
            nid: word(0)? as u32,
            nonce: word(1)?,
            remote: RemoteMemory {
                process: word(2)? as i32,
                key: Key {
                    address: word(3)?,
                    nonce: word(4)?,
                },
            },
        })
    }
}

impl Drop for OwnMemory {
    fn drop(&mut self) {
        shareable().free(self.0);
    }
}
