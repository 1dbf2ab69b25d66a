//! What the textual form says, and what it doesn't allow.
#![forbid(unsafe_code)]

use lintel_collectives::{Algorithm, Collective, Shape};
use lintel_sim_goal::{Goal, Hosts, LogGp, Operation, Order, patterns, run};
use lintel_sim_kernel::{Duration, Streams};

#[test]
fn a_schedule_is_read_as_it_would_be_built() {
    let text = "// by hand
num_ranks 3

rank 0 {
l1: send 8b to 1 tag 3 cpu 1 nic 2
l2:calc 100 cpu 1 /* over
two lines */
l2 irequires l1
}
rank 2 { send 0b to 0
}
rank 1 {
recv 8 b from -1 tag -1
l9: recv 4b from 0
}
";
    let mut goal = Goal::new(3);
    let first = Operation {
        cpu: 1,
        nic: 2,
        ..Operation::send(1, 8).tagged(3)
    };
    let first = goal.add(0, first);
    let second = Operation {
        cpu: 1,
        ..Operation::calc(100)
    };
    let second = goal.add(0, second);
    goal.require(0, second, first, Order::AfterBegin);
    goal.add(2, Operation::send(0, 0));
    let any = Operation {
        tag: None,
        ..Operation::recv_any(8)
    };
    goal.add(1, any);
    goal.add(1, Operation::recv(0, 4));
    assert_eq!(Goal::parse(text), Ok(goal));
}

#[test]
fn a_schedule_is_the_same_when_it_is_written_and_read() {
    let shape = Shape {
        ranks: 7,
        bytes: 24,
    };
    let doubling = Collective::allreduce(shape, Algorithm::RecursiveDoubling).expect("sound");
    for goal in [
        Goal::of_collective(&doubling, 3),
        patterns::halo([3, 2, 2], 100, 5, 2),
    ] {
        assert_eq!(Goal::parse(&goal.to_string()), Ok(goal));
    }
}

#[test]
fn each_error_names_its_line_and_what_may_stand_there() {
    let cases = [
        ("", "line 1: num_ranks N comes first"),
        ("rank 0 {\n}", "line 1: num_ranks N comes first"),
        (
            "num_ranks 0",
            "line 1: num_ranks is 0, it takes 1 to 16777216",
        ),
        (
            "num_ranks x",
            r#"line 1: expected the number of ranks, a number, not "x""#,
        ),
        (
            "num_ranks 2\nranks 0 {",
            r#"line 2: expected num_ranks or rank, not "ranks""#,
        ),
        (
            "num_ranks 2\nrank 2 {\n}",
            "line 2: there is no rank 2: num_ranks is 2, and they count from 0",
        ),
        ("num_ranks 2\nrank 0 {", "line 2: rank 0 ends without its }"),
        (
            "num_ranks 2\nrank 0 {\n}\nrank 0 {\n}",
            "line 4: rank 0 stands a second time",
        ),
        (
            "num_ranks 2\nrank 0 {\nl1 send 8b to 1\n}",
            r#"line 3: expected :, requires or irequires, not "send""#,
        ),
        (
            "num_ranks 2\nrank 0 {\nl1: put 8b to 1\n}",
            r#"line 3: expected send, recv or calc, not "put""#,
        ),
        (
            "num_ranks 2\nrank 0 {\nsend 8 to 1\n}",
            r#"line 3: expected b, not "to""#,
        ),
        (
            "num_ranks 2\nrank 0 {\nsend 8b from 1\n}",
            r#"line 3: expected to, not "from""#,
        ),
        (
            "num_ranks 2\nrank 0 {\nsend 8b to 2\n}",
            "line 3: there is no rank 2: num_ranks is 2, and they count from 0",
        ),
        (
            "num_ranks 2\nrank 0 {\nsend 8b to -1\n}",
            r#"line 3: expected a rank, a number, not "-1""#,
        ),
        (
            "num_ranks 2\nrank 0 {\nsend 8b to 1 tag -1\n}",
            "line 3: a message has a tag of its own; only a recv takes tag -1",
        ),
        (
            "num_ranks 2\nrank 0 {\nsend 8b to 1 nic 0 tag 3\n}",
            r#"line 3: expected the end of the line, not "tag""#,
        ),
        (
            "num_ranks 2\nrank 0 {\ncalc 5 cpu 256\n}",
            "line 3: 256 is more than a cpu can be",
        ),
        (
            "num_ranks 2\nrank 0 {\ncalc 18446744073709551615\n}",
            "line 3: 18446744073709551615 is more than nanoseconds can be, 1000000000000000",
        ),
        (
            "num_ranks 2\nrank 0 {\nsend 1099511627777b to 1\n}",
            "line 3: 1099511627777 is more than bytes can be, 1099511627776",
        ),
        (
            "num_ranks 2\nrank 0 {\ncalc\n}",
            "line 3: expected nanoseconds, a number, not the end of the line",
        ),
        (
            "num_ranks 2\nrank 0 {\nl1: calc 5\nl1 requires l2\n}",
            "line 4: label l2 doesn't stand above in its rank",
        ),
        (
            "num_ranks 2\nrank 0 {\nl1: calc 5\nl1: calc 6\n}",
            "line 4: label l1 stands a second time in its rank",
        ),
        (
            "num_ranks 2\n/* rank 0",
            "line 2: /* begins a comment that never ends",
        ),
    ];
    for (text, expected) in cases {
        let mistake = Goal::parse(text).expect_err(text);
        assert_eq!(mistake.to_string(), expected, "{text}");
    }
}

#[test]
fn operations_that_wait_for_each_other_are_reported() {
    let text = "num_ranks 2\nrank 0 {\n}\nrank 1 {\na: calc 1\nb: calc 1\nc: calc 1\nb requires c\nc requires b\n}";
    let circle = Goal::parse(text)
        .expect("sound")
        .compile()
        .expect_err("a circle");
    assert_eq!((circle.rank, circle.operation), (1, 1));
}

#[test]
fn what_never_meets_is_reported_and_not_taken_for_an_end() {
    let text = "num_ranks 2\nrank 0 {\nsend 8b to 1 tag 4\n}\nrank 1 {\nrecv 8b from 0 tag 5\n}";
    let goal = Goal::parse(text).expect("sound");
    let error = run(&goal, Hosts::FREE, LogGp::new(Duration::ZERO))
        .err()
        .expect("undone");
    assert_eq!(
        error.to_string(),
        "the schedule ends with 1 operations undone and 1 messages unreceived: \
         rank 1 waits for a message from rank 0 with tag 5; \
         rank 1 never receives a message from rank 0 with tag 4"
    );
}

#[test]
fn a_schedule_longer_than_time_is_reported() {
    let mut text = String::from("num_ranks 2\nrank 0 {\n");
    for _ in 0..6 {
        text += "calc 1000000000000000\n";
    }
    for rank in [0, 1] {
        for _ in 0..6 {
            text += match rank {
                0 => "send 1099511627776b to 1\n",
                _ => "recv 1099511627776b from 0\n",
            };
        }
        text += if rank == 0 { "}\nrank 1 {\n" } else { "}" };
    }
    let goal = Goal::parse(&text).expect("sound");
    let slow = LogGp::new(Duration::ZERO).per_byte(Duration::from_us(1_000_000));
    for wire in [LogGp::new(Duration::ZERO), slow] {
        let reported = run(&goal, Hosts::FREE, wire).err().expect("too long");
        assert_eq!(
            reported.to_string(),
            "the schedule takes more than 53 days of simulated time"
        );
    }
}

#[test]
fn any_text_gives_a_schedule_or_a_error_in_one_of_its_lines() {
    const WORDS: [&str; 24] = [
        "num_ranks ",
        "rank ",
        "{",
        "}",
        "\n",
        "\n",
        "l1",
        "l2: ",
        ":",
        "send ",
        "recv ",
        "calc ",
        "8b ",
        "to ",
        "from ",
        "-1 ",
        "tag ",
        "cpu ",
        "nic ",
        "requires ",
        "irequires ",
        "0 ",
        "/*",
        "é",
    ];
    for seed in 0..3_000 {
        println!("seed {seed}");
        let mut stream = Streams::new(seed).stream("text");
        let mut text = String::from(if seed % 2 == 0 {
            ""
        } else {
            "num_ranks 2\nrank 0 {\n"
        });
        for _ in 0..stream.below(40) {
            text.push_str(WORDS[stream.below(WORDS.len() as u64) as usize]);
        }
        match Goal::parse(&text) {
            Ok(goal) => assert_eq!(Goal::parse(&goal.to_string()), Ok(goal)),
            Err(mistake) => assert!((1..=text.lines().count().max(1)).contains(&mistake.line)),
        }
    }
}
