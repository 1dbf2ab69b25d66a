//! A rank for the integration tests: does what its first argument says.
#![forbid(unsafe_code)]

use std::io::Write;

use lintel_pmi::client::Client;

fn main() {
    yod::become_helper_if_asked();
    let what = std::env::args().nth(1).unwrap_or_default();
    match what.as_str() {
        "library" => return launch(),
        "ssh-stub" => return ssh_stub(),
        _ => {}
    }
    let mut pmi = Client::from_env().expect("PMI-1").expect("a launcher");
    let rank = pmi.rank();
    match what.as_str() {
        "exchange" => exchange(pmi),
        "mapping" => println!("{}", pmi.get("PMI_process_mapping").unwrap().unwrap()),
        "leave" if rank == 0 => {}
        "leave" => pmi.barrier().unwrap(),
        "abort" if rank == 1 => {
            let code = std::env::args()
                .nth(2)
                .map_or(7, |word| word.parse().unwrap());
            pmi.abort(code).unwrap();
            wait_for_ever();
        }
        "abort" => pmi.barrier().unwrap(),
        "garbage" if rank == 0 => write_garbage(),
        "garbage" => pmi.barrier().unwrap(),
        "segment" => leave_segment(pmi),
        "wait" => {
            println!("{}", std::process::id());
            pmi.barrier().unwrap();
            wait_for_ever();
        }
        other => panic!("{other:?} is not known"),
    }
}

/// Every rank publishes a value and reads all others', twenty times.
fn exchange(mut pmi: Client) {
    let (rank, size) = (pmi.rank(), pmi.size());
    for round in 0..20 {
        pmi.put(&format!("key-{round}-{rank}"), &format!("value={rank}"))
            .unwrap();
        pmi.barrier().unwrap();
        for peer in 0..size {
            let value = pmi.get(&format!("key-{round}-{peer}")).unwrap();
            assert_eq!(value, Some(format!("value={peer}")));
        }
    }
    println!("rank {rank} of {size} in {}", pmi.kvs_name());
    pmi.finalize().unwrap();
}

/// Writes to the PMI connection what is no message, and waits to be ended.
fn write_garbage() {
    let fd = std::env::var("PMI_FD").unwrap();
    let script = format!("printf 'what is this\\n' >&{fd}");
    std::process::Command::new("bash")
        .args(["-c", &script])
        .status()
        .unwrap();
    wait_for_ever();
}

/// Leaves a file of the job in shared memory; rank 0 then crashes.
fn leave_segment(mut pmi: Client) {
    let rank = pmi.rank();
    let job = std::env::var("LINTEL_JOB").unwrap();
    let path = format!("/dev/shm/lintel-{job}-1-{}", std::process::id());
    std::fs::File::create(&path)
        .unwrap()
        .write_all(b"left")
        .unwrap();
    println!("{path}");
    pmi.barrier().unwrap();
    match rank {
        0 => std::process::abort(),
        _ => wait_for_ever(),
    }
}

/// Starts jobs from another binary than yod, then has none.
fn launch() {
    for _ in 0..2 {
        let mut job = yod::Job::new(2, std::env::current_exe().unwrap());
        job.args = vec!["exchange".into()];
        job.env = vec![("COLOUR".into(), "blue".into())];
        let outcome = yod::run(&job).unwrap();
        assert_eq!((outcome.exit_code(), outcome.ranks.len()), (0, 2));
    }
    println!("idle");
    wait_for_ever();
}

/// Stands in for ssh: runs the command of its last argument and carries its standard
/// input and output. Killed, it drops both like a connection.
fn ssh_stub() {
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::process::CommandExt;
    let words: Vec<String> = std::env::args().collect();
    let [.., host, command] = &words[..] else {
        panic!("a host and a command are expected: {words:?}");
    };
    let mut child = std::process::Command::new("sh")
        .args(["-c", command])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    // At once, for another stub may write its line at the same time.
    let line = format!("ssh-stub {host} {} {}\n", std::process::id(), child.id());
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    let mut input = child.stdin.take().unwrap();
    std::thread::spawn(move || std::io::copy(&mut std::io::stdin(), &mut input));
    // Without the buffer of std's own, which waits for the end of a line.
    let output = std::io::stdout().as_fd().try_clone_to_owned().unwrap();
    let mut output = std::fs::File::from(output);
    let _ = std::io::copy(&mut child.stdout.take().unwrap(), &mut output);
    let status = child.wait().unwrap();
    std::process::exit(status.code().unwrap_or(255));
}

fn wait_for_ever() {
    loop {
        std::thread::park();
    }
}
