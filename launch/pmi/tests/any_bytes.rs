//! Any bytes, in any cuts: the server never panics, answers in whole lines, and
//! the cuts make no difference; counted messages never panic either.

use lintel_pmi::server::{Event, Server};
use lintel_pmi::wire::Message;
use lintel_pmi::wire2;
use proptest::prelude::*;

/// Bytes that often come close to the protocol.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        3 => prop::sample::select(vec![
            "cmd=init pmi_version=1 pmi_subversion=1", "cmd=get_maxes", "cmd=get_my_kvsname",
            "cmd=get_universe_size", "cmd=get_appnum", "cmd=barrier_in", "cmd=finalize",
            "mcmd=spawn", "totspawns=2", "spawnssofar=1", "endcmd", "cmd=abort exitcode=9", "",
        ]).prop_map(|line| line.as_bytes().to_vec()),
        2 => "cmd=(put|get)( kvsname=(k|x))?( key=[ab=]{0,3})?( value=[ -~]{0,8})?"
            .prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..20),
        1 => (7000usize..9000).prop_map(|count| vec![b'='; count]),
    ];
    prop::collection::vec(line, 0..12).prop_map(|lines| {
        let mut bytes = lines.join(&b'\n');
        bytes.push(b'\n');
        bytes
    })
}

/// A greeting of PMI-2 and messages, the last ones possibly broken.
fn counted_stream() -> impl Strategy<Value = Vec<u8>> {
    let command = prop::sample::select(vec![
        "fullinit",
        "job-getid",
        "kvs-put",
        "kvs-get",
        "kvs-fence",
        "info-getjobattr",
        "info-putnodeattr",
        "info-getnodeattr",
        "finalize",
        "abort",
        "spawn",
        "nonsense",
    ]);
    let message = (command, "[a-c;]{0,3}", "[ -~]{0,6}").prop_map(|(command, key, value)| {
        let message = wire2::Message::new(command)
            .with("key", &key)
            .with("value", &value);
        message.with("wait", "TRUE").encode()
    });
    let messages = prop::collection::vec(message, 0..8);
    (messages, prop::collection::vec(any::<u8>(), 0..20)).prop_map(|(messages, rest)| {
        let greeting = b"cmd=init pmi_version=2 pmi_subversion=0\n";
        [&greeting[..], &messages.concat(), &rest].concat()
    })
}

fn answers(server: &mut Server) -> (Vec<Vec<u8>>, Vec<Event>) {
    let outputs = (0..2)
        .map(|rank| server.poll_output(rank).unwrap_or_default())
        .collect();
    (
        outputs,
        std::iter::from_fn(|| server.poll_event()).collect(),
    )
}

proptest! {
    #[test]
    fn any_line_parses_or_is_refused(line in any::<String>()) {
        if let Ok(message) = Message::parse(&line) {
            message.command();
            message.number("rc");
        }
    }

    #[test]
    fn any_counted_message_parses_or_is_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..60), close in "cmd=[a=;]{0,12}",
    ) {
        let _ = wire2::Message::length(&bytes);
        let _ = wire2::Message::parse(&bytes);
        if let Ok(message) = wire2::Message::parse(close.as_bytes()) {
            let again = message.encode();
            prop_assert_eq!(wire2::Message::parse(&again[wire2::LENGTH_DIGITS..]), Ok(message));
        }
    }

    #[test]
    fn cuts_of_counted_messages_make_no_difference(
        stream in counted_stream(), cut in 1usize..40,
    ) {
        let mut whole = Server::new(2, "k");
        whole.on_bytes(0, &stream);
        let mut pieces = Server::new(2, "k");
        stream.chunks(cut).for_each(|piece| pieces.on_bytes(0, piece));
        prop_assert_eq!(answers(&mut whole), answers(&mut pieces));
    }

    #[test]
    fn cuts_make_no_difference_and_answers_are_lines(
        first in stream(), second in stream(), cut in 1usize..40,
    ) {
        let mut whole = Server::new(2, "k");
        whole.on_bytes(0, &first);
        whole.on_bytes(1, &second);
        let mut pieces = Server::new(2, "k");
        first.chunks(cut).for_each(|piece| pieces.on_bytes(0, piece));
        second.chunks(cut).for_each(|piece| pieces.on_bytes(1, piece));
        let expected = answers(&mut whole);
        prop_assert_eq!(&expected, &answers(&mut pieces));
        for output in &expected.0 {
            let text = std::str::from_utf8(output).unwrap();
            prop_assert!(text.is_empty() || text.ends_with('\n'));
            for line in text.lines() {
                prop_assert!(Message::parse(line).is_ok(), "{}", line);
            }
        }
    }
}
