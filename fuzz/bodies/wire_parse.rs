//! Any words give a message of one protocol or an error, and a message survives its words.

use lintel_wire::{BYTES, MAX_LENGTH, Message, WORDS, portals3};

/// The words that bytes spell.
pub fn words(bytes: &[u8]) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().expect("a chunk has eight bytes"));
    }
    words
}

pub fn body(data: &[u8]) {
    for chunk in data.chunks_exact(BYTES) {
        let words = words(chunk);
        match (Message::parse(&words), portals3::Message::parse(&words)) {
            (Ok(message), Err(_)) => check(message),
            (Err(_), Ok(message)) => check_portals3(message),
            (Err(_), Err(_)) => {}
            (Ok(_), Ok(_)) => panic!("the words are a message of both protocols"),
        }
    }
}

fn check(message: Message) {
    let again = message.to_words();
    assert_eq!(Message::parse(&again), Ok(message));
    assert_eq!(again[0] as u32, 0, "the low half is the carrier's");
    let (length, interface) = match message {
        Message::Request(request) => (request.length, request.interface),
        Message::Response(response) => (response.mlength, response.interface),
        Message::Acknowledgements(all) => (0, all.interface()),
    };
    assert!(length <= MAX_LENGTH && interface.bits() < 4);
}

fn check_portals3(message: portals3::Message) {
    let again = message.to_words();
    assert_eq!(portals3::Message::parse(&again), Ok(message));
    assert_eq!(again[0] as u32, 0, "the low half is the carrier's");
    let (length, interface) = match message {
        portals3::Message::Request(request) => (request.length, request.interface),
        portals3::Message::Response(response) => (response.mlength, response.interface),
    };
    assert!(length <= MAX_LENGTH && interface.bits() < 4);
}
