//! Remote memory access: data, checks, order.

use crate::rig::{BOTH, Reported, Rig, event, request};
use lintel_cci::{Access, Attribute, ConnectionId, Direction, Status};

const NONE: Access = Access {
    read: false,
    write: false,
};

/// Registration 1 of member 0 and 2 of member 1, with their contents.
fn rig(access: Access) -> (Rig, ConnectionId, ConnectionId) {
    let (mut rig, a, b) = Rig::connected(Attribute::Ro);
    rig.register(0, 1, &[1; 16], BOTH);
    rig.register(1, 2, &[2; 16], access);
    (rig, a, b)
}

#[test]
fn a_write_is_in_place_when_it_completes() {
    let (mut rig, a, _) = rig(BOTH);
    let mut write = request(Direction::Write, 4);
    write.remote_offset = 3;
    rig.rma(0, a, write, None).expect("it is valid");
    assert_eq!(rig.reported(0), None);
    rig.run();
    assert_eq!(rig.ended(0), [(9, Status::Success)]);
    assert_eq!(rig.members[1].memory[&2][..8], [2, 2, 2, 1, 1, 1, 1, 2]);
}

#[test]
fn a_read_is_in_place_when_it_completes_however_the_bytes_travel() {
    for fills in [true, false] {
        let (mut rig, a, _) = rig(BOTH);
        rig.fills = fills;
        rig.rma(0, a, request(Direction::Read, 4), None)
            .expect("it is valid");
        rig.run();
        assert_eq!(rig.ended(0), [(9, Status::Success)]);
        assert_eq!(rig.members[0].memory[&1][..6], [2, 2, 2, 2, 1, 1]);
    }
}

#[test]
fn access_flags_are_checked_and_a_registration_without_any_allows_both() {
    let (read, write) = (Direction::Read, Direction::Write);
    let only_read = Access {
        read: true,
        write: false,
    };
    let only_write = Access {
        read: false,
        write: true,
    };
    for (access, direction, status) in [
        (only_read, read, Status::Success),
        (only_read, write, Status::RmaOperation),
        (only_write, read, Status::RmaOperation),
        (only_write, write, Status::Success),
        (NONE, read, Status::Success),
        (NONE, write, Status::Success),
    ] {
        let (mut rig, a, _) = rig(access);
        rig.rma(0, a, request(direction, 4), None)
            .expect("it is valid");
        rig.run();
        assert_eq!(rig.ended(0), [(9, status)]);
    }
}

#[test]
fn access_beyond_the_end_wrapping_deregistered_or_garbage_fails_without_effect() {
    for direction in [Direction::Read, Direction::Write] {
        for (key, offset) in [(2, 13), (2, u64::MAX - 1), (3, 0), (77, 0)] {
            let (mut rig, a, _) = rig(BOTH);
            rig.register(1, 3, &[3; 16], BOTH);
            assert!(rig.members[1].core.deregister(3));
            let mut access = request(direction, 4);
            (access.remote_key, access.remote_offset) = (key, offset);
            rig.rma(0, a, access, None).expect("only the peer knows");
            rig.run();
            assert_eq!(rig.ended(0), [(9, Status::RmaHandle)]);
            assert_eq!(rig.members[0].memory[&1], [1; 16]);
            assert_eq!(rig.members[1].memory[&2], [2; 16]);
        }
    }
}

#[test]
fn wrong_arguments_are_invalid() {
    let (mut rig, a, _) = rig(BOTH);
    let good = request(Direction::Write, 4);
    let mut foreign = good;
    foreign.local.key = 2;
    for wrong in [request(Direction::Write, 0), foreign] {
        assert_eq!(rig.rma(0, a, wrong, None), Err(Status::Invalid));
    }
    let (unreliable, _) = rig.join(0, 1, Attribute::Uu);
    assert_eq!(rig.rma(0, unreliable, good, None), Err(Status::Invalid));
}

#[test]
fn the_message_of_an_access_comes_between_the_sends_around_it_with_the_data_in_place() {
    for direction in [Direction::Read, Direction::Write] {
        let (mut rig, a, b) = rig(BOTH);
        rig.send(0, a, b"first", event(1)).expect("it is open");
        rig.rma(0, a, request(direction, 16), Some(b"second"))
            .expect("it is valid");
        rig.send(0, a, b"third", event(3)).expect("it is open");
        let mut received = Vec::new();
        while rig.step() {
            while let Some(Reported::Received(id, bytes)) = rig.reported(1) {
                assert_eq!(id, b);
                if bytes == b"second" {
                    let same = rig.members[1].memory[&2] == rig.members[0].memory[&1];
                    assert!(same, "the data are in place");
                }
                received.push(bytes);
            }
        }
        assert_eq!(received, [&b"first"[..], b"second", b"third"]);
        let ended: Vec<u64> = rig.ended(0).iter().map(|(context, _)| *context).collect();
        assert_eq!(ended, [1, 9, 3]);
    }
}

#[test]
fn an_access_beyond_the_local_end_fails_in_its_turn() {
    let (mut rig, a, b) = rig(BOTH);
    rig.send(0, a, b"first", event(1)).expect("it is open");
    for offset in [13, u64::MAX] {
        let mut beyond = request(Direction::Read, 4);
        beyond.local.offset = offset;
        rig.rma(0, a, beyond, Some(b"never"))
            .expect("it is registered");
    }
    rig.send(0, a, b"last", event(3)).expect("it is open");
    rig.run();
    let failed = (9, Status::RmaHandle);
    let success = |context| (context, Status::Success);
    assert_eq!(rig.ended(0), [success(1), failed, failed, success(3)]);
    assert_eq!(
        rig.reported(1),
        Some(Reported::Received(b, b"first".to_vec()))
    );
    assert_eq!(
        rig.reported(1),
        Some(Reported::Received(b, b"last".to_vec()))
    );
}

#[test]
fn the_message_of_an_access_that_failed_is_not_delivered() {
    let (mut rig, a, b) = rig(BOTH);
    let mut garbage = request(Direction::Write, 4);
    garbage.remote_key = 77;
    rig.rma(0, a, garbage, Some(b"never")).expect("valid here");
    rig.send(0, a, b"next", event(3)).expect("it is open");
    rig.run();
    assert_eq!(rig.ended(0), [(9, Status::RmaHandle), (3, Status::Success)]);
    assert_eq!(
        rig.reported(1),
        Some(Reported::Received(b, b"next".to_vec()))
    );
}

#[test]
fn a_fenced_access_begins_after_earlier_ones_have_ended() {
    let (mut rig, a, _) = rig(BOTH);
    rig.fills = false;
    rig.rma(0, a, request(Direction::Read, 16), None)
        .expect("it is valid");
    let mut fenced = request(Direction::Write, 16);
    fenced.fence = true;
    // What is written back is what was read.
    rig.rma(0, a, fenced, None).expect("it is valid");
    rig.run();
    assert_eq!(rig.members[1].memory[&2], [2; 16]);
    assert_eq!(rig.ended(0).len(), 2);
}

#[test]
fn data_of_a_read_into_memory_that_was_deregistered_meanwhile_go_nowhere() {
    let (mut rig, a, _) = rig(BOTH);
    rig.fills = false;
    rig.rma(0, a, request(Direction::Read, 4), None)
        .expect("it is valid");
    rig.step();
    assert!(rig.members[0].core.deregister(1));
    rig.run();
    assert_eq!(rig.ended(0), [(9, Status::RmaHandle)]);
    assert_eq!(rig.members[0].memory[&1], [1; 16]);
}

#[test]
fn the_answer_to_an_access_acknowledges_it() {
    let (mut rig, a, _) = rig(BOTH);
    rig.rma(0, a, request(Direction::Write, 4), None)
        .expect("it is valid");
    assert_eq!(rig.step_of_batch(), Some(1));
    rig.finish(1);
    assert_eq!(rig.flying(), 1, "the answer alone");
    rig.run();
    assert_eq!(rig.ended(0), [(9, Status::Success)]);
}
