//! Any stream gives lines or an error, whatever its cuts, and a server survives it.

use lintel_pmi::server::Server;
use lintel_pmi::wire::{Lines, MAX_LINE, Message};

/// The lines of a stream that comes in pieces of `cut` bytes.
fn lines(data: &[u8], cut: usize) -> (Vec<String>, bool) {
    let (mut lines, mut found) = (Lines::default(), Vec::new());
    let whole = data.chunks(cut).all(|piece| {
        let each = |line: &str| {
            found.push(line.to_string());
            Ok(())
        };
        lines.on_bytes(piece, each).is_ok()
    });
    (found, whole)
}

pub fn body(data: &[u8]) {
    let (found, whole) = lines(data, data.len().max(1));
    assert_eq!(lines(data, 7), (found.clone(), whole));
    for line in &found {
        assert!(line.len() < MAX_LINE && !line.contains('\n'));
        if let Ok(message) = Message::parse(line) {
            let key = if message.is_multi_line() {
                "mcmd"
            } else {
                "cmd"
            };
            assert_eq!(message.get(key), Some(message.command()));
            let _ = message.number(key);
        }
    }
    let mut server = Server::new(2, "job");
    for (index, piece) in data.chunks(97).enumerate() {
        server.on_bytes(index % 2, piece);
        for rank in 0..2 {
            while server
                .poll_output(rank)
                .is_some_and(|output| !output.is_empty())
            {}
        }
        while server.poll_event().is_some() {}
    }
}
