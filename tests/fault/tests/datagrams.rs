//! What can happen to processes that only datagrams join.

mod only_udp {
    use lintel_fault::job::{Job, PATIENCE, Worker};
    use lintel_fault::random::Random;
    use std::net::{Ipv4Addr, UdpSocket};
    use std::time::{Duration, Instant};

    fn job() -> Job {
        Job::over(env!("CARGO_BIN_EXE_fault-worker"), "udp")
    }

    /// A worker that takes a peer for dead after a second.
    fn start(job: &Job, number: &str) -> Worker {
        let mut command = job.command(&["script", number]);
        command.env("PTL_PEER_TIMEOUT", "1000");
        let mut worker = Worker::start(command);
        worker.expect("ready");
        worker
    }

    /// Until an operation succeeds.
    fn until_ok(worker: &mut Worker, words: &str) {
        let until = Instant::now() + PATIENCE;
        loop {
            worker.send(words);
            match worker.line().as_str() {
                "Ok" => return,
                other => assert!(Instant::now() < until, "{words}: still {other}"),
            }
        }
    }

    fn end(workers: [Worker; 2]) {
        for mut worker in workers {
            worker.send("quit");
            worker.expect("bye");
            worker.succeed();
        }
    }

    /// As those of a virtual machine that is copied: each finds that the other has been silent for long.
    #[test]
    fn processes_that_are_stopped_together_go_on_together() {
        let job = job();
        let (mut one, mut two) = (start(&job, "11"), start(&job, "12"));
        until_ok(&mut one, "put 12 0 8");
        two.stop();
        one.send("put 12 0 100000");
        // It has sent, and not yet given up.
        std::thread::sleep(Duration::from_millis(200));
        one.stop();
        std::thread::sleep(Duration::from_millis(2500));
        one.resume();
        // It looks at its timers before the other one can answer.
        std::thread::sleep(Duration::from_millis(100));
        two.resume();
        one.expect("Ok");
        two.send("received 0 100000");
        two.expect("right");
        end([one, two]);
    }

    #[test]
    fn a_peer_that_falls_silent_is_dead_and_reached_again_when_it_goes_on() {
        let job = job();
        let (mut one, mut two) = (start(&job, "11"), start(&job, "12"));
        for words in [
            "put 12 0 8",
            "put 12 0 100000",
            "get 12 0 8",
            "get 12 0 3000000",
        ] {
            until_ok(&mut one, words);
            two.stop();
            one.send(words);
            one.expect("Undeliverable");
            two.resume();
            until_ok(&mut one, words);
            until_ok(&mut two, "put 11 0 100000");
        }
        two.send("received 0 100000");
        two.expect("right");
        end([one, two]);
    }

    #[test]
    fn a_peer_killed_in_mid_stream_is_reported_and_its_successor_reached() {
        let mut random = Random::from_env();
        let job = job();
        let (mut one, mut two) = (start(&job, "11"), start(&job, "12"));
        for round in 0..24 {
            let words = ["put 12 0 4000000", "get 12 0 4000000"][round % 2];
            one.send(words);
            // The moment is the point.
            std::thread::sleep(Duration::from_micros(random.below(8000)));
            two.kill();
            let reported = one.line();
            assert!(
                ["Ok", "Undeliverable"].contains(&reported.as_str()),
                "{reported}"
            );
            two = start(&job, "12");
            until_ok(&mut one, words);
            until_ok(&mut two, "get 11 0 100000");
        }
        two.send("received 0 4000000");
        two.line();
        end([one, two]);
        assert_eq!(job.shared_memory_names(), Vec::<String>::new());
    }

    #[test]
    fn an_initiator_killed_in_mid_stream_leaves_its_target_working() {
        let mut random = Random::from_env();
        let job = job();
        let mut target = start(&job, "12");
        for round in 0..24 {
            let mut one = start(&job, "11");
            one.send(["put 12 0 4000000", "get 12 0 4000000"][round % 2]);
            std::thread::sleep(Duration::from_micros(random.below(8000)));
            one.kill();
            let mut next = start(&job, "11");
            until_ok(&mut next, "put 12 0 100000");
            target.send("received 0 100000");
            target.expect("right");
            until_ok(&mut target, "put 11 0 100000");
        }
    }

    #[test]
    fn strangers_datagrams_change_nothing() {
        let mut random = Random::from_env();
        let job = job();
        let (mut one, mut two) = (start(&job, "11"), start(&job, "12"));
        let process = job.places().process(12);
        let port = u16::try_from(process.pid).expect("a pid is a port");
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("ports are free");
        for round in 0..200 {
            for _ in 0..50 {
                let words = random.below(200) as usize;
                let mut datagram: Vec<u8> = (0..words)
                    .flat_map(|_| random.number().to_le_bytes())
                    .collect();
                if let Some(version) = datagram.first_mut() {
                    *version = 1;
                }
                // What finds no room is dropped, as it may be.
                let _ = socket.send_to(&datagram, (Ipv4Addr::from(process.nid), port));
            }
            one.send(["put 12 0 8000", "get 12 0 100000"][round % 2]);
            one.expect("Ok");
        }
        two.send("received 0 8000");
        two.expect("right");
        assert_eq!(two.stderr(), "");
        end([one, two]);
    }
}
