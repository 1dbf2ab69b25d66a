//! `lintel perf --listen` and `--peer`, without a launcher.
#![forbid(unsafe_code)]

mod rig;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// One that listens, and its port; it ends with this value at the latest.
struct Listening(Child, String);

impl Listening {
    fn start(secret: &str) -> Self {
        let mut command = lintel(secret, &["--listen", "--port", "0"]);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
        let said = child.stderr.take().expect("piped");
        let mut line = String::new();
        let mut lines = BufReader::new(said);
        lines
            .read_line(&mut line)
            .expect("it says where it listens");
        let port = line.trim().rsplit(' ').next().expect("a number").to_owned();
        // What else it says nobody awaits.
        std::thread::spawn(move || lines.lines().for_each(drop));
        Self(child, port)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn lintel(secret: &str, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lintel"));
    command.arg("perf").args(words).env("LINTEL_SECRET", secret);
    for name in ["PTL_NAL", "PTL_IFACE", "PTL_MODE"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

#[test]
fn one_machine_measures_with_another_that_listens() {
    let secret = "17".repeat(32);
    let mut listening = Listening::start(&secret);
    let words = "put bandwidth --sizes 8,16K --time 2 --rounds 2 --json - --peer 127.0.0.1 --port";
    let words: Vec<&str> = words.split(' ').chain([listening.1.as_str()]).collect();
    let output = lintel(&secret, &words).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(listening.0.wait().expect("it ends").success());
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    assert_eq!(report["environment"]["PTL_NAL"], "udp");
    let rows = report["rows"].as_array().expect("rows");
    let rows: Vec<(&str, u64, &str)> = rows
        .iter()
        .map(|row| {
            let text = |value: &'static str| row[value].as_str().unwrap_or("");
            let bytes = row["bytes"].as_u64().expect("a size");
            (
                text("benchmark"),
                bytes,
                row["limit"]["name"].as_str().unwrap_or(""),
            )
        })
        .collect();
    let ping_pong = "bare UDP ping-pong";
    let flow = "bare TCP stream";
    assert_eq!(rows.len(), 4, "{rows:?}");
    assert!(
        rows[0].0 == "put" && rows[0].1 == 8 && rows[0].2.starts_with(ping_pong),
        "{rows:?}"
    );
    assert_eq!(rows[1], ("put", 16 << 10, flow));
    assert_eq!(rows[3], ("bandwidth", 16 << 10, flow));
}

#[test]
fn nobody_who_listens_and_another_secret_are_named() {
    let secret = "17".repeat(32);
    let listening = Listening::start(&secret);
    let words = ["put", "--peer", "127.0.0.1", "--port", &listening.1];
    let output = lintel(&"18".repeat(32), &words)
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("PTL_SECRET_FILE"), "{said}");
    let port = listening.1.clone();
    drop(listening);
    let words = ["put", "--peer", "127.0.0.1", "--port", &port];
    let output = lintel(&secret, &words).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("lintel perf --listen"), "{said}");
}
