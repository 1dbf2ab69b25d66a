//! What becomes of peers, good ones and others.

mod common;

use common::{
    KEY, NID, arrival, config, open, reason_to_skip, receive_number, send_number, wait_until,
};
use lintel_claim::{Lease, Region};
use lintel_nal::{Arrival, Nal, Outgoing, Payload, Wake};
use lintel_nal_ofi::{Config, OfiNal, OpenError};
use lintel_types::ProcessId;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

/// Under which everything is lent.
static LEASE: std::sync::LazyLock<Lease> = std::sync::LazyLock::new(Lease::new);

const TCP: &str = "tcp;ofi_rxm";
const UDP: &str = "udp;ofi_rxd";

#[test]
fn an_unknown_provider_is_reported_with_those_that_there_are() {
    if reason_to_skip(TCP).is_some() {
        return;
    }
    let reported = match OfiNal::open(config("warp", "unknown")) {
        Err(error @ OpenError::NoProvider { .. }) => error.to_string(),
        other => panic!("there is no such provider: {:?}", other.err()),
    };
    for part in ["\"warp\"", TCP, UDP, "PTL_OFI_PROVIDER"] {
        assert!(reported.contains(part), "{reported:?} lacks {part}");
    }
}

#[test]
fn a_provider_is_found_where_none_is_named() {
    if reason_to_skip(TCP).is_some() {
        return;
    }
    let nal = open(Config {
        provider: None,
        ..config("", "unnamed")
    });
    assert!(!nal.provider_name().is_empty());
    assert_eq!(nal.process().nid, NID);
}

#[test]
fn a_provider_is_found_by_a_part_of_its_name() {
    if reason_to_skip(TCP).is_some() {
        return;
    }
    for name in ["tcp", "udp"] {
        let nal = open(config(name, "part"));
        assert!(nal.provider_name().starts_with(name));
    }
}

#[test]
fn a_peer_that_ends_as_it_should_is_no_warning() {
    static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());
    if reason_to_skip(TCP).is_some() {
        return;
    }
    let mut stays = open(Config {
        log: |words| WARNINGS.lock().unwrap().push(words.to_owned()),
        ..config(TCP, "close")
    });
    let mut ends = open(config(TCP, "close"));
    let (stays_at, ends_at) = (stays.process(), ends.process());
    send_number(&mut stays, ends_at, 1);
    assert_eq!(receive_number(&mut [&mut stays], &mut ends).1, 1);
    send_number(&mut ends, stays_at, 2);
    assert_eq!(receive_number(&mut [&mut ends], &mut stays).1, 2);
    drop(ends);
    let lost = arrival(&mut [], &mut stays);
    assert!(matches!(lost, Arrival::Lost(process) if process == ends_at));
    let warnings = WARNINGS.lock().unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[test]
fn a_port_that_is_taken_is_reported() {
    for provider in [TCP, UDP] {
        if reason_to_skip(provider).is_some() {
            return;
        }
        let first = open(config(provider, "taken"));
        let port = u16::try_from(first.process().pid).expect("a port");
        let second = OfiNal::open(Config {
            port: Some(port),
            ..config(provider, "taken")
        });
        match second.map(|nal| nal.process()) {
            Err(OpenError::InUse(pid)) => assert_eq!(pid, u32::from(port)),
            other => panic!("{provider}: {other:?}"),
        }
    }
}

// Not over udp;ofi_rxd: of libfabric 1.17 it crashes where a packet for an earlier
// endpoint of the same port comes in.
#[test]
fn a_restarted_peer_is_reported_lost_once_and_then_reached() {
    if reason_to_skip(TCP).is_some() {
        return;
    }
    let mut stays = open(config(TCP, "restart"));
    let mut goes = open(config(TCP, "restart"));
    let name = goes.process();
    send_number(&mut stays, name, 1);
    assert_eq!(receive_number(&mut [&mut stays], &mut goes).1, 1);
    drop(goes);
    let mut comes = open(Config {
        port: u16::try_from(name.pid).ok(),
        ..config(TCP, "restart")
    });
    send_number(&mut comes, stays.process(), 2);
    match arrival(&mut [&mut comes], &mut stays) {
        Arrival::Lost(process) => assert_eq!(process, name),
        other => panic!("the loss was to be reported first, not {other:?}"),
    }
    let (origin, number) = receive_number(&mut [&mut comes], &mut stays);
    assert_eq!((origin.process, number), (name, 2));
    send_number(&mut stays, name, 3);
    assert_eq!(receive_number(&mut [&mut stays], &mut comes).1, 3);
}

#[test]
fn a_killed_peer_is_lost() {
    for provider in [TCP, UDP, "shm"] {
        if reason_to_skip(provider).is_some() {
            return;
        }
        let job = format!("kill-{}", std::process::id());
        let own = std::env::current_exe().expect("a test knows its path");
        let mut victim = Command::new(own)
            .args(["--exact", "victim", "--ignored"])
            .env("LINTEL_TEST_VICTIM", format!("{provider}/{job}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a second process");
        let mut nal = open(Config {
            port: Some(home(provider)),
            ..config(provider, &job)
        });
        let (origin, number) = receive_number(&mut [], &mut nal);
        assert_eq!(number, 1);
        send_number(&mut nal, origin.process, 2);
        wait_until("the answer's arrival", || {
            nal.flush();
            nal.all_delivered()
        });
        victim.kill().expect("it lives");
        victim.wait().expect("it ends");
        match arrival(&mut [], &mut nal) {
            Arrival::Lost(process) => assert_eq!(process, origin.process, "{provider}"),
            other => panic!("{provider}: the loss was to be reported, not {other:?}"),
        }
        // What provider shm leaves of a killed process.
        let _ = std::fs::remove_file(format!("/dev/shm/{}:0:0", victim.id()));
    }
}

/// Where the victim finds its murderer.
fn home(provider: &str) -> u16 {
    let sum: u16 = provider.bytes().map(u16::from).sum();
    20_000 + sum + (std::process::id() % 10_000) as u16
}

/// The second process of `a_killed_peer_is_lost`: says that it is there, and does
/// nothing else than be there.
#[test]
#[ignore = "started by another test"]
fn victim() {
    let Ok(reported) = std::env::var("LINTEL_TEST_VICTIM") else {
        return;
    };
    let (provider, job) = reported.split_once('/').expect("provider and job");
    let parent = std::os::unix::process::parent_id();
    let sum: u16 = provider.bytes().map(u16::from).sum();
    let port = 20_000 + u32::from(sum) + parent % 10_000;
    let mut nal = open(config(provider, job));
    let until = Instant::now() + common::LIMIT;
    let nothing = Outgoing::Copied {
        operand: None,
        pieces: &[],
    };
    let to = ProcessId::new(NID, port);
    while nal.send(to, &common::words(1), nothing).is_err() && Instant::now() < until {
        std::thread::yield_now();
    }
    while Instant::now() < until {
        nal.flush();
        std::thread::yield_now();
    }
}

#[test]
fn processes_of_two_nodes_ask_each_other_for_addresses_that_are_no_sockets() {
    if reason_to_skip("shm").is_some() {
        return;
    }
    // Under names of their own, so that neither finds what the other has left.
    let mut first = open(config("shm", "node-one"));
    let mut second = open(Config {
        nid: NID + 1,
        ..config("shm", "node-two")
    });
    let _segments = [&first, &second].map(common::stay_open);
    send_number(&mut first, second.process(), 1);
    let (origin, number) = receive_number(&mut [&mut first], &mut second);
    assert_eq!((origin.process, number), (first.process(), 1));
    send_number(&mut second, origin.process, 2);
    assert_eq!(receive_number(&mut [&mut second], &mut first).1, 2);
    // A peer that doesn't answer is reported lost.
    let nobody = ProcessId::new(NID + 2, 60_001);
    send_number(&mut first, nobody, 3);
    match arrival(&mut [&mut second], &mut first) {
        Arrival::Lost(process) => assert_eq!(process, nobody),
        other => panic!("no process was to be reported lost, not {other:?}"),
    }
}

#[test]
fn another_jobs_messages_are_dropped_and_counted() {
    if reason_to_skip(TCP).is_some() {
        return;
    }
    let mut receiver = open(config(TCP, "mine"));
    let mut key = KEY;
    key[0] ^= 1;
    let mut stranger = open(Config {
        key,
        ..config(TCP, "mine")
    });
    send_number(&mut stranger, receiver.process(), 1);
    wait_until("the stranger's message", || {
        stranger.flush();
        assert!(receiver.next().is_none(), "it is no message");
        receiver.flush();
        receiver.resources().forged > 0
    });
    match arrival(&mut [&mut receiver], &mut stranger) {
        Arrival::Lost(process) => assert_eq!(process, receiver.process()),
        other => panic!("nobody was to answer, but {other:?}"),
    }
    assert!(receiver.next().is_none());
}

#[test]
fn more_senders_than_there_are_buffers_lose_nothing() {
    const SENDERS: usize = 8;
    const MESSAGES: u64 = 64;
    for provider in [TCP, UDP] {
        if reason_to_skip(provider).is_some() {
            return;
        }
        let mut receiver = open(config(provider, "many"));
        let to = receiver.process();
        let mut senders: Vec<OfiNal> = (0..SENDERS)
            .map(|_| open(config(provider, "many")))
            .collect();
        for number in 0..MESSAGES {
            senders
                .iter_mut()
                .for_each(|sender| send_number(sender, to, number));
        }
        let mut expected = rustc_hash::FxHashMap::default();
        for _ in 0..SENDERS as u64 * MESSAGES {
            let mut others: Vec<&mut OfiNal> = senders.iter_mut().collect();
            let (origin, number) = receive_number(&mut others, &mut receiver);
            let next = expected.entry(origin.process).or_insert(0);
            assert_eq!(number, *next, "{provider}, {:?}", origin.process);
            *next += 1;
        }
        assert!(receiver.next().is_none());
    }
}

#[test]
fn long_bodies_cross_each_other() {
    const SIZE: u64 = 3 << 20;
    for provider in [TCP, UDP] {
        if reason_to_skip(provider).is_some() {
            return;
        }
        let mut nals = [
            open(config(provider, "cross")),
            open(config(provider, "cross")),
        ];
        let names = [nals[0].process(), nals[1].process()];
        let bodies = [Region::new(SIZE), Region::new(SIZE)];
        let places = [Region::new(SIZE), Region::new(SIZE)];
        for (index, body) in bodies.iter().enumerate() {
            body.write(0, &vec![index as u8 + 1; SIZE as usize]);
            let pieces = [body.claim()];
            let lent = Outgoing::LentToRead(LEASE.lend(&pieces));
            let sent = nals[index].send(names[1 - index], &common::words(0), lent);
            sent.expect("the peer is there");
        }
        let mut whole = [false; 2];
        wait_until("the end of both", || {
            for (index, nal) in nals.iter_mut().enumerate() {
                match nal.next() {
                    Some(Arrival::Message(origin, _, Payload::Streamed(length))) => {
                        assert_eq!(length, SIZE);
                        nal.receive_into(origin, LEASE.lend(&[places[index].claim()]).keep());
                        nal.done(origin);
                    }
                    Some(Arrival::Streamed(_)) => whole[index] = true,
                    Some(other) => panic!("{provider}: {other:?}"),
                    None => {}
                }
                nal.flush();
            }
            whole == [true; 2] && nals.iter().all(Wake::all_delivered)
        });
        for (index, place) in places.iter().enumerate() {
            let mut bytes = vec![0; SIZE as usize];
            place.read(0, &mut bytes);
            assert!(
                bytes.iter().all(|byte| *byte == 2 - index as u8),
                "{provider}"
            );
        }
    }
}

#[test]
fn the_backlog_of_a_peer_is_what_waits_for_it() {
    const SIZE: u64 = 100_000;
    const MESSAGES: u64 = 100;
    for provider in [TCP, UDP] {
        if reason_to_skip(provider).is_some() {
            return;
        }
        let mut sender = open(config(provider, "backlog"));
        let mut receiver = open(config(provider, "backlog"));
        let to = receiver.process();
        let (body, lease) = (Region::new(SIZE), Lease::new());
        assert_eq!(sender.backlog(to), 0);
        for number in 0..MESSAGES {
            let pieces = &[body.claim()];
            let operand = None;
            let copied = Outgoing::Copied { operand, pieces };
            let sent = sender.send(to, &common::words(number), copied);
            sent.expect("the peer is there");
        }
        let held = sender.backlog(to);
        // Copies are kept in powers of two.
        let copies = MESSAGES * SIZE..MESSAGES * SIZE * 2;
        assert!(copies.contains(&held), "{provider}: {held}");
        for _ in 0..MESSAGES {
            let Arrival::Message(origin, _, _) = arrival(&mut [&mut sender], &mut receiver) else {
                panic!("a message was to come");
            };
            let place = Region::new(SIZE);
            receiver.receive_into(origin, lease.lend(&[place.claim()]).keep());
            receiver.done(origin);
            let whole = arrival(&mut [&mut sender], &mut receiver);
            assert!(matches!(whole, Arrival::Streamed(_)), "{whole:?}");
        }
        wait_until("the end of all", || {
            receiver.flush();
            sender.flush();
            receiver.next();
            sender.backlog(to) == 0
        });
        assert!(sender.all_delivered());
    }
}
