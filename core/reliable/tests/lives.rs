//! Processes that end, begin again, stall and fall silent.

mod rig;

use lintel_reliable::{
    Class, Endpoint, Header, Key, Kind, Model, Nanos, Path, Paths, Refusal, Time, Verdict,
};
use rig::{CALM, Network, PEER_TIMEOUT, Weather, name, seal};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// What a process sends on its own, sealed.
fn capture(network: &mut Network, number: usize) -> Vec<Vec<u8>> {
    let (now, key) = (network.now, network.key.clone());
    let endpoint: &mut Endpoint<Vec<u8>> = &mut network.process(number).endpoint;
    let mut captured = Vec::new();
    while let Some(transmit) = endpoint.poll_transmit(now) {
        let payload = transmit.payload.map_or(Vec::new(), |place| {
            place.body[place.offset as usize..][..place.length as usize].to_vec()
        });
        captured.push(seal(transmit.header, &payload, &key));
    }
    captured
}

fn header_of(datagram: &[u8], key: &Key) -> Header {
    let beginning = &datagram[..datagram.len().min(lintel_reliable::MAX_HEADER_BYTES)];
    Header::parse(beginning, datagram.len(), key)
        .expect("it was sealed here")
        .0
}

/// Three processes; the first has sent message 0 to the last.
fn acquainted(seed: u64) -> Network {
    let mut network = Network::new(3, Model::Xrc, CALM, seed);
    network.send(0, 2, Class::Ordered, 0, 10);
    network.settle();
    network
}

fn numbers(network: &mut Network, number: usize) -> Vec<u64> {
    network
        .process(number)
        .delivered
        .iter()
        .map(|d| d.number)
        .collect()
}

#[test]
fn the_first_message_to_a_stranger_takes_a_round_trip_more_and_no_timeout() {
    let mut network = Network::new(3, Model::Xrc, CALM, 1);
    let began = network.now;
    network.send(0, 2, Class::Ordered, 5, 10);
    network.run_until(|network| !network.process(2).delivered.is_empty());
    assert_eq!(network.sent, 3, "a probe, a reset, the message");
    // Five or six microseconds each.
    assert!(network.now.since(began) <= Nanos::from_micros(18));
    network.settle();
    assert_eq!(numbers(&mut network, 2), [5]);
    network.send(2, 0, Class::Ordered, 6, 10);
    network.transmit();
    network.settle();
    assert_eq!(network.sent, 6, "nothing goes before the answer");
}

#[test]
fn a_peer_that_began_again_is_reported_before_its_messages() {
    let mut network = Network::new(3, Model::Xrc, CALM, 2);
    network.send(0, 2, Class::Ordered, 1, 10);
    network.send(2, 0, Class::Ordered, 2, 10);
    network.settle();
    network.kill(2);
    network.start(2);
    network.send(2, 0, Class::Ordered, 3, 10);
    network.settle();
    let losses: Vec<_> = network
        .process(0)
        .losses
        .iter()
        .map(|l| l.process)
        .collect();
    assert_eq!(losses, [name(2)]);
    assert_eq!(numbers(&mut network, 0), [2, 3]);
    // And the way there is open again.
    network.send(0, 2, Class::Ordered, 4, 10);
    network.settle();
    assert_eq!(numbers(&mut network, 2), [4]);
}

#[test]
fn a_sender_learns_that_its_receiver_began_again() {
    let mut network = Network::new(3, Model::Rc, CALM, 3);
    network.send(0, 2, Class::Ordered, 1, 10);
    network.settle();
    network.kill(2);
    network.start(2);
    network.send(0, 2, Class::Ordered, 2, 10);
    network.run_until(|network| !network.process(0).losses.is_empty());
    assert_eq!(numbers(&mut network, 2), [], "it was for another life");
    assert!(
        network.process(0).endpoint.all_delivered(),
        "and is given up"
    );
    assert_eq!(network.process(0).finished, [1, 2]);
    network.send(0, 2, Class::Ordered, 3, 10);
    network.settle();
    assert_eq!(numbers(&mut network, 2), [3]);
}

#[test]
fn packets_of_an_earlier_life_are_dropped() {
    let mut network = Network::new(3, Model::Xrc, CALM, 4);
    network.send(2, 0, Class::Ordered, 1, 10);
    network.settle();
    network.send(2, 0, Class::Ordered, 2, 10);
    let late = capture(&mut network, 2);
    network.kill(2);
    network.start(2);
    network.send(2, 0, Class::Ordered, 3, 10);
    network.settle();
    for datagram in &late {
        network.arrive(datagram);
    }
    assert_eq!(numbers(&mut network, 0), [1, 3]);
    assert_eq!(
        network.process(0).endpoint.counts().stale,
        late.len() as u64
    );
}

#[test]
fn a_farewell_is_a_loss_to_those_who_sent_something() {
    let mut network = Network::new(3, Model::Xrc, CALM, 5);
    network.send(0, 2, Class::Ordered, 1, 10);
    network.send(2, 1, Class::Ordered, 2, 10);
    network.settle();
    network.process(2).endpoint.close();
    network.run_until(|network| {
        !network.process(0).losses.is_empty() && !network.process(1).losses.is_empty()
    });
    assert!(network.process(0).losses[0].was_addressed);
    assert!(!network.process(1).losses[0].was_addressed);
}

#[test]
fn a_silent_peer_is_lost_after_the_set_time_and_not_before() {
    let mut network = Network::new(3, Model::Xrc, CALM, 6);
    network.send(0, 2, Class::Ordered, 1, 10);
    network.settle();
    network.kill(2);
    let began = network.now.0;
    network.send(0, 2, Class::Ordered, 2, 10);
    network.run_until(|network| !network.process(0).losses.is_empty());
    let taken = u128::from(network.now.0 - began);
    let timeout = PEER_TIMEOUT.as_nanos();
    assert!(taken >= timeout && taken < timeout * 3 / 2, "{taken} ns");
}

#[test]
fn who_waits_for_an_answer_learns_that_the_peer_is_silent() {
    let mut network = Network::new(3, Model::Xrc, CALM, 7);
    network.send(0, 2, Class::Ordered, 1, 10);
    network.settle();
    network.kill(2);
    let mut looks = 0;
    while network.process(0).losses.is_empty() {
        looks += 1;
        assert!(looks < 1000, "no probe is answered");
        let now = network.now;
        network.process(0).endpoint.check_peers(now);
        network.step();
    }
    assert!(network.process(0).endpoint.all_delivered());
}

#[test]
fn a_peer_that_is_only_quiet_stays() {
    let mut network = Network::new(3, Model::Xrc, CALM, 8);
    network.send(0, 2, Class::Ordered, 1, 10);
    network.settle();
    let end = network.now.0 + 5 * PEER_TIMEOUT.as_nanos() as u64;
    while network.now.0 < end {
        let now = network.now;
        network.process(0).endpoint.check_peers(now);
        network.step();
    }
    assert_eq!(network.process(0).losses, []);
}

#[test]
fn a_refusal_is_believed_at_once_of_a_stranger_and_at_the_second_time_of_a_friend() {
    let mut network = Network::new(3, Model::Xrc, CALM, 9);
    let now = network.now;
    network.kill(1);
    network.send(0, 1, Class::Ordered, 1, 10);
    network.process(0).endpoint.on_refused(now, name(1));
    network.process(0).collect();
    assert_eq!(network.process(0).losses.len(), 1);
    network.send(0, 2, Class::Ordered, 2, 10);
    network.settle();
    network.process(0).endpoint.on_refused(now, name(2));
    network.process(0).collect();
    assert_eq!(network.process(0).losses.len(), 1, "it is asked first");
    network.step();
    network.step();
    network.process(0).endpoint.on_refused(now, name(2));
    network.process(0).endpoint.on_refused(now, name(2));
    network.process(0).collect();
    assert_eq!(network.process(0).losses.len(), 2);
}

#[test]
fn who_was_given_up_and_lives_learns_of_it_and_is_heard_again() {
    let mut network = Network::new(3, Model::Xrc, CALM, 10);
    network.send(0, 2, Class::Ordered, 1, 10);
    network.send(2, 0, Class::Ordered, 1, 10);
    network.settle();
    network.process(2).is_stalled = true;
    network.send(0, 2, Class::Ordered, 2, 10);
    network.run_until(|network| !network.process(0).losses.is_empty());
    network.process(2).is_stalled = false;
    network.send(2, 0, Class::Ordered, 3, 10);
    network.run_until(|network| !network.process(2).losses.is_empty());
    assert_eq!(
        numbers(&mut network, 0),
        [1],
        "what it sent as the one given up is lost"
    );
    network.send(2, 0, Class::Ordered, 4, 10);
    network.send(0, 2, Class::Ordered, 5, 10);
    network.settle();
    assert_eq!(numbers(&mut network, 0), [1, 4]);
    assert_eq!(numbers(&mut network, 2), [1, 5]);
    assert_eq!(network.process(0).losses.len(), 1);
}

#[test]
fn after_a_long_silence_a_loss_is_made_good_as_soon_as_ever() {
    let mut network = acquainted(20);
    network.send(0, 2, Class::Ordered, 1, 9000);
    let parts = capture(&mut network, 0);
    for part in &parts[1..] {
        network.arrive(part);
    }
    assert!(!capture(&mut network, 2).is_empty(), "its answer is lost");
    network.process(2).is_stalled = true;
    let until = network.now.after(Nanos::from_millis(1500));
    network.run_until(|network| network.now > until);
    network.process(2).is_stalled = false;
    network.send(2, 0, Class::Ordered, 2, 10);
    network.settle();
    network.send(0, 2, Class::Ordered, 3, 10);
    network.weather.loss = 100;
    let (began, before) = (network.now, network.process(0).endpoint.counts());
    network.run_until(|network| network.process(0).endpoint.counts() != before);
    network.weather.loss = 0;
    let taken = u128::from(network.now.since(began).0);
    assert!(taken < PEER_TIMEOUT.as_nanos() / 4, "it took {taken} ns");
    network.settle();
    assert_eq!(numbers(&mut network, 2), [0, 1, 3]);
}

#[test]
fn a_stalled_receiver_doesnt_hold_up_the_others_of_its_node() {
    let mut network = Network::new(4, Model::Xrc, CALM, 11);
    network.process(3).is_stalled = true;
    network.send(0, 3, Class::Ordered, 0, 1 << 20);
    for number in 1..100 {
        network.send(0, 2, Class::Ordered, number, 10_000);
    }
    let began = network.now.0;
    network.run_until(|network| network.process(2).delivered.len() == 99);
    let taken = (network.now.0 - began) / 1_000_000;
    assert!(taken < 100, "it took {taken} ms");
    network.process(3).is_stalled = false;
    network.settle();
    assert_eq!(numbers(&mut network, 3), [0]);
}

#[test]
fn contexts_are_counted_by_the_model() {
    for (model, contexts) in [(Model::Rc, 4), (Model::Xrc, 2)] {
        let mut network = Network::new(6, model, CALM, 12);
        for to in 2..6 {
            network.send(0, to, Class::Ordered, 1, 10);
        }
        network.settle();
        let held = network.process(0).endpoint.resources();
        assert_eq!((held.contexts, held.pairs), (contexts, 4), "{model:?}");
    }
}

/// What is known of paths, in the memory of a test.
#[derive(Clone, Default)]
struct Table(Arc<Mutex<HashMap<u32, Path>>>);

impl Paths for Table {
    fn load(&mut self, node: u32, _now: Time) -> Option<Path> {
        let table = self.0.lock().expect("no panic");
        Some(table.get(&node).copied().unwrap_or_default())
    }

    fn store(&mut self, node: u32, path: &Path) {
        self.0.lock().expect("no panic").insert(node, *path);
    }
}

#[test]
fn what_one_process_finds_out_about_a_path_another_of_its_node_knows() {
    let mut network = Network::new(4, Model::Node, CALM, 19);
    let table = Table::default();
    for number in 0..2 {
        let share = Box::new(table.clone());
        network.process(number).endpoint.share(share);
    }
    for number in 0..3 {
        network.send(0, 2, Class::Ordered, number, 200_000);
        network.settle();
    }
    let node = name(2).nid;
    let known = *table
        .0
        .lock()
        .expect("no panic")
        .get(&node)
        .expect("it has sent");
    assert!(known.window > 0 && known.srtt.0 > 0, "{known:?}");
    // A narrow path with many users: one packet at a time.
    let narrow = Path {
        window: 1,
        users: 8,
        ..known
    };
    table.0.lock().expect("no panic").insert(node, narrow);
    for number in 0..10 {
        network.send(1, 2, Class::Ordered, number, 500);
    }
    assert_eq!(capture(&mut network, 1).len(), 1);
}

#[test]
fn idle_contexts_go_and_order_stays() {
    let mut network = Network::new(3, Model::Xrc, CALM, 13);
    network.send(0, 2, Class::Ordered, 1, 5000);
    network.settle();
    let busy = network.process(0).endpoint.resources();
    while network.step() {}
    let idle = network.process(0).endpoint.resources();
    assert_eq!((idle.contexts, idle.pairs), (0, 1));
    assert!(idle.bytes < busy.bytes);
    network.send(0, 2, Class::Ordered, 2, 10);
    network.send(2, 0, Class::Ordered, 3, 10);
    network.settle();
    assert_eq!(numbers(&mut network, 2), [1, 2]);
    assert_eq!(numbers(&mut network, 0), [3]);
    assert_eq!(network.process(0).losses, []);
}

#[test]
fn a_pair_at_rest_weighs_little_though_its_context_is_busy() {
    const PEERS: usize = 30;
    for model in [Model::Rc, Model::Xrc] {
        let mut network = Network::new(2 + PEERS, model, CALM, 21);
        let peers = 2..2 + PEERS;
        for to in peers.clone() {
            network.send(0, to, Class::Ordered, 1, 10);
        }
        network.settle();
        let busy = network.process(0).endpoint.resources();
        for number in 2..30 {
            network.send(0, 2, Class::Ordered, number, 10);
            network.settle();
            let until = network.now.after(Nanos::from_millis(100));
            network.run_until(|network| network.now >= until);
        }
        let held = network.process(0).endpoint.resources();
        assert_eq!((held.pairs, held.contexts), (busy.pairs, busy.contexts));
        let saved = (busy.bytes - held.bytes) / PEERS;
        println!("{model:?}: {} bytes, {saved} less", busy.bytes / PEERS);
        assert!(saved > 500, "{model:?}: {saved}");
        for to in peers {
            network.send(0, to, Class::Ordered, 99, 10);
            network.send(to, 0, Class::Ordered, to as u64, 10);
            network.settle();
            assert_eq!(numbers(&mut network, to).last(), Some(&99));
            assert_eq!(numbers(&mut network, 0).last(), Some(&(to as u64)));
        }
    }
}

#[test]
fn an_answer_waits_for_the_end_of_the_message_that_it_may_answer() {
    let mut network = acquainted(14);
    network.send(0, 2, Class::Ordered, 1, 3000);
    let parts = capture(&mut network, 0);
    assert!(parts.len() > 2);
    network.arrive(&parts[0]);
    let answer = lintel_reliable::Message {
        class: Class::Ordered,
        words: [0, 0, 0, 0, 0, 2],
        length: 0,
        memory: 0,
        is_awaited: false,
        body: Vec::new(),
    };
    let now = network.now;
    let sent = network.process(2).endpoint.send(now, name(0), answer, true);
    assert!(sent.is_ok());
    let before = capture(&mut network, 2);
    let key = network.key.clone();
    let is_data = |d: &Vec<u8>| matches!(header_of(d, &key).kind, Kind::Data(_));
    assert!(
        !before.iter().any(is_data),
        "the rest is still read from where it lies"
    );
    for part in &parts[1..] {
        network.arrive(part);
    }
    assert!(capture(&mut network, 2).iter().any(is_data));
}

#[test]
fn numbers_go_on_behind_the_last_one() {
    let weather = Weather { loss: 20, ..CALM };
    let mut network = Network::new(3, Model::Xrc, weather, 15);
    for number in 0..2000 {
        network.send(0, 2, Class::Ordered, number, 1);
    }
    network.settle();
    assert_eq!(numbers(&mut network, 2), (0..2000).collect::<Vec<_>>());
    network.send(0, 2, Class::Ordered, 2000, 1);
    let last = capture(&mut network, 0).remove(0);
    let sequence = header_of(&last, &network.key).sequence;
    assert!(sequence < 2000, "{sequence} comes after the largest number");
}

#[test]
fn a_changed_packet_is_refused_and_changes_nothing() {
    let mut network = Network::new(3, Model::Xrc, CALM, 16);
    network.send(0, 2, Class::Ordered, 1, 100);
    network.settle();
    network.send(0, 2, Class::Ordered, 2, 100);
    let datagram = capture(&mut network, 0).remove(0);
    let before = network.process(2).endpoint.counts();
    let header_bytes = lintel_reliable::WHOLE_BYTES;
    for at in 0..header_bytes {
        for bit in 0..8 {
            let mut changed = datagram.clone();
            changed[at] ^= 1 << bit;
            let beginning = &changed[..changed.len().min(lintel_reliable::MAX_HEADER_BYTES)];
            let refusal = Header::parse(beginning, changed.len(), &network.key);
            assert!(refusal.is_err(), "bit {bit} of byte {at}");
            network.arrive(&changed);
        }
    }
    assert_eq!(network.process(2).endpoint.counts(), before);
    assert_eq!(numbers(&mut network, 2), [1]);
    network.arrive(&datagram);
    assert_eq!(numbers(&mut network, 2), [1, 2]);
}

#[test]
fn another_jobs_packets_are_forged_to_this_one() {
    let mut network = acquainted(17);
    network.send(0, 2, Class::Ordered, 1, 100);
    let datagram = capture(&mut network, 0).remove(0);
    let other = Key::new(&[4; 32]);
    let parsed = Header::parse(&datagram[..128], datagram.len(), &other);
    assert_eq!(parsed.map(|_| ()), Err(Refusal::Forged));
}

#[test]
fn a_packet_for_another_process_is_counted_and_dropped() {
    let mut network = acquainted(18);
    network.send(0, 2, Class::Ordered, 1, 100);
    let datagram = capture(&mut network, 0).remove(0);
    let header = header_of(&datagram, &network.key);
    let now = network.now;
    let verdict = network.process(1).endpoint.on_packet(now, &header, true);
    assert_eq!(verdict, Verdict::Drop);
    assert_eq!(network.process(1).endpoint.counts().misdirected, 1);
    assert_eq!(network.process(1).endpoint.resources().pairs, 0);
}

/// Everything that two processes said to each other, in both ways, sent when both had
/// ended.
fn recorded_conversation(network: &mut Network) -> Vec<Vec<u8>> {
    network.recorded = Some(Vec::new());
    network.send(0, 2, Class::Ordered, 1, 10);
    network.send(0, 2, Class::Reliable, 2, 10);
    network.settle();
    network.send(0, 2, Class::Unreliable, 3, 10);
    network.send(2, 0, Class::Ordered, 4, 3000);
    network.settle();
    network.process(0).endpoint.close();
    network.transmit();
    network.kill(0);
    network.kill(2);
    network.recorded.take().expect("a recorder is set")
}

#[test]
fn a_recorded_conversation_is_nothing_to_a_later_life_of_the_receiver() {
    for lives in [vec![2], vec![0, 2]] {
        let mut network = Network::new(3, Model::Xrc, CALM, 22);
        let recorded = recorded_conversation(&mut network);
        for number in &lives {
            network.start(*number);
        }
        for _ in 0..3 {
            for datagram in &recorded {
                network.arrive(datagram);
                network.transmit();
            }
        }
        for number in &lives {
            assert_eq!(numbers(&mut network, *number), []);
            let held = network.process(*number).endpoint.resources();
            assert_eq!((held.pairs, held.contexts), (0, 0), "nothing is kept of it");
        }
        if lives == [2] {
            continue;
        }
        network.send(0, 2, Class::Ordered, 5, 10);
        network.settle();
        for datagram in &recorded {
            network.arrive(datagram);
        }
        network.send(0, 2, Class::Ordered, 6, 10);
        network.settle();
        assert_eq!(numbers(&mut network, 2), [5, 6]);
        assert_eq!(network.process(2).losses, []);
        assert_eq!(network.process(0).losses, []);
    }
}

#[test]
fn thousands_who_only_introduce_themselves_leave_nothing_behind() {
    let mut network = Network::new(3, Model::Xrc, CALM, 23);
    network.send(0, 2, Class::Ordered, 1, 10);
    let probe = capture(&mut network, 0).remove(0);
    let mut header = header_of(&probe, &network.key);
    let before = network.process(2).endpoint.resources();
    for stranger in 0..5000 {
        header.source.pid = 1000 + stranger;
        let probe = seal(header, &[], &network.key);
        network.arrive(&probe);
    }
    assert_eq!(network.process(2).endpoint.resources(), before);
    let answers = capture(&mut network, 2).len();
    assert!((1..1000).contains(&answers), "{answers} answers");
    assert_eq!(network.process(2).endpoint.counts().stale, 0);
}

#[test]
fn two_who_introduce_themselves_at_once_meet_once() {
    for bits in 0_u64..1 << 8 {
        let mut network = Network::new(3, Model::Xrc, CALM, 24);
        network.lost = (0..8).filter(|packet| bits >> packet & 1 != 0).collect();
        network.send(0, 2, Class::Ordered, 1, 10);
        network.send(2, 0, Class::Ordered, 2, 10);
        network.settle();
        let lost = &network.lost.clone();
        assert_eq!(numbers(&mut network, 2), [1], "without {lost:?}");
        assert_eq!(numbers(&mut network, 0), [2], "without {lost:?}");
        for number in [0, 2] {
            assert_eq!(network.process(number).losses, []);
        }
    }
}

#[test]
fn a_life_whose_clock_was_set_back_reaches_those_who_knew_the_one_before() {
    let mut network = Network::new(3, Model::Xrc, CALM, 25);
    network.send(2, 0, Class::Ordered, 1, 10);
    network.settle();
    network.kill(2);
    network.start_as(2, 5);
    let began = network.now;
    network.send(2, 0, Class::Ordered, 2, 10);
    network.run_until(|network| numbers(network, 0) == [1, 2]);
    assert!(
        network.now.since(began) <= Nanos::from_micros(18),
        "at once"
    );
    network.settle();
    assert_eq!(network.process(2).losses, [], "the first try is enough");
    network.send(0, 2, Class::Ordered, 3, 10);
    network.settle();
    assert_eq!(numbers(&mut network, 2), [3]);
}

#[test]
fn a_life_whose_clock_was_set_back_is_reached_by_those_who_knew_the_one_before() {
    let mut network = Network::new(3, Model::Xrc, CALM, 26);
    network.send(0, 2, Class::Ordered, 1, 10);
    network.settle();
    network.kill(2);
    network.start_as(2, 5);
    let began = network.now;
    network.send(0, 2, Class::Ordered, 2, 10);
    network.run_until(|network| !network.process(0).losses.is_empty());
    assert!(
        network.now.since(began) < Nanos::from_millis(1),
        "no silence"
    );
    network.send(0, 2, Class::Ordered, 3, 10);
    network.settle();
    assert_eq!(numbers(&mut network, 2), [3]);
    assert_eq!(network.process(0).losses.len(), 1);
}

#[test]
fn a_peer_that_was_given_up_is_reached_again_though_its_next_lifes_clock_was_set_back() {
    let mut network = Network::new(3, Model::Xrc, CALM, 27);
    network.send(0, 2, Class::Ordered, 1, 10);
    network.settle();
    network.kill(2);
    network.send(0, 2, Class::Ordered, 2, 10);
    network.run_until(|network| !network.process(0).losses.is_empty());
    network.start_as(2, 5);
    let began = network.now;
    network.send(0, 2, Class::Ordered, 3, 10);
    network.run_until(|network| numbers(network, 2) == [3]);
    assert!(network.now.since(began) < Nanos::from_millis(1), "at once");
    network.settle();
    assert_eq!(network.process(0).losses.len(), 1);
}

#[test]
fn two_lives_behind_the_same_earlier_one_have_incarnations_of_their_own() {
    let mut network = Network::new(3, Model::Xrc, CALM, 28);
    network.send(2, 0, Class::Ordered, 1, 10);
    network.settle();
    let mut seen = Vec::new();
    for incarnation in [5, 6] {
        network.kill(2);
        network.start_as(2, incarnation);
        network.send(2, 0, Class::Ordered, 2, 10);
        for datagram in capture(&mut network, 2) {
            network.arrive(&datagram);
        }
        for datagram in capture(&mut network, 0) {
            network.arrive(&datagram);
        }
        // The network has lost what this life had to say.
        let said = capture(&mut network, 2).remove(0);
        seen.push(header_of(&said, &network.key).incarnation);
    }
    assert!(seen[0] != seen[1], "{seen:?}");
}
