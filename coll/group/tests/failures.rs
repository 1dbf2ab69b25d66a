//! What a caller, a peer or the Portals library can do wrong, and what each rank is
//! reported then.

mod rig;

use lintel_group::Portals as _;
use lintel_group::{
    Algorithm, CREATE_TIMEOUT, Call, Combine, Datatype, Error, Group, Operation, PortalsError,
    Progress, Reduction, Request, Separate, Spec, Tree,
};
use rig::{Library, Network, job, nothing, on_threads, process, processes};
use std::time::Duration;

/// Match bits of probes, and of hellos in their first round.
const PROBE: u64 = 1 << 32;
const HELLO: u64 = 2 << 32;

const PROGRESS: [Progress; 2] = [Progress::Offloaded, Progress::Host];

fn refusal(network_ranks: usize, rank: usize, spec: Spec) -> String {
    match Network::new(network_ranks).group_of(rank, spec) {
        Err(Error::InvalidArgument(what)) => what,
        Err(error) => panic!("refused for another reason: {error}"),
        Ok(_) => panic!("the group was created"),
    }
}

fn spec(ranks: usize, rank: u32) -> Spec {
    Spec {
        processes: processes(ranks),
        rank,
        progress: Progress::Offloaded,
        create_timeout: CREATE_TIMEOUT,
    }
}

fn barrier(group: &mut Group<Library>) -> lintel_group::Result<()> {
    group.run(Call::Barrier, None, &mut nothing())
}

#[test]
fn a_rank_beyond_the_list_of_processes_is_refused() {
    let text = refusal(2, 0, spec(2, 2));
    assert!(
        text.contains("rank is 2") && text.contains("0 to 1"),
        "{text}"
    );
}

#[test]
fn a_rank_that_is_another_process_is_refused() {
    let text = refusal(2, 0, spec(2, 1));
    assert!(
        text.contains("rank 1") && text.contains("another process"),
        "{text}"
    );
}

#[test]
fn a_process_that_is_listed_twice_is_refused() {
    let mut twice = spec(2, 0);
    twice.processes.push(twice.processes[1]);
    let text = refusal(2, 0, twice);
    assert!(text.contains("more than once"), "{text}");
}

#[test]
fn an_operation_that_cannot_be_is_refused_and_the_group_goes_on() {
    job(2, Progress::Offloaded, |_, mut group| {
        let combine = Combine {
            operation: Operation::Band,
            datatype: Datatype::Double,
        };
        let narrow = Some(Algorithm::Tree(Tree::KAry(0)));
        let undefined = Call::Allreduce(Reduction { combine, count: 1 });
        let cases = [
            (undefined, None, "isn't defined"),
            (Call::Broadcast { root: 2, bytes: 1 }, None, "root is 2"),
            (Call::Barrier, Some(Algorithm::Halving), "something else"),
            (Call::Barrier, narrow, "1 child or more"),
        ];
        for (call, algorithm, part) in cases {
            let refused = group.run(call, algorithm, &mut nothing()).unwrap_err();
            assert!(
                matches!(&refused, Error::InvalidArgument(what) if what.contains(part)),
                "{refused}"
            );
        }
        group.free().unwrap();
    });
}

#[test]
fn a_buffer_that_is_too_short_is_refused_with_both_lengths() {
    job(2, Progress::Offloaded, |_, mut group| {
        let mut output = [0; 15];
        let mut buffers = Separate {
            input: &[0; 8],
            output: &mut output,
        };
        let call = Call::Gather { root: 0, bytes: 8 };
        let done = group.run(call, None, &mut buffers);
        if group.rank() == 0 {
            let text = done.unwrap_err().to_string();
            assert!(text.contains("gets 16") && text.contains("15"), "{text}");
            // Rank 1 has begun: rank 0 follows with a buffer that is long enough.
            rig::run(&mut group, call, &[0; 8]);
        } else {
            done.unwrap();
        }
        group.free().unwrap();
    });
}

#[test]
fn a_request_that_has_completed_is_unknown() {
    job(2, Progress::Offloaded, |_, mut group| {
        let request = group.begin(Call::Barrier, None, &mut nothing()).unwrap();
        group.wait(request, &mut nothing()).unwrap();
        let unknown = [
            group.wait(request, &mut nothing()),
            group.test(Request(99), &mut nothing()).map(drop),
            group.request_lengths(request).map(drop),
        ];
        unknown
            .iter()
            .for_each(|done| assert_eq!(*done, Err(Error::InvalidRequest)));
        group.free().unwrap();
    });
}

#[test]
fn a_failed_process_is_reported_by_rank_and_revokes_the_group() {
    for progress in PROGRESS {
        job(3, progress, |network, mut group| {
            barrier(&mut group).unwrap();
            if group.rank() == 2 {
                network.kill(2);
                return;
            }
            assert_eq!(barrier(&mut group), Err(Error::ProcFailed { rank: 2 }));
            assert_eq!(group.failed_rank(), Some(2));
            assert_eq!(barrier(&mut group), Err(Error::Revoked));
            assert_eq!(
                group.test(Request(0), &mut nothing()),
                Err(Error::InvalidRequest)
            );
            // Doesn't wait for anyone.
            group.free().unwrap();
        });
    }
}

#[test]
fn a_request_finds_a_failed_process_when_it_is_tested() {
    job(2, Progress::Offloaded, |network, mut group| {
        barrier(&mut group).unwrap();
        if group.rank() == 1 {
            network.kill(1);
            return;
        }
        let request = group.begin(Call::Barrier, None, &mut nothing()).unwrap();
        let failed = loop {
            match group.test(request, &mut nothing()) {
                Ok(is_done) => assert!(!is_done),
                Err(error) => break error,
            }
            std::thread::yield_now();
        };
        assert_eq!(failed, Error::ProcFailed { rank: 1 });
    });
}

#[test]
fn a_group_with_a_process_that_has_failed_is_not_created() {
    let network = Network::new(3);
    network.kill(1);
    let created = on_threads(3, |rank| {
        let created = match rank {
            1 => Ok(()),
            _ => network.group(rank, Progress::Offloaded).map(drop),
        };
        // The ranks that give up live on.
        created
    });
    assert_eq!(created[0], Err(Error::ProcFailed { rank: 1 }));
    assert!(matches!(
        created[2],
        Err(Error::ProcFailed { rank: 1 } | Error::NotCreated { rank: 0 })
    ));
    assert_eq!(network.resources(0) + network.resources(2), 0);
}

#[test]
fn a_rank_that_gives_up_creating_the_group_ends_the_wait_of_the_others() {
    let network = Network::new(2);
    let created = on_threads(2, |rank| match rank {
        0 => network.group(0, Progress::Offloaded).map(drop),
        _ => {
            // It has begun to create the group, and gives up before its entries for
            // hellos exist.
            let entry = network.library(1).entry(PROBE, (0, 0), None).unwrap();
            network.wait_until_accepted(1, PROBE);
            drop(entry);
            Ok(())
        }
    });
    assert_eq!(created[0], Err(Error::NotCreated { rank: 1 }));
    assert_eq!(network.resources(0), 0);
}

#[test]
fn a_rank_that_has_used_and_freed_the_group_has_not_given_up_creating_it() {
    let network = Network::new(3);
    let created = on_threads(3, |rank| match rank {
        0 => network.group(0, Progress::Offloaded).map(drop),
        1 => {
            // It is so quick that it has left before rank 0 has heard of rank 2.
            let library = network.library(1);
            let probed = library.entry(PROBE, (0, 0), None).unwrap();
            let _hello = library.entry(HELLO, (0, 0), None).unwrap();
            network.wait_until_accepted(1, PROBE);
            drop(probed);
            network.wait_until_probed(1, 4);
            network.wait_until_accepted(0, HELLO + 1);
            Ok(())
        }
        _ => {
            let library = network.library(2);
            let _entries = [PROBE, HELLO, HELLO + 1].map(|bits| library.entry(bits, (0, 0), None));
            network.wait_until_probed(1, 4);
            library.probe(process(0), HELLO, 0).unwrap();
            library.probe(process(0), HELLO + 1, 0).unwrap();
            network.wait_until_accepted(2, HELLO + 1);
            Ok(())
        }
    });
    assert_eq!(created[0], Ok(()));
}

#[test]
fn a_rank_that_never_creates_the_group_is_awaited_for_a_limited_time() {
    let network = Network::new(3);
    // Each sends its first hello to the next one.
    for rank in [0, 1] {
        let spec = Spec {
            create_timeout: Duration::from_millis(50),
            ..spec(3, rank)
        };
        let created = network.group_of(rank as usize, spec).map(drop);
        let awaited = rank + 1;
        assert_eq!(created, Err(Error::NotCreated { rank: awaited }));
    }
}

#[test]
fn a_rank_that_accepts_a_hello_but_sends_none_is_awaited_for_a_limited_time() {
    let network = Network::new(2);
    let _entry = network.library(1).entry(HELLO, (0, 0), None).unwrap();
    let spec = Spec {
        create_timeout: Duration::from_millis(50),
        ..spec(2, 0)
    };
    let created = network.group_of(0, spec).map(drop);
    assert_eq!(created, Err(Error::NotCreated { rank: 1 }));
}

#[test]
fn a_message_that_fails_revokes_the_group() {
    job(2, Progress::Offloaded, |network, mut group| {
        barrier(&mut group).unwrap();
        network.fail_a_message(group.rank() as usize);
        assert_eq!(barrier(&mut group), Err(Error::MessageFailed));
        assert_eq!(group.failed_rank(), None);
        assert_eq!(barrier(&mut group), Err(Error::Revoked));
        group.free().unwrap();
    });
}

#[test]
fn a_limit_of_the_interface_is_passed_on() {
    let network = Network::new(1);
    network.limit_counters(0, 5);
    let created = network.group(0, Progress::Offloaded).map(drop);
    assert_eq!(created, Err(Error::Portals(PortalsError::NoSpace)));
    assert_eq!(network.resources(0), 0);
}

#[test]
fn each_error_says_what_to_do() {
    let texts = [
        (Error::ProcFailed { rank: 3 }, "rank 3"),
        (Error::NotCreated { rank: 5 }, "rank 5 has given up"),
        (Error::MessageFailed, "free the group"),
        (Error::Revoked, "free"),
        (Error::InvalidRequest, "request"),
        (Error::InvalidArgument("as is".into()), "as is"),
        (Error::Environment("as is".into()), "as is"),
        (Error::Portals(PortalsError::NoSpace), "Portals: "),
    ];
    for (error, part) in texts {
        assert!(error.to_string().contains(part), "{error}");
    }
}
