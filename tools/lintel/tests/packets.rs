//! Captured messages and datagrams as tshark shows them with the project's dissector.
#![forbid(unsafe_code)]

mod rig;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use lintel_claim::Region;
use lintel_nal::pcapng::Writer;
use lintel_nal::{Capture, Loopback, Nal, Outgoing};
use lintel_reliable::{Class, Fragment, Header, Key, Kind, MAX_HEADER_BYTES};
use lintel_types::{
    AckRequest, Datatype, InterfaceNumber, List, NiFail, Operation, PortalIndex, ProcessId,
};
use lintel_wire::{Acknowledgements, Message, Request, Response, Verb, Words, portals3};
use rig::{LOOK_AGAIN, PATIENCE};

const ONE: ProcessId = ProcessId::new(0x7f00_0001, 3498);
const TWO: ProcessId = ProcessId::new(0x7f00_0002, 3499);

/// The fields of each packet of a file; nothing, with a message, if there is no tshark.
fn dissected(file: &Path, fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/wireshark/lintel.lua");
    let mut tshark = Command::new("tshark");
    tshark.args(["-X", &format!("lua_script:{script}"), "-r"]);
    tshark.arg(file).args(["-T", "fields", "-E", "separator=|"]);
    tshark.args(fields.iter().flat_map(|field| ["-e", field]));
    // The user's folders may have a dissector of another version.
    let home = tempfile::tempdir().expect("a folder can be made");
    tshark
        .env("HOME", home.path())
        .env_remove("XDG_CONFIG_HOME");
    let Ok(output) = tshark.output() else {
        eprintln!("skipped: tshark isn't installed (apt-get install tshark)");
        return None;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("Lua"), "{said}");
    let text = String::from_utf8(output.stdout).expect("text");
    let row = |line: &str| line.split('|').map(String::from).collect();
    Some(text.lines().map(row).collect())
}

/// The words of messages, captured on their way from a process to itself.
fn capture(messages: &[Words]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("messages.pcapng");
    let file = File::create(&path).expect("it can be made");
    let packets = Writer::new(file, "test", "loopback", 1 << 20).expect("it can be written");
    let warn = |words: &str| panic!("{words}");
    let mut nal = Capture::new(Loopback::new(ONE, 5), (ONE, 5), packets, warn);
    let body = Region::new(8);
    let pieces = [body.claim()];
    for words in messages {
        let body = Outgoing::Copied {
            operand: None,
            pieces: &pieces,
        };
        nal.send(ONE, words, body).expect("it reaches itself");
    }
    (folder, path)
}

fn request(verb: Verb) -> Request {
    Request {
        verb,
        interface: InterfaceNumber::new(true, true),
        ack: AckRequest::Counting,
        referenced: true,
        portal: PortalIndex::from(5_u16),
        token: 0x10000,
        rank: 7,
        length: 65536,
        operation: Operation::default(),
        datatype: Datatype::default(),
        match_bits: 0xabcd_0000,
        remote_offset: 64,
        hdr_data: 0x42,
    }
}

fn response(fail: NiFail) -> Response {
    Response {
        reply: false,
        interface: InterfaceNumber::new(false, false),
        placed: true,
        silent: false,
        token: 0x10000,
        mlength: 12,
        offset: 34,
        list: List::Overflow,
        fail,
    }
}

/// As the specification writes a name that Rust writes otherwise: `CswapNe`, `CSWAP_NE`.
fn specified(name: &str) -> String {
    let mut specified = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !specified.is_empty() {
            specified.push('_');
        }
        specified.extend(letter.to_uppercase());
    }
    specified
}

#[test]
fn each_field_of_a_request_and_of_a_response_is_shown() {
    let put = request(Verb::Put).to_words();
    let (_folder, file) = capture(&[put, response(NiFail::PtDisabled).to_words()]);
    let fields = [
        "_ws.col.Info",
        "lintel.src.nid",
        "lintel.dst.pid",
        "lintel.uid",
        "lintel.body.length",
        "portals.interface",
        "portals.ack_req",
        "portals.rendezvous",
        "portals.pt_index",
        "portals.token",
        "portals.rank",
        "portals.length",
        "portals.mlength",
        "portals.match_bits",
        "portals.remote_offset",
        "portals.hdr_data",
        "portals.ptl_list",
    ];
    let Some(rows) = dissected(&file, &fields) else {
        return;
    };
    let put = "sent: PUT pt 5 bits 0xabcd0000 65536 B rendezvous|127.0.0.1|3498|5|8|3|2|1|5|\
               0x00010000|7|65536||0x00000000abcd0000|64|0x0000000000000042|";
    let ack = "sent: ACK 12 B failed: PT_DISABLED|127.0.0.1|3498|5|8|0||||0x00010000|||12||34||1";
    assert_eq!(
        rows.iter().map(|row| row.join("|")).collect::<Vec<_>>(),
        [put, ack]
    );
}

#[test]
fn each_message_of_portals_3_is_shown_as_one() {
    let request = |verb| portals3::Request {
        verb,
        interface: InterfaceNumber::from_bits(1),
        ack: true,
        referenced: false,
        portal: PortalIndex::from(4_u16),
        access: 3,
        token: 2,
        jid: 9,
        length: 11,
        match_bits: 1,
        remote_offset: 0,
        hdr_data: 0,
    };
    let (get, both) = (
        request(portals3::Verb::Get),
        request(portals3::Verb::GetPut),
    );
    let reply = portals3::Response {
        reply: true,
        interface: InterfaceNumber::from_bits(1),
        placed: false,
        silent: false,
        token: 2,
        mlength: 11,
        offset: 0,
        fail: NiFail::Ok,
    };
    let (_folder, file) = capture(&[get.to_words(), both.to_words(), reply.to_words()]);
    let fields = [
        "portals.protocol",
        "portals.verb",
        "portals.jid",
        "portals.ac_index",
    ];
    if let Some(rows) = dissected(&file, &fields) {
        let rows: Vec<String> = rows.iter().map(|row| row.join(" ")).collect();
        let expected = [
            "Portals 3.3 GET 9 3",
            "Portals 3.3 GETPUT 9 3",
            "Portals 3.3 REPLY  ",
        ];
        assert_eq!(rows, expected);
    }
}

#[test]
fn the_dissector_has_the_names_of_all_verbs_operations_datatypes_and_failures() {
    let mut messages = Vec::new();
    let mut expected = Vec::new();
    let verbs = [Verb::Get, Verb::Atomic, Verb::FetchAtomic, Verb::Swap];
    for (verb, name) in verbs
        .into_iter()
        .zip(["GET", "ATOMIC", "FETCH-ATOMIC", "SWAP"])
    {
        messages.push(Message::Request(request(verb)));
        let detail = if verb == Verb::Get { "" } else { " MIN INT8_T" };
        expected.push(format!(
            "sent: {name} pt 5 bits 0xabcd0000 65536 B{detail} rendezvous"
        ));
    }
    for operation in (0..=u8::MAX).map_while(|bits| Operation::try_from(bits).ok()) {
        let atomic = Request {
            operation,
            ..request(Verb::Atomic)
        };
        messages.push(Message::Request(atomic));
        let name = match operation {
            Operation::CswapEq => "CSWAP".into(),
            other => specified(&format!("{other:?}")),
        };
        expected.push(format!(
            "sent: ATOMIC pt 5 bits 0xabcd0000 65536 B {name} INT8_T rendezvous"
        ));
    }
    for datatype in (0..=u8::MAX).map_while(|bits| Datatype::try_from(bits).ok()) {
        let atomic = Request {
            datatype,
            ..request(Verb::Atomic)
        };
        messages.push(Message::Request(atomic));
        let name = format!("{datatype:?}");
        let is_integer = name.to_lowercase().contains("int");
        let name = specified(&name) + if is_integer { "_T" } else { "" };
        expected.push(format!(
            "sent: ATOMIC pt 5 bits 0xabcd0000 65536 B MIN {name} rendezvous"
        ));
    }
    for bits in 1..=NiFail::Segv as u8 {
        let fail = NiFail::from_bits(bits);
        messages.push(Message::Response(response(fail)));
        let name = specified(&format!("{fail:?}"));
        expected.push(format!("sent: ACK 12 B failed: {name}"));
    }
    let mut acknowledged = Acknowledgements::new(InterfaceNumber::default());
    (0..3).for_each(|at| acknowledged.push(at as u32 + 1, at));
    messages.push(Message::Acknowledgements(acknowledged));
    expected.push("sent: ACKS of 3 puts".to_owned());
    let words: Vec<Words> = messages.iter().map(Message::to_words).collect();
    let (_folder, file) = capture(&words);
    if let Some(rows) = dissected(&file, &["_ws.col.Info"]) {
        assert_eq!(rows.concat(), expected);
    }
}

fn datagram(kind: Kind, payload: &[u8]) -> Vec<u8> {
    datagram_with_gap(kind, 0, payload)
}

/// A datagram of a process that has received the packets behind a missing one that the bits name.
fn datagram_with_gap(kind: Kind, selective: u64, payload: &[u8]) -> Vec<u8> {
    let header = Header {
        kind,
        ack_requested: true,
        uid: 1000,
        source: ONE,
        destination: TWO,
        recv_window: 65536,
        incarnation: 7,
        peer_incarnation: 9,
        sequence: 21,
        acknowledged: 22,
        selective,
    };
    let mut bytes = [0; MAX_HEADER_BYTES];
    let length = header.seal(&Key::new(&[3; 32]), &mut bytes);
    [&bytes[..length], payload].concat()
}

/// The first (or only) part of a put, or a further one.
fn part(words: Option<Words>, last: bool, offset: u64, total: u64) -> Kind {
    Kind::Data(Fragment {
        class: Class::Ordered,
        words,
        last,
        total,
        offset,
        length: 8,
        checksum: None,
        is_void: false,
    })
}

/// A file of UDP packets over IPv4: the classic format, link type 101 (raw IP).
fn wire(datagrams: &[Vec<u8>]) -> (tempfile::TempDir, PathBuf) {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65535, 101] {
        file.extend(word.to_le_bytes());
    }
    for datagram in datagrams {
        let udp = 8 + datagram.len() as u16;
        let mut packet = vec![0x45, 0];
        packet.extend((20 + udp).to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 17, 0, 0]);
        for word in [ONE.nid, TWO.nid] {
            packet.extend(word.to_be_bytes());
        }
        for half in [ONE.pid as u16, TWO.pid as u16, udp, 0] {
            packet.extend(half.to_be_bytes());
        }
        packet.extend(datagram);
        let length = packet.len() as u32;
        for word in [0, 0, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("wire.pcap");
    std::fs::write(&path, file).expect("it can be written");
    (folder, path)
}

#[test]
fn datagrams_on_the_wire_are_recognized_and_their_messages_shown() {
    let words = Some(request(Verb::Put).to_words());
    let whole = datagram(part(words, true, 0, 8), b"payload.");
    let (_folder, file) = wire(&[
        whole.clone(),
        [whole.clone(), whole].concat(),
        datagram(part(words, false, 0, 16), b"payload."),
        datagram(part(None, true, 8, 16), b"payload."),
        datagram(Kind::Ack, b""),
        datagram(Kind::Probe, b""),
        datagram(Kind::Close, b""),
        datagram(Kind::Reset { latest: 77 }, b""),
        datagram_with_gap(Kind::Ack, 5, b""),
        datagram_with_gap(part(words, true, 0, 8), 5, b"payload."),
        b"another program's words, as long as a header of ours: sixty-four bytes, and more"
            .to_vec(),
    ]);
    let fields = [
        "_ws.col.Protocol",
        "_ws.col.Info",
        "lintel_udp.sequence",
        "lintel_udp.selective",
        "lintel_udp.latest",
    ];
    let Some(rows) = dissected(&file, &fields) else {
        return;
    };
    let put = "PUT pt 5 bits 0xabcd0000 65536 B rendezvous [21]";
    let rows: Vec<String> = rows.iter().map(|row| row.join("|")).collect();
    let ours = |info: &str, sequence: &str| format!("Lintel UDP|{info}|{sequence}||");
    let expected = [
        ours(put, "21"),
        ours(&format!("{put}; {put}"), "21,21"),
        ours(put, "21"),
        ours("data, part at 8 [21]", "21"),
        ours("acknowledgement [22]", "21"),
        ours("probe", "21"),
        ours("close", "21"),
        ours("reset", "21") + "0x000000000000004d",
        "Lintel UDP|acknowledgement [22]|21|0x0000000000000005|".into(),
        format!("Lintel UDP|{put}|21|0x0000000000000005|"),
    ];
    assert_eq!(rows[..10], expected);
    assert!(rows[10].starts_with("UDP|"), "{}", rows[10]);
}

/// `lintel perf put` for so many milliseconds, with a capture.
fn perf(nal: &str, folder: &Path, milliseconds: u32) -> std::process::Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lintel"));
    let time = format!("--time={milliseconds}");
    command.args(["perf", "put", "--sizes=8", &time, "--rounds=1", "--csv=-"]);
    command.env("PTL_PCAP", folder).env("PTL_NAL", nal);
    command.stdout(std::process::Stdio::null());
    command.spawn().expect("it starts")
}

/// The captures in a folder.
fn captures(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).expect("it is there");
    files
        .map(|file| file.expect("it is there").path())
        .collect()
}

#[test]
fn what_one_rank_sends_the_other_receives_whatever_carries_it() {
    for nal in ["shm", "udp"] {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let ended = perf(nal, folder.path(), 1).wait().expect("it ends");
        assert!(ended.success(), "{nal}");
        let files = captures(folder.path());
        assert_eq!(files.len(), 2, "{nal}: one for each rank");
        let fields = [
            "lintel.what",
            "portals.verb",
            "portals.pt_index",
            "portals.length",
        ];
        let mut puts = Vec::new();
        for file in files {
            let Some(rows) = dissected(&file, &fields) else {
                return;
            };
            let of = |what: &str| {
                let is_put = |row: &&Vec<String>| row[0] == what && row[1] == "PUT";
                let puts = rows.iter().filter(is_put);
                puts.map(|row| row[2..].to_vec()).collect::<Vec<_>>()
            };
            puts.push((of("1"), of("2")));
        }
        assert!(!puts[0].0.is_empty(), "{nal}");
        assert_eq!(puts[0].0, puts[1].1, "{nal}");
        assert_eq!(puts[1].0, puts[0].1, "{nal}");
    }
}

#[test]
fn the_capture_of_a_killed_process_can_be_read() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let mut running = perf("shm", folder.path(), 60_000);
    let deadline = Instant::now() + PATIENCE;
    let is_long = |file: &PathBuf| file.metadata().is_ok_and(|file| file.len() > 10_000);
    while captures(folder.path())
        .iter()
        .filter(|file| is_long(file))
        .count()
        < 2
    {
        assert!(Instant::now() < deadline, "nothing is captured");
        std::thread::sleep(LOOK_AGAIN);
    }
    running.kill().expect("it runs");
    running.wait().expect("it ends");
    for file in captures(folder.path()) {
        if let Some(rows) = dissected(&file, &["lintel.what"]) {
            assert!(rows.len() > 50);
        }
    }
}
