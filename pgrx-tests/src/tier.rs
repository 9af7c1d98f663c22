//! How much a run is to prove: what each push needs, or everything.

/// The variable that `.ci/run --full` and `make test-full` set.
const VARIABLE: &str = "SNOWFLAKE_TESTS";

/// Whether this is a full run, which takes as long as it needs.
pub fn is_full() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|value| value == "full")
}

/// A size: `pushed` at each push, `full` in a full run.
pub fn size<T>(pushed: T, full: T) -> T {
    if is_full() { full } else { pushed }
}
