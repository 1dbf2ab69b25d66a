//! A node's interface: queues, and the Portals unit with counters and what waits on
//! them. Its parts work at the same time, each at its own pace.

use std::collections::VecDeque;

use lintel_sim_fabric::Fabric;
use lintel_sim_kernel::{EventQueue, SimTime};

use crate::machine::{Action, Inside, Kind, Machine, MachineEvent, Packet, after};
use crate::program::{Act, Command, Counter, Message};
use crate::timing::{self, CLOCK};
use crate::trace::Track;

/// The network interface of a node.
#[derive(Default, Debug)]
pub(crate) struct Interface {
    commands: VecDeque<Command>,
    reads: Reads,
    counters: Vec<Counting>,
    /// Released operations that are still to be carried out.
    released: VecDeque<Act>,
    edge_is_due: bool,
    /// The edge at which the last packet left.
    left_at: SimTime,
}

/// Messages whose bytes lie in the host's memory.
#[derive(Default, Debug)]
struct Reads {
    /// Those that wait for bytes or for a turn.
    messages: VecDeque<Message>,
    /// Of these, so many still have to be asked for.
    unasked: u32,
    /// And of so many the bytes are there.
    data: u32,
    /// The first one's header has left.
    is_under_way: bool,
}

#[derive(Default, Debug)]
struct Counting {
    value: u32,
    /// In the order of posting.
    waiting: Vec<(u32, Act)>,
}

impl Interface {
    pub(crate) fn begin(&mut self) {
        for counting in &mut self.counters {
            counting.value = 0;
            counting.waiting.clear();
        }
    }

    fn counting(&mut self, counter: Counter) -> &mut Counting {
        let counter = usize::from(counter);
        if self.counters.len() <= counter {
            self.counters.resize_with(counter + 1, Counting::default);
        }
        &mut self.counters[counter]
    }
}

impl<F: Fabric> Machine<F> {
    pub(crate) fn on_queued(
        &mut self,
        node: u32,
        command: Command,
        events: &mut EventQueue<MachineEvent>,
    ) {
        self.interfaces[node as usize].commands.push_back(command);
        self.want_edge(node, events);
    }

    pub(crate) fn on_data(&mut self, node: u32, events: &mut EventQueue<MachineEvent>) {
        self.interfaces[node as usize].reads.data += 1;
        self.want_edge(node, events);
    }

    fn want_edge(&mut self, node: u32, events: &mut EventQueue<MachineEvent>) {
        let interface = &mut self.interfaces[node as usize];
        if !interface.edge_is_due {
            interface.edge_is_due = true;
            let edge = timing::next_edge(events.now());
            events.at(edge, MachineEvent::Node(Inside(Action::Edge(node))));
        }
    }

    /// One command, or bytes from the host, by turns if both wait.
    pub(crate) fn on_edge(&mut self, node: u32, events: &mut EventQueue<MachineEvent>) {
        let interface = &mut self.interfaces[node as usize];
        interface.edge_is_due = false;
        let data_has_turn = events.now().as_ps() / CLOCK.as_ps() % 2 == 0;
        if interface.reads.data > 0 && (interface.commands.is_empty() || data_has_turn) {
            self.send_read(node, events);
        } else if let Some(command) = interface.commands.pop_front() {
            match command {
                Command::Send(message) => self.leave(node, message, whole(message), events),
                command => after(events, timing::COMMAND, Action::Ordered(node, command)),
            }
        }
        let interface = &self.interfaces[node as usize];
        if interface.reads.data > 0 || !interface.commands.is_empty() {
            self.want_edge(node, events);
        }
    }

    /// An atomic operation's bytes go into its header's packet, those of a put follow
    /// in the next.
    fn send_read(&mut self, node: u32, events: &mut EventQueue<MachineEvent>) {
        let reads = &mut self.interfaces[node as usize].reads;
        let &message = reads
            .messages
            .front()
            .expect("bytes were asked for by a message");
        let kind = match (message.atomic, reads.is_under_way) {
            (true, _) => Kind::Atomic,
            (false, false) => Kind::First,
            (false, true) => Kind::Rest,
        };
        reads.is_under_way = kind == Kind::First;
        if !reads.is_under_way {
            reads.messages.pop_front();
            reads.data -= 1;
        }
        self.leave(node, message, kind, events);
    }

    pub(crate) fn on_ordered(
        &mut self,
        node: u32,
        command: Command,
        events: &mut EventQueue<MachineEvent>,
    ) {
        let Command::Trigger(counter, count, act) = command else {
            return;
        };
        let counting = self.interfaces[node as usize].counting(counter);
        if counting.value >= count {
            self.release(node, act, events);
        } else {
            counting.waiting.push((count, act));
        }
    }

    pub(crate) fn on_arrived(&mut self, packet: Packet, events: &mut EventQueue<MachineEvent>) {
        let Packet {
            from,
            to,
            kind,
            counter,
        } = packet;
        let wait = match kind {
            Kind::First | Kind::Reply => return,
            Kind::Atomic => self.timing.count + timing::ATOMIC,
            Kind::Put | Kind::Rest => self.timing.count,
        };
        let reply = Message {
            to: from,
            counter: None,
            atomic: false,
        };
        self.leave(to, reply, Kind::Reply, events);
        match counter {
            Some(counter) => after(events, wait, Action::Count(to, counter)),
            None => {
                let way = self.timing.message + self.timing.link;
                after(events, way, Action::Heard(to, from));
            }
        }
    }

    pub(crate) fn on_count(
        &mut self,
        node: u32,
        counter: Counter,
        events: &mut EventQueue<MachineEvent>,
    ) {
        let counting = self.interfaces[node as usize].counting(counter);
        counting.value += 1;
        let value = counting.value;
        let mut reached = Vec::new();
        counting.waiting.retain(|&(count, act)| {
            if count <= value {
                reached.push(act);
            }
            count > value
        });
        let way = timing::NOTIFY + self.timing.link;
        after(events, way, Action::Notified(node, counter, value));
        for act in reached {
            self.release(node, act, events);
        }
    }

    fn release(&mut self, node: u32, act: Act, events: &mut EventQueue<MachineEvent>) {
        let released = &mut self.interfaces[node as usize].released;
        released.push_back(act);
        if released.len() == 1 {
            after(events, timing::RELEASE, Action::Release(node));
        }
    }

    pub(crate) fn on_release(&mut self, node: u32, events: &mut EventQueue<MachineEvent>) {
        let interface = &mut self.interfaces[node as usize];
        let act = interface.released.pop_front();
        let is_last = interface.released.is_empty();
        match act.expect("a release is due only for what was released") {
            Act::Send(message) => self.leave(node, message, whole(message), events),
            Act::Fetch(message) => self.fetch(node, message, events),
            Act::Count(counter) => {
                after(events, self.timing.count, Action::Count(node, counter));
            }
        }
        if !is_last {
            after(events, timing::RELEASE, Action::Release(node));
        }
    }

    fn fetch(&mut self, node: u32, message: Message, events: &mut EventQueue<MachineEvent>) {
        let reads = &mut self.interfaces[node as usize].reads;
        reads.messages.push_back(message);
        reads.unasked += 1;
        if reads.unasked == 1 {
            after(events, timing::READ, Action::Read(node));
        }
    }

    pub(crate) fn on_read(&mut self, node: u32, events: &mut EventQueue<MachineEvent>) {
        let reads = &mut self.interfaces[node as usize].reads;
        // One that was put in while the last was asked for came with its own turn.
        let Some(unasked) = reads.unasked.checked_sub(1) else {
            return;
        };
        reads.unasked = unasked;
        if unasked > 0 {
            after(events, timing::NEXT_READ, Action::Read(node));
        }
        after(events, timing::READ + self.timing.link, Action::Asked(node));
    }

    /// A packet goes to the router when it is through the interface, one an edge.
    fn leave(
        &mut self,
        node: u32,
        message: Message,
        kind: Kind,
        events: &mut EventQueue<MachineEvent>,
    ) {
        let ready = timing::later(events.now(), self.timing.message);
        let left_at = &mut self.interfaces[node as usize].left_at;
        *left_at = timing::edge_from(ready).max(*left_at + CLOCK);
        if let Some(trace) = &mut self.trace {
            let place = (node, Track::Interface);
            trace.report(place, kind.name(), events.now(), *left_at);
        }
        let leave = Action::Leave(Packet::new(node, message, kind));
        events.at(*left_at, MachineEvent::Node(Inside(leave)));
    }
}

/// What a message is whose bytes are at hand.
fn whole(message: Message) -> Kind {
    match message.atomic {
        true => Kind::Atomic,
        false => Kind::Put,
    }
}
