//! The threads of a process and one sender, as values: what each does next.

use lintel_progress::{
    BellOrder, HelperNext, Limits, Orders, Progress, SleepStep, Sleeper, WatcherLook, WatcherNext,
};

pub struct Configuration {
    pub callers: usize,
    /// Messages through shared memory.
    pub records: u8,
    /// Messages through the socket; without any there is no watcher.
    pub datagrams: u8,
    pub disarm_after: u32,
    /// Whether helpers hold the rings of their answers: the sender's comes late, and naps here
    /// are shorter.
    pub may_hold_ring: bool,
    /// Whether the barrier orders anything.
    pub has_barrier: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct State {
    machine: Progress<()>,
    armed: Option<Sleeper>,
    /// A thread between two steps under the lock.
    locked: bool,
    /// Records in the rings and datagrams in the socket, unseen.
    records: u8,
    datagrams: u8,
    /// The network has been silent for a while: only the watcher receives.
    idle: bool,
    /// Events that no caller has taken.
    events: u8,
    sender: Sender,
    helper: Helper,
    callers: Vec<Caller>,
    watcher: Option<Watcher>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Sender {
    records_left: u8,
    datagrams_left: u8,
    /// Committed, and not visible yet.
    buffered: u8,
    next: SenderNext,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum SenderNext {
    Commit,
    /// Read whether the bell is armed.
    Look,
    Ring,
    /// Give a caller that polls the time to see the record; ring if none has.
    Hold,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Helper {
    next: HelperAt,
    /// The bell has rung for it since it read the count of rings.
    rung: bool,
    /// It has caused activity while callers slept, and rings them.
    rings_callers: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum HelperAt {
    ReadRings,
    Poll,
    /// Under the lock.
    Decide,
    Interval,
    Sleep(SleepStep),
    /// The second look, after the barrier.
    LastLook,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Caller {
    next: CallerAt,
    rung: bool,
    /// There was activity since it looked for its event.
    active: bool,
    rings_callers: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum CallerAt {
    Compute,
    /// Take an event, or else wait.
    Take,
    Poll {
        waits: bool,
    },
    /// Under the lock.
    EndPoll {
        waits: bool,
        found: bool,
    },
    ReadRings,
    BeginSleep,
    Sleep(SleepStep),
    LastLook,
    EndSleep,
    /// Under the lock, after the barrier.
    HandOver,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Watcher {
    next: WatcherNext,
    unparked: bool,
    looks: bool,
    rings_callers: bool,
}

impl State {
    pub fn new(configuration: &Configuration) -> State {
        // How long an interval is makes no difference here.
        let mut machine = Progress::new(Limits {
            disarm_after: configuration.disarm_after,
            longest_interval: Limits::default().interval,
            ..Limits::default()
        });
        let has_watcher = configuration.datagrams > 0;
        if has_watcher {
            machine.add_watcher();
        }
        let caller = Caller {
            next: CallerAt::Compute,
            rung: false,
            active: false,
            rings_callers: false,
        };
        State {
            machine,
            armed: None,
            locked: false,
            records: 0,
            datagrams: 0,
            idle: false,
            events: 0,
            sender: Sender {
                records_left: configuration.records,
                datagrams_left: configuration.datagrams,
                buffered: 0,
                next: SenderNext::Commit,
            },
            helper: Helper {
                next: HelperAt::ReadRings,
                rung: false,
                rings_callers: false,
            },
            callers: vec![caller; configuration.callers],
            watcher: has_watcher.then_some(Watcher {
                next: WatcherNext::Park,
                unparked: false,
                looks: false,
                rings_callers: false,
            }),
        }
    }

    pub fn bell_has_one_owner(&self) -> bool {
        self.armed != Some(Sleeper::Helper) || !self.machine.callers_sleep()
    }

    pub fn all_is_seen(&self) -> bool {
        self.records == 0 && self.datagrams == 0 && self.sender.buffered == 0
    }

    pub fn nobody_waits_in_vain(&self) -> bool {
        let waits = |caller: &Caller| caller.next != CallerAt::Compute;
        self.events == 0 || !self.callers.iter().any(waits)
    }

    /// Each step that some thread can make: whether it has to, and what comes of it. A thread
    /// doesn't have to send, nor to call.
    pub fn steps(&self, configuration: &Configuration, mut on_step: impl FnMut(bool, State)) {
        self.sender_steps(configuration, &mut on_step);
        self.helper_steps(configuration, &mut on_step);
        for at in 0..self.callers.len() {
            self.caller_steps(at, configuration, &mut on_step);
        }
        if self.watcher.is_some() {
            self.watcher_steps(&mut on_step);
        }
    }

    fn sender_steps(&self, configuration: &Configuration, on_step: &mut impl FnMut(bool, State)) {
        let mut next = self.clone();
        if self.sender.buffered > 0 {
            next.make_visible();
            on_step(true, next.clone());
            next = self.clone();
        }
        if self.sender.datagrams_left > 0 {
            next.sender.datagrams_left -= 1;
            next.datagrams += 1;
            on_step(false, next.clone());
            next = self.clone();
        }
        match self.sender.next {
            SenderNext::Commit if self.sender.records_left == 0 => return,
            SenderNext::Commit => {
                next.sender.records_left -= 1;
                next.sender.buffered += 1;
                next.sender.next = SenderNext::Look;
                return on_step(false, next);
            }
            SenderNext::Look => {
                if configuration.may_hold_ring && self.armed == Some(Sleeper::Helper) {
                    next.sender.next = SenderNext::Hold;
                    on_step(true, next.clone());
                }
                next.sender.next = match self.armed {
                    Some(_) => SenderNext::Ring,
                    None => SenderNext::Commit,
                };
            }
            SenderNext::Hold => {
                next.make_visible();
                next.sender.next = match next.records > 0 && self.armed.is_some() {
                    true => SenderNext::Ring,
                    false => SenderNext::Commit,
                };
            }
            SenderNext::Ring => {
                // An atomic exchange, which orders what was committed before it.
                next.make_visible();
                next.sender.next = SenderNext::Commit;
                if let Some(sleeper) = next.armed.take() {
                    next.ring(sleeper);
                }
            }
        }
        on_step(true, next);
    }

    fn helper_steps(&self, configuration: &Configuration, on_step: &mut impl FnMut(bool, State)) {
        let mut next = self.clone();
        if self.helper.rings_callers {
            next.helper.rings_callers = false;
            next.ring(Sleeper::Caller);
            return on_step(true, next);
        }
        match self.helper.next {
            HelperAt::ReadRings => {
                next.helper.rung = false;
                next.helper.next = HelperAt::Poll;
            }
            HelperAt::Poll if self.locked => return,
            HelperAt::Poll => {
                next.locked = true;
                next.helper.next = HelperAt::Decide;
                return next.poll_steps(|state, found| {
                    state.helper.rings_callers = found;
                    on_step(true, state.clone());
                });
            }
            HelperAt::Decide => {
                let (orders, then) = next.machine.on_helper_looked(false);
                next.carry_out(orders);
                next.locked = false;
                next.helper.rings_callers &= next.machine.callers_sleep();
                next.helper.next = match then {
                    HelperNext::PollAgain(_) | HelperNext::Retry => HelperAt::Interval,
                    HelperNext::Sleep => HelperAt::Sleep(SleepStep::Look),
                };
            }
            HelperAt::Interval | HelperAt::Sleep(SleepStep::Awake) => {
                next.helper.next = HelperAt::ReadRings;
            }
            HelperAt::Sleep(SleepStep::OrderedLook) => {
                next.barrier(configuration);
                next.helper.next = HelperAt::LastLook;
            }
            HelperAt::Sleep(SleepStep::Look) | HelperAt::LastLook if self.locked => return,
            HelperAt::Sleep(SleepStep::Look) | HelperAt::LastLook => {
                let step = match self.helper.next {
                    HelperAt::LastLook => SleepStep::OrderedLook,
                    _ => SleepStep::Look,
                };
                return next.poll_steps(|state, found| {
                    state.helper.next = HelperAt::Sleep(step.next(found));
                    state.helper.rings_callers = found && state.machine.callers_sleep();
                    on_step(true, state.clone());
                });
            }
            HelperAt::Sleep(SleepStep::Nap) => {
                if configuration.may_hold_ring {
                    next.helper.next = HelperAt::Sleep(SleepStep::Awake);
                    on_step(true, next.clone());
                }
                next.helper.next = HelperAt::Sleep(SleepStep::Nap.next(self.helper.rung));
            }
            HelperAt::Sleep(SleepStep::Sleep) if !self.helper.rung => return,
            HelperAt::Sleep(SleepStep::Sleep) => next.helper.next = HelperAt::ReadRings,
        }
        on_step(true, next);
    }

    fn caller_steps(
        &self,
        at: usize,
        configuration: &Configuration,
        on_step: &mut impl FnMut(bool, State),
    ) {
        let caller = &self.callers[at];
        let mut next = self.clone();
        if caller.rings_callers {
            next.callers[at].rings_callers = false;
            next.ring(Sleeper::Caller);
            return on_step(true, next);
        }
        match caller.next {
            CallerAt::Compute => {
                next.callers[at].next = CallerAt::Poll { waits: false };
                on_step(false, next.clone());
                next.callers[at].next = CallerAt::Take;
                return on_step(false, next);
            }
            CallerAt::Take if self.events > 0 => {
                next.events -= 1;
                next.callers[at].next = CallerAt::Compute;
            }
            CallerAt::Take => {
                next.callers[at].active = false;
                next.callers[at].next = CallerAt::Poll { waits: true };
            }
            CallerAt::Poll { .. } | CallerAt::BeginSleep | CallerAt::EndSleep if self.locked => {
                return;
            }
            CallerAt::Poll { waits } => {
                next.locked = true;
                return next.poll_steps(|state, found| {
                    state.callers[at].next = CallerAt::EndPoll { waits, found };
                    on_step(true, state.clone());
                });
            }
            CallerAt::EndPoll { waits, found } => {
                if !found && self.idle {
                    let orders = next.machine.on_network_idle();
                    next.carry_out(orders);
                }
                if next.machine.on_poll(self.armed.is_some(), || 0) {
                    let orders = next.machine.disarm();
                    next.carry_out(orders);
                }
                next.locked = false;
                next.callers[at].rings_callers = found && next.machine.callers_sleep();
                next.callers[at].next = match waits {
                    true => CallerAt::Take,
                    false => CallerAt::Compute,
                };
                if waits && !next.callers[at].active {
                    // It has polled for long enough.
                    let mut sleeps = next.clone();
                    sleeps.callers[at].next = CallerAt::ReadRings;
                    on_step(true, sleeps);
                }
            }
            CallerAt::ReadRings => {
                next.callers[at].rung = false;
                next.callers[at].next = CallerAt::BeginSleep;
            }
            CallerAt::BeginSleep => {
                let orders = next.machine.begin_sleep();
                next.carry_out(orders);
                next.callers[at].next = CallerAt::Sleep(SleepStep::Look);
            }
            CallerAt::Sleep(SleepStep::OrderedLook) => {
                next.barrier(configuration);
                next.callers[at].next = CallerAt::LastLook;
            }
            CallerAt::Sleep(SleepStep::Look) | CallerAt::LastLook if self.locked => return,
            CallerAt::Sleep(SleepStep::Look) | CallerAt::LastLook => {
                let step = match caller.next {
                    CallerAt::LastLook => SleepStep::OrderedLook,
                    _ => SleepStep::Look,
                };
                return next.poll_steps(|state, found| {
                    let caller = &mut state.callers[at];
                    caller.next = CallerAt::Sleep(step.next(found || caller.active));
                    caller.rings_callers = found;
                    on_step(true, state.clone());
                });
            }
            CallerAt::Sleep(SleepStep::Nap) => {
                next.callers[at].next = CallerAt::Sleep(SleepStep::Nap.next(caller.rung));
            }
            CallerAt::Sleep(SleepStep::Sleep) if !caller.rung => return,
            CallerAt::Sleep(SleepStep::Sleep | SleepStep::Awake) => {
                next.callers[at].next = CallerAt::EndSleep;
            }
            CallerAt::EndSleep => {
                return next.poll_steps(|state, found| {
                    let orders = state.machine.end_sleep();
                    state.carry_out(orders);
                    state.callers[at].rings_callers = found && state.machine.callers_sleep();
                    state.callers[at].next = CallerAt::Take;
                    if orders.bell.is_some() {
                        state.locked = true;
                        state.barrier(configuration);
                        state.callers[at].next = CallerAt::HandOver;
                        state.callers[at].rings_callers = false;
                        state.callers[at].active |= found;
                    }
                    on_step(true, state.clone());
                });
            }
            CallerAt::HandOver => {
                next.locked = false;
                return next.poll_steps(|state, found| {
                    let orders = state.machine.on_handed_over(found);
                    state.carry_out(orders);
                    let active = found || caller.active;
                    state.callers[at].rings_callers = active && state.machine.callers_sleep();
                    state.callers[at].next = CallerAt::Take;
                    on_step(true, state.clone());
                });
            }
        }
        on_step(true, next);
    }

    fn watcher_steps(&self, on_step: &mut impl FnMut(bool, State)) {
        let mut next = self.clone();
        let watcher = self.watcher.as_ref().expect("there is one");
        let mine = next.watcher.as_mut().expect("there is one");
        if watcher.rings_callers {
            mine.rings_callers = false;
            next.ring(Sleeper::Caller);
            return on_step(true, next);
        }
        if !watcher.looks {
            let wakes = match watcher.next {
                WatcherNext::Park => watcher.unparked,
                WatcherNext::Watch => self.datagrams > 0,
                WatcherNext::Yield | WatcherNext::Continue => true,
            };
            if wakes {
                mine.looks = true;
                mine.unparked &= watcher.next != WatcherNext::Park;
                on_step(true, next);
            }
            return;
        }
        if self.locked {
            return;
        }
        mine.looks = false;
        let queued = false;
        if watcher.next == WatcherNext::Park {
            next.on_watcher_looked(WatcherLook::Unparked { queued }, false);
            return on_step(true, next);
        }
        next.idle = false;
        next.poll_steps(|state, found| {
            let idle = state.idle;
            state.on_watcher_looked(WatcherLook::Polled { idle, queued }, found);
            on_step(true, state.clone());
        });
    }

    fn on_watcher_looked(&mut self, look: WatcherLook, found: bool) {
        let (orders, then) = self.machine.on_watcher_looked(look);
        self.carry_out(orders);
        let callers_sleep = self.machine.callers_sleep();
        let watcher = self.watcher.as_mut().expect("there is one");
        watcher.next = then;
        watcher.rings_callers = found && callers_sleep;
    }

    /// Handles what has arrived. If nothing has, the network may count as silent from now on.
    fn poll_steps(&mut self, mut on_step: impl FnMut(&mut State, bool)) {
        let received = match self.idle {
            true => 0,
            false => std::mem::take(&mut self.datagrams),
        };
        let arrived = std::mem::take(&mut self.records) + received;
        self.events += arrived;
        if arrived > 0 {
            self.callers
                .iter_mut()
                .for_each(|caller| caller.active = true);
        } else if self.watcher.is_some() && !self.idle {
            let mut silent = self.clone();
            silent.idle = true;
            on_step(&mut silent, false);
        }
        on_step(self, arrived > 0);
    }

    fn carry_out(&mut self, orders: Orders) {
        match orders.bell {
            Some(BellOrder::Arm(sleeper)) => self.armed = Some(sleeper),
            Some(BellOrder::Disarm) => self.armed = None,
            None => {}
        }
        if orders.wake_helper {
            self.ring(Sleeper::Helper);
        }
        if orders.unpark_watcher {
            self.watcher.as_mut().expect("there is one").unparked = true;
        }
    }

    fn ring(&mut self, sleeper: Sleeper) {
        match sleeper {
            Sleeper::Helper => self.helper.rung = true,
            Sleeper::Caller => self
                .callers
                .iter_mut()
                .for_each(|caller| caller.rung = true),
        }
    }

    fn barrier(&mut self, configuration: &Configuration) {
        if configuration.has_barrier {
            self.make_visible();
        }
    }

    fn make_visible(&mut self) {
        self.records += std::mem::take(&mut self.sender.buffered);
    }
}
