//! Two endpoints talk while a third process sends them any words, or while one of the two
//! does: nothing panics and no limit is exceeded, and what a third process sends changes
//! nothing between the two.

use lintel_cci::{
    Access, Action, Attribute, Completion, ConnectionId, Direction, Endpoint, Event, Host, Message,
    NoWay, Notify, Outgoing, Region, Request, RmaRequest, Status, Time,
};
use lintel_types::ProcessId;
use lintel_wire::Words;
use std::collections::VecDeque;

const RECV_BUFFERS: u32 = 3;
const SEND_BUFFERS: u32 = 40;
const STRANGER: ProcessId = ProcessId::new(1, 9);

#[derive(Default)]
struct Wires {
    now: Time,
    out: VecDeque<(ProcessId, Words, u64, Vec<u8>)>,
    events: VecDeque<Event>,
}

impl Host for Wires {
    type Fresh<'a> = &'a [u8];
    type Body = Vec<u8>;

    fn hold(&self, message: &[u8]) -> Vec<u8> {
        message.to_vec()
    }

    fn now(&self) -> Time {
        self.now
    }

    fn send(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Outgoing<'_, &[u8], Vec<u8>>,
    ) -> Result<(), NoWay> {
        let (length, bytes) = match body {
            Outgoing::Fresh(bytes) => (bytes.len() as u64, bytes.to_vec()),
            Outgoing::Held(bytes) => (bytes.len() as u64, bytes.clone()),
            Outgoing::LentToRead(region) => (region.length, Vec::new()),
            Outgoing::Nothing | Outgoing::LentToFill(_) => (0, Vec::new()),
        };
        self.out.push_back((to, *words, length, bytes));
        Ok(())
    }

    fn multicast(&mut self, _: ProcessId, _: &[u8]) -> Result<(), NoWay> {
        Err(NoWay)
    }

    fn is_congested(&self, _: ProcessId) -> bool {
        false
    }

    fn post(&mut self, event: Event) {
        self.events.push_back(event);
    }
}

struct End {
    core: Endpoint<Wires>,
    wires: Wires,
    connection: Option<ConnectionId>,
    /// What has arrived on that connection, and how many of the operations have ended how.
    received: Vec<u32>,
    ended: Vec<(u64, Status)>,
    held: u32,
}

fn name(end: usize) -> ProcessId {
    ProcessId::new(1, end as u32 + 1)
}

struct World {
    ends: [End; 2],
    sent: u32,
    /// Both ends keep to the rules.
    is_honest: bool,
}

impl World {
    fn new(is_honest: bool) -> World {
        let end = || {
            let mut core = Endpoint::new(64, 7);
            core.set_recv_buffers(RECV_BUFFERS).expect("more than 0");
            core.set_send_buffers(SEND_BUFFERS).expect("more than 0");
            let access = Access {
                read: true,
                write: true,
            };
            assert!(core.register(1, 16, access));
            End {
                core,
                wires: Wires::default(),
                connection: None,
                received: Vec::new(),
                ended: Vec::new(),
                held: 0,
            }
        };
        World {
            ends: [end(), end()],
            sent: 0,
            is_honest,
        }
    }

    fn connect(&mut self) {
        let request = Request {
            to: name(1),
            attribute: Attribute::Ro,
            context: 0,
            timeout: None,
        };
        let End { core, wires, .. } = &mut self.ends[0];
        core.connect(request, &[], wires).expect("there is room");
        self.run();
        assert!(self.ends.iter().all(|end| end.connection.is_some()));
    }

    fn run(&mut self) {
        while self.step(0) || self.step(1) {}
    }

    /// Delivers a frame that this end has sent.
    fn step(&mut self, from: usize) -> bool {
        let Some((to, words, length, bytes)) = self.ends[from].wires.out.pop_front() else {
            return false;
        };
        if to != STRANGER {
            self.deliver(to.pid as usize - 1, name(from), &words, length, &bytes);
        }
        true
    }

    fn deliver(&mut self, to: usize, from: ProcessId, words: &Words, length: u64, bytes: &[u8]) {
        let End {
            core,
            wires,
            received,
            held,
            connection,
            ..
        } = &mut self.ends[to];
        match core.on_message(from, words, length, wires) {
            Action::Nothing => {}
            Action::Deliver(id) => {
                *held += 1;
                assert!(*held <= RECV_BUFFERS, "more than there are buffers");
                if Some(id) == *connection && bytes.len() == 4 {
                    received.push(u32::from_le_bytes(bytes.try_into().expect("four bytes")));
                }
            }
            Action::Request { connection: id, .. } => {
                if from != STRANGER || words[3] % 2 == 0 {
                    core.accept(id, 0, wires).expect("it wasn't answered");
                }
            }
            Action::Write(transfer) => {
                assert!(transfer.region.offset + transfer.region.length <= 16);
                core.on_written(transfer, Status::Success, wires);
            }
            Action::Read(transfer) => {
                assert!(transfer.region.offset + transfer.region.length <= 16);
                core.on_read(transfer, Status::Success, false, wires);
            }
            Action::Fetched(transfer) => core.on_fetched(transfer, Status::Success, wires),
        }
        core.finish(wires);
        self.take_events(to);
    }

    fn take_events(&mut self, at: usize) {
        let end = &mut self.ends[at];
        while let Some(event) = end.wires.events.pop_front() {
            match event {
                Event::Connected { result, .. } | Event::Accepted { result, .. } => {
                    let is_first = end.connection.is_none();
                    if let (Ok((id, _)), true) = (result, is_first) {
                        end.connection = Some(id);
                    }
                }
                Event::Sent {
                    context, status, ..
                } => end.ended.push((context, status)),
                _ => {}
            }
        }
    }

    fn send(&mut self, is_access: bool) {
        let (
            number,
            End {
                core,
                wires,
                connection,
                ..
            },
        ) = (self.sent, &mut self.ends[0]);
        let id = connection.expect("it is connected");
        let completion = Completion {
            context: number.into(),
            notify: Notify::Event,
        };
        let body = &number.to_le_bytes()[..];
        let started = if is_access {
            let request = RmaRequest {
                direction: match number % 2 {
                    0 => Direction::Read,
                    _ => Direction::Write,
                },
                local: Region {
                    key: 1,
                    offset: 0,
                    length: 8,
                },
                remote_key: 1,
                remote_offset: (number % 16).into(),
                fence: number % 3 == 0,
            };
            core.rma(id, request, None, completion, wires)
        } else {
            core.send(id, Message { length: 4, body }, completion, wires)
        };
        match started {
            Ok(()) => self.sent += 1,
            Err(Status::NoBuffers) => {}
            Err(status) => assert!(!self.is_honest, "refused with {status:?}"),
        }
        self.take_events(0);
        assert!(self.ends[0].core.resources().pending <= SEND_BUFFERS);
    }

    fn give_back(&mut self, at: usize) {
        let End {
            core, wires, held, ..
        } = &mut self.ends[at];
        if *held > 0 {
            *held -= 1;
            core.on_returned(wires);
        }
    }

    /// Words whose fields are often near those of real frames.
    fn strange(&mut self, op: [u8; 8]) {
        let [_, kind, to, slot, number, value, length, extra] = op.map(u64::from);
        let words = [
            ((kind % 18) | ((extra % 5) << 8)) << 32,
            (slot % 4) | ((7 + number % 4) << 32),
            if value < 128 { value % 8 } else { value << 24 },
            if value % 3 == 0 { 1 } else { value },
            value % 20,
            length % 20,
        ];
        let from = match self.is_honest {
            true => STRANGER,
            false => name(1 - to as usize % 2),
        };
        self.deliver(to as usize % 2, from, &words, length % 80, &[]);
    }

    fn pass(&mut self, time: u64) {
        for at in 0..2 {
            let End { core, wires, .. } = &mut self.ends[at];
            wires.now = wires.now.after(Time(time));
            core.on_time(wires);
            self.take_events(at);
        }
    }

    fn check(&mut self) {
        for _ in 0..self.sent + 1 {
            self.run();
            self.give_back(1);
        }
        let End { received, .. } = &self.ends[1];
        assert!(received.is_sorted_by(|a, b| a < b), "each once, in order");
        let ended = &self.ends[0].ended;
        let contexts: Vec<u64> = ended.iter().map(|(context, _)| *context).collect();
        let all: Vec<u64> = (0..self.sent.into()).collect();
        assert_eq!(contexts, all, "each operation ends once, in order");
        let failed = |status: &Status| !matches!(status, Status::Success | Status::RmaHandle);
        assert!(!ended.iter().any(|(_, status)| failed(status)));
    }
}

pub fn body(data: &[u8]) {
    let mut world = World::new(data.first().is_none_or(|byte| byte % 2 == 0));
    world.connect();
    for op in data.chunks_exact(8) {
        let op: [u8; 8] = op.try_into().expect("a chunk has eight bytes");
        match op[0] % 16 {
            0..=4 => world.send(false),
            5 => world.send(true),
            6 | 7 => world.give_back(1),
            8 => world.pass(u64::from(op[1]) * 100),
            9..=11 => {
                world.step(usize::from(op[1]) % 2);
            }
            12 => world.run(),
            _ => world.strange(op),
        }
    }
    if world.is_honest {
        world.check();
    }
}
