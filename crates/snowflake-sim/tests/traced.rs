//! A trace is accepted, and no longer when one of its lines is another one. On real servers, the soak
//! has traces accepted, and those of servers without a protection refused.

use snowflake_id::Identity;
use snowflake_sim::traced::Acceptor;

/// A first ID, a crash in which nothing is lost, and the first ID after it. Bounds are first IDs of
/// ticks: 2^22 IDs each.
const TRACE: &str = "\
start -5
read-mark 16384 0 0
read-floor snowflake 1;
write-floor 7 BOUNDS
wrote 7 100
write-mark 7 16384 4194304000 -5 1735689600500000
wrote 7 200
flushed 200
announce 16384 1000
read-mark 16384 4194304000 -5
start -6
read-mark 16384 4194304000 -5
read-floor BOUNDS
announce 16384 1000";

/// The floor's page with that bound, in one line.
fn floor(bound: u64) -> String {
    let layout = "timestamp:41 node:6 backend:4 sequence:12 tick:1ms epoch:2025-01-01T00:00:00Z";
    let title = snowflake_id::Bounds::default().to_string();
    format!("{};{bound} 1 {layout};", title.trim_end())
}

fn accept(trace: &str) -> Result<(), String> {
    let layout = snowflake_id::Layout::DEFAULT;
    let mut acceptor = Acceptor::new(Identity::new(layout, 1).expect("a node number"));
    let title = snowflake_id::Bounds::default().to_string();
    let trace = trace
        .replace("snowflake 1;", &format!("{};", title.trim_end()))
        .replace("BOUNDS", &floor(4_194_304_000));
    trace.lines().try_for_each(|line| acceptor.line(line))
}

#[test]
fn a_trace_is_accepted() {
    assert_eq!(accept(TRACE), Ok(()));
}

#[test]
fn a_trace_with_another_line_is_refused() {
    let cases = [
        ("flushed 200", "flushed 199", "the mark is not flushed"),
        ("flushed 200\n", "", "the mark is not flushed"),
        (
            "write-floor 7 BOUNDS\nwrote 7 100\n",
            "",
            "the floor is lower",
        ),
        (
            "start -6\nread-mark 16384 4194304000 -5",
            "start -6\nread-mark 16384 0 0",
            "cannot have that",
        ),
        (
            "start -6\nread-mark 16384 4194304000 -5",
            "start -6",
            "the mark was not read",
        ),
        (
            "read-floor BOUNDS",
            "read-floor snowflake 1;",
            "the floor cannot have that",
        ),
        ("start -6", "start -5", "comes again"),
        (
            "announce 16384 1000\nread",
            "announce 16384 1001\nread",
            "the mark is lower",
        ),
        (
            "1735689600500000",
            "1735689601500000",
            "nothing is reserved by that",
        ),
        ("-5 1735", "-4 1735", "the start number is another one"),
    ];
    for (line, other, why) in cases {
        let trace = TRACE.replacen(line, other, 1);
        assert_ne!(trace, TRACE, "{line}");
        let refused = accept(&trace).expect_err(line);
        assert!(refused.ends_with(why), "{refused}; {why}");
    }
}

/// What was not flushed may be lost with the server, and may be there.
#[test]
fn what_was_not_flushed_is_there_or_not() {
    let unflushed = TRACE.replacen("flushed 200\nannounce 16384 1000\n", "", 1);
    assert_eq!(accept(&unflushed), Ok(()));
    let start = "start -6\nread-mark 16384 4194304000 -5";
    let lost = unflushed.replacen(start, "start -6\nread-mark 16384 0 0", 1);
    // The floor's record, which comes before it, may still be there, but nothing is announced.
    let ends = lost.replacen("\nannounce 16384 1000", "", 1);
    assert_eq!(accept(&ends), Ok(()));
    assert!(accept(&lost).is_err());
}
