//! A thread that sleeps as the trait describes is woken by what arrives.

mod common;

use common::{LIMIT, config, open, reason_to_skip, send_number};
use lintel_nal::{Arrival, Nal, Wake};
use lintel_nal_ofi::OfiNal;
use lintel_types::ProcessId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Sleeps until the descriptor is readable or something is due; returns whether it was
/// for more than a moment.
fn sleep(nal: &OfiNal, most: Duration) -> bool {
    let due = nal
        .due()
        .map(|due| due.saturating_duration_since(Instant::now()));
    let time = due.map_or(most, |due| due.min(most));
    let timeout = Timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: i64::from(time.subsec_nanos()),
    };
    let mut descriptors = Vec::new();
    if let Some(descriptor) = nal.descriptor() {
        descriptors.push(PollFd::from_borrowed_fd(descriptor, PollFlags::IN));
    }
    poll(&mut descriptors, Some(&timeout)).expect("descriptors are open");
    time > Duration::from_millis(50)
}

/// Answers each number with the next, and sleeps in between; returns how often it slept
/// with nothing to do but wait.
fn answer(mut nal: OfiNal, numbers: u64) -> u64 {
    let (mut answered, mut slept) = (0, 0);
    let until = Instant::now() + LIMIT;
    while answered < numbers {
        assert!(Instant::now() < until, "number {answered} doesn't come");
        match nal.next() {
            Some(Arrival::Message(origin, words, _)) => {
                nal.done(origin);
                send_number(&mut nal, origin.process, words[1] + 1);
                answered += 1;
            }
            Some(other) => panic!("only numbers were to come, not {other:?}"),
            None => {
                nal.flush();
                slept += u64::from(sleep(&nal, LIMIT));
            }
        }
    }
    while (nal.flush() || !nal.all_delivered()) && Instant::now() < until {
        sleep(&nal, Duration::from_millis(1));
    }
    slept
}

fn sleepers_are_woken(provider: &str) {
    const NUMBERS: u64 = 20;
    if reason_to_skip(provider).is_some() {
        return;
    }
    let job = format!("sleep-{}", std::process::id());
    let mut nal = open(config(provider, &job));
    let (named, name) = mpsc::channel();
    let answerer = std::thread::spawn({
        let (provider, job) = (provider.to_owned(), job.clone());
        move || {
            let nal = open(config(&provider, &job));
            named.send(nal.process()).expect("the test receives");
            answer(nal, NUMBERS)
        }
    });
    let partner: ProcessId = name.recv_timeout(LIMIT).expect("it opens");
    let until = Instant::now() + LIMIT;
    for number in 0..NUMBERS {
        send_number(&mut nal, partner, number);
        loop {
            assert!(Instant::now() < until, "number {number} isn't answered");
            match nal.next() {
                Some(Arrival::Message(origin, words, _)) => {
                    assert_eq!(words[1], number + 1);
                    nal.done(origin);
                    break;
                }
                Some(other) => panic!("only numbers were to come, not {other:?}"),
                None => {
                    nal.flush();
                    sleep(&nal, LIMIT);
                }
            }
        }
    }
    // It settles when what it has sent is acknowledged.
    while !answerer.is_finished() {
        assert!(Instant::now() < until, "the answerer doesn't settle");
        nal.flush();
        std::thread::yield_now();
    }
    let slept = answerer.join().expect("the answerer ends well");
    let descriptor = nal.descriptor().is_some();
    eprintln!("{provider}: descriptor {descriptor}, {slept} long sleeps");
}

#[test]
fn over_tcp() {
    sleepers_are_woken("tcp;ofi_rxm");
}

#[test]
fn over_udp() {
    sleepers_are_woken("udp;ofi_rxd");
}
