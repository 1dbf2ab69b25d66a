//! What a request does at its target (chapter 4), in its plainest form.

use super::{Arrival, Md, Me, Model, blank, fits};
use crate::rig::UID;
use lintel_types::portals3::{Event, EventKind, MdOptions, PT_INDEX_ANY, UID_ANY};
use lintel_types::{Handle, NiFail, ProcessId};
use lintel_wire::portals3::{Request, Verb};

impl Model {
    pub fn arrive(&mut self, from: ProcessId, request: &Request) -> Option<Arrival> {
        let found = self.translate(from, request);
        self.drops += u64::from(found.is_none());
        let name = found?;
        let md = self.md_mut(name).expect("it was just found");
        let remote = md.has(MdOptions::MANAGE_REMOTE);
        let offset = if remote {
            request.remote_offset
        } else {
            md.used
        };
        let mlength = request.length.min(md.length() - offset);
        if !remote {
            md.used += mlength;
        }
        let pieces = md.pieces(offset, mlength);
        let refuses = md.has(MdOptions::ACK_DISABLE);
        let get = request.verb == Verb::Get;
        let about = Event {
            initiator: from,
            uid: UID,
            jid: request.jid,
            pt_index: request.portal.into(),
            match_bits: request.match_bits,
            rlength: request.length,
            mlength,
            offset,
            hdr_data: if get { 0 } else { request.hdr_data },
            ..blank()
        };
        let end = match request.verb {
            Verb::Put => EventKind::PutEnd,
            Verb::Get => EventKind::GetEnd,
            Verb::GetPut => EventKind::GetPutEnd,
        };
        let id = self.begin(name, end, about);
        Some(Arrival {
            id,
            pieces,
            mlength,
            offset,
            silent: request.verb == Verb::Put && (refuses || !request.ack),
        })
    }

    /// The descriptor that takes a request, if the access table and an entry let it.
    fn translate(&self, from: ProcessId, request: &Request) -> Option<Handle> {
        let list = self.lists.get(request.portal.position())?;
        let access = self.access.get(usize::from(request.access))?;
        let user = [UID_ANY, UID].contains(&access.uid);
        let job = [u32::MAX, request.jid].contains(&access.jid);
        let portal = [PT_INDEX_ANY, request.portal.into()].contains(&access.portal);
        if !(fits(access.process, from) && user && job && portal) {
            return None;
        }
        let exchange = request.verb == Verb::GetPut;
        if exchange && request.length > self.limits.max_getput_md as u64 {
            return None;
        }
        let takes = |me: &&Me| {
            let bits = (me.spec.match_bits ^ request.match_bits) & !me.spec.ignore_bits;
            let md = self.mds.iter().find(|md| md.me == Some(me.name));
            bits == 0 && fits(me.spec.source, from) && md.is_some_and(|md| takes(md, request))
        };
        let me = list.iter().find(takes)?;
        let md = self.mds.iter().find(|md| md.me == Some(me.name));
        md.map(|md| md.name)
    }

    pub fn landed(&mut self, id: u64, fail: NiFail) {
        self.end(id, fail);
    }
}

/// Whether a descriptor takes a request, whatever its entry says.
fn takes(md: &Md, request: &Request) -> bool {
    let allowed = match request.verb {
        Verb::Put => md.has(MdOptions::OP_PUT),
        Verb::Get => md.has(MdOptions::OP_GET),
        Verb::GetPut => md.has(MdOptions::OP_PUT) && md.has(MdOptions::OP_GET),
    };
    let remote = md.has(MdOptions::MANAGE_REMOTE);
    let offset = if remote {
        request.remote_offset
    } else {
        md.used
    };
    let end = u128::from(offset) + u128::from(request.length);
    let fits = end <= u128::from(md.length());
    let cut = md.has(MdOptions::TRUNCATE) && offset <= md.length();
    md.active() && allowed && (fits || cut)
}
