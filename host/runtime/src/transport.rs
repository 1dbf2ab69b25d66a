//! The NALs that a user can choose by name.

use crate::capture::captured;
use crate::key::key;
use crate::log::{Level, log, log_level};
use crate::settings::{Between, Settings};
use crate::timeline::{Recorded, Recorder};
use lintel_claim::Claim;
use lintel_nal::{Nal, Origin, Outgoing, Route, Trace, Unreachable, Wake, forward};
use lintel_nal_ofi::OfiNal;
use lintel_nal_shm::{Lookout, ShmNal, Unread};
use lintel_nal_udp::{Model, UdpNal};
use lintel_presence::{Bell, OpenError, Segment, StatsWriter};
use lintel_types::{Error, ProcessId};
use lintel_wire::Words;
use std::sync::Arc;

/// The way to other processes.
#[allow(clippy::large_enum_variant)] // there is one, and the common form takes no detour
#[repr(u8)] // each message asks which: a byte is compared, where a niche is first decoded
pub(crate) enum Transport {
    /// Shared memory within the node, and no network.
    Shm(ShmNal),
    /// Shared memory within the node or for nothing, another network beyond.
    Routed(Box<Route<ShmNal, Far>>),
    /// Either, behind middleware: a log, a capture or a timeline.
    Boxed(Box<dyn Middleware>),
}

/// A NAL as the transport holds it, so that what handles many messages asks once which it is.
pub(crate) trait OfTransport: Nal {
    /// The NAL, if it is the one in use.
    fn of(transport: &mut Transport) -> Option<&mut Self>;
}

impl OfTransport for ShmNal {
    #[inline(always)]
    fn of(transport: &mut Transport) -> Option<&mut ShmNal> {
        match transport {
            Transport::Shm(nal) => Some(nal),
            _ => None,
        }
    }
}

impl OfTransport for Transport {
    #[inline(always)]
    fn of(transport: &mut Transport) -> Option<&mut Transport> {
        Some(transport)
    }
}

/// Middleware between the library and its networks.
pub(crate) trait Middleware: Nal + Send {
    /// Where messages and events are noted, if this notes them.
    fn recorder(&mut self) -> Option<&mut Recorder> {
        None
    }

    /// See [`Transport::watch`].
    fn watch(&mut self, lookout: &Lookout, _looks: u32) {
        lookout.close();
    }
}

impl Middleware for Far {}

impl Middleware for Recorded<Transport> {
    fn recorder(&mut self) -> Option<&mut Recorder> {
        Some(&mut self.recorder)
    }

    fn watch(&mut self, lookout: &Lookout, looks: u32) {
        self.inner.watch(lookout, looks);
    }
}

/// The network between nodes.
type Far = Box<dyn Nal + Send>;

/// A process's place on its networks.
pub(crate) struct Endpoint {
    pub(crate) transport: Transport,
    pub(crate) me: ProcessId,
    pub(crate) bell: Bell,
    pub(crate) stats: StatsWriter,
}

/// Process identifiers that are tried where any will do, and one is free on one
/// network and taken on the other.
const TRIES: u32 = 20;

/// See [`Transport::inline_polls`].
const INLINE_POLLS: u32 = 6;
/// What a poll that asks the system for datagrams counts for, in polls of shared memory, until a caller yields
/// its processor. It costs 16 to 30, but in a stream pauses are some polls long, and a yield in each of them
/// slows the stream by a tenth and more.
const NETWORK_POLL_WEIGHT: u32 = 4;

/// Joins the networks that the settings name.
///
/// # Errors
/// `PidInUse`, `NoSpace`, `Fail`; the log says why.
pub(crate) fn join(settings: &Settings, pid: u32, uid: u32) -> Result<Endpoint, Error> {
    let Some(between) = settings.between else {
        let segment = register(settings, pid)?;
        let nal = ShmNal::new(segment.clone(), settings.costs(), warn);
        return Ok(endpoint((settings, uid), segment, nal, Transport::Shm));
    };
    for _ in 0..TRIES {
        let (me, far) = far(between, settings, pid, uid)?;
        let segment = match register(settings, me.pid) {
            Err(Error::PidInUse) if pid == ProcessId::PID_ANY => continue,
            registered => registered?,
        };
        let node = settings.shm.then_some(settings.nid);
        let near = ShmNal::new(segment.clone(), settings.costs(), warn);
        let route = Route::new(near, far, node);
        let routed = |route| Transport::Routed(Box::new(route));
        return Ok(endpoint((settings, uid), segment, route, routed));
    }
    Err(Error::NoSpace)
}

/// The segment is a process's registration on its node and its bell, whether or
/// not messages go through it.
fn endpoint<N: Nal + Send + 'static>(
    (settings, uid): (&Settings, u32),
    segment: Arc<Segment>,
    nal: N,
    plain: impl FnOnce(N) -> Transport,
) -> Endpoint {
    let me = segment.process();
    let mut transport = match &settings.pcap {
        None => traced_or(nal, plain),
        // Boxed, so that the common form's code has one copy less.
        Some(directory) => {
            let nal: Far = Box::new(nal);
            let nal = match captured(nal, directory, me, uid) {
                Ok(captured) => Box::new(captured),
                Err(nal) => nal,
            };
            traced_or(nal, boxed)
        }
    };
    let directory = settings.trace.as_deref();
    if let Some(recorder) = directory.and_then(|directory| Recorder::begin(directory, me)) {
        transport = Transport::Boxed(Box::new(Recorded::new(transport, recorder)));
    }
    Endpoint {
        me,
        bell: Bell::new(segment.clone()),
        stats: StatsWriter::new(segment),
        transport,
    }
}

fn traced_or<N: Nal + Send + 'static>(nal: N, plain: impl FnOnce(N) -> Transport) -> Transport {
    if log_level() != Level::Trace {
        return plain(nal);
    }
    let line: fn(String) = |line| log(Level::Trace, &line);
    boxed(Box::new(Trace::new(nal, line)))
}

fn boxed(nal: Far) -> Transport {
    Transport::Boxed(Box::new(nal))
}

fn warn(words: &str) {
    log(Level::Warn, words);
}

fn register(settings: &Settings, pid: u32) -> Result<Arc<Segment>, Error> {
    let segment = Segment::create(&settings.job, settings.nid, pid).map_err(|error| {
        let code = match error {
            OpenError::InUse => Error::PidInUse,
            OpenError::Occupied(..) => {
                warn(&format!("no interface: {error}"));
                Error::PidInUse
            }
            OpenError::NoneFree | OpenError::Exhausted(..) => Error::NoSpace,
            _ => Error::Fail,
        };
        refused(&error, code)
    })?;
    Ok(Arc::new(segment))
}

fn far(
    between: Between,
    settings: &Settings,
    pid: u32,
    uid: u32,
) -> Result<(ProcessId, Far), Error> {
    let key = key(settings).map_err(|error| refused(&error, Error::Fail))?;
    let port = match u16::try_from(pid) {
        Ok(port) if pid != ProcessId::PID_ANY => Some(port),
        _ => None,
    };
    match between {
        Between::Udp => udp(settings, port, key, uid),
        Between::Ofi => ofi(settings, port, key, uid),
    }
}

fn udp(
    settings: &Settings,
    port: Option<u16>,
    key: [u8; 32],
    uid: u32,
) -> Result<(ProcessId, Far), Error> {
    let config = lintel_nal_udp::Config {
        nid: settings.nid,
        port,
        key,
        uid,
        model: settings.model,
        peer_timeout: settings.peer_timeout,
        faults: settings.faults,
        log: warn,
        job: &settings.job,
    };
    match UdpNal::open(config) {
        Ok(nal) => Ok((nal.process(), Box::new(nal))),
        Err(error) => {
            let code = match error {
                lintel_nal_udp::OpenError::PortInUse(..) => Error::PidInUse,
                _ => Error::Fail,
            };
            Err(refused(&error, code))
        }
    }
}

fn ofi(
    settings: &Settings,
    port: Option<u16>,
    key: [u8; 32],
    uid: u32,
) -> Result<(ProcessId, Far), Error> {
    let config = lintel_nal_ofi::Config {
        nid: settings.nid,
        port,
        provider: settings.provider.clone(),
        key,
        uid,
        model_is_xrc: settings.model == Model::Xrc,
        peer_timeout: settings.peer_timeout,
        job: &settings.job,
        log: warn,
    };
    match OfiNal::open(config) {
        Ok(nal) => Ok((nal.process(), Box::new(nal))),
        Err(error) => {
            let code = match error {
                lintel_nal_ofi::OpenError::InUse(_) => Error::PidInUse,
                lintel_nal_ofi::OpenError::NoneFree => Error::NoSpace,
                _ => Error::Fail,
            };
            Err(refused(&error, code))
        }
    }
}

/// A name in use is reported by the caller that gives up.
fn refused(why: &dyn std::fmt::Display, code: Error) -> Error {
    if code == Error::PidInUse {
        return code;
    }
    warn(&format!("no interface: {why}"));
    code
}

impl Transport {
    /// Sends on whichever it is.
    #[inline(never)]
    fn send_on(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Outgoing<'_>,
    ) -> Result<(), Unreachable> {
        match self {
            Transport::Shm(nal) => nal.send(to, words, body),
            Transport::Routed(nal) => nal.send(to, words, body),
            Transport::Boxed(nal) => nal.send(to, words, body),
        }
    }

    /// Further looks for an inline message in a poll that has found nothing: one that is seen
    /// under the lock needn't wait for it. None if a poll reads more than shared memory: it
    /// would delay what arrives there.
    #[inline(always)]
    pub(crate) fn inline_polls(&self) -> u32 {
        match self {
            Transport::Routed(nal) if !nal.is_idle() => 0,
            _ => INLINE_POLLS,
        }
    }

    /// For how many polls of shared memory one counts until a caller yields.
    #[inline(always)]
    pub(crate) fn poll_weight(&self) -> u32 {
        match self {
            Transport::Routed(nal) if !nal.is_idle() => NETWORK_POLL_WEIGHT,
            _ => 1,
        }
    }

    /// Has threads look for messages by themselves, so many times until the next poll; not
    /// at all if a poll reads more than shared memory.
    #[inline(always)]
    pub(crate) fn watch(&mut self, lookout: &Lookout, looks: u32) {
        match self {
            Transport::Shm(nal) => nal.watch(lookout, looks),
            Transport::Routed(nal) if nal.is_idle() => nal.near_mut().watch(lookout, looks),
            Transport::Routed(_) => lookout.close(),
            Transport::Boxed(nal) => nal.watch(lookout, looks),
        }
    }

    /// The shared memory within the node; nothing if each message is traced.
    #[inline(always)]
    pub(crate) fn near(&self) -> Option<&ShmNal> {
        match self {
            Transport::Shm(nal) => Some(nal),
            Transport::Routed(nal) => Some(nal.near()),
            Transport::Boxed(_) => None,
        }
    }

    /// As [`near`](Self::near), to be changed.
    #[inline(always)]
    pub(crate) fn near_mut(&mut self) -> Option<&mut ShmNal> {
        match self {
            Transport::Shm(nal) => Some(nal),
            Transport::Routed(nal) => Some(nal.near_mut()),
            Transport::Boxed(_) => None,
        }
    }

    /// Where messages and events are noted, if a timeline is asked for.
    #[inline(always)]
    pub(crate) fn recorder(&mut self) -> Option<&mut Recorder> {
        match self {
            Transport::Shm(_) | Transport::Routed(_) => None,
            Transport::Boxed(nal) => recorder_of(&mut **nal),
        }
    }

    /// What a process of this node hasn't read yet, when this way ends.
    pub(crate) fn take_unread(&mut self, process: ProcessId) -> Option<Unread> {
        self.near_mut()?.take_unread(process)
    }
}

impl Nal for Transport {
    forward!(self { Transport::Shm(nal) => nal, Transport::Routed(nal) => nal, Transport::Boxed(nal) => nal }:
        capabilities, send_lent, leave_to, begin_parts, take_part, revoke_grant, note_moved, next,
        done, lent_behind, done_lent, receive_into, fetch, fill, recall, backlog, lends,
        resources, traffic, arrivals);

    #[inline(always)]
    fn send(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Outgoing<'_>,
    ) -> Result<(), Unreachable> {
        match self {
            Transport::Shm(nal) => nal.send(to, words, body),
            // A copy, so that the common path has none in memory.
            other => other.send_on(to, &{ *words }, body),
        }
    }

    #[inline(always)]
    fn next_inline(&mut self) -> Option<(Origin, Words, Claim)> {
        match self {
            Transport::Shm(nal) => nal.next_inline(),
            Transport::Routed(nal) => nal.next_inline(),
            Transport::Boxed(nal) => next_inline_boxed(&mut **nal),
        }
    }
}

/// Apart, so that the common path keeps its registers. Middleware that has to see whole arrivals
/// returns nothing.
#[cold]
#[inline(never)]
fn next_inline_boxed(nal: &mut dyn Middleware) -> Option<(Origin, Words, Claim)> {
    nal.next_inline()
}

#[cold]
#[inline(never)]
fn recorder_of(nal: &mut dyn Middleware) -> Option<&mut Recorder> {
    nal.recorder()
}

impl Wake for Transport {
    forward!(self { Transport::Shm(nal) => nal, Transport::Routed(nal) => nal, Transport::Boxed(nal) => nal }:
        ..Wake);
}
