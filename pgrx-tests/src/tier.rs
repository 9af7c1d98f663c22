//! How much a run is to prove: what each push needs, or everything.

/// The variable that `.ci/run --full` and `make test-full` set.
const VARIABLE: &str = "SNOWFLAKE_TESTS";

/// Whether this is a full run, which takes as long as it needs.
pub fn is_full() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|value| value == "full")
}

/// The variable by which the servers of all tests do without `shared_preload_libraries`.
const LOAD_VARIABLE: &str = "SNOWFLAKE_TESTS_LOAD";

/// Whether each session loads the library with its first call of it, from PostgreSQL 17 on.
pub fn is_without_preload() -> bool {
    std::env::var_os(LOAD_VARIABLE).is_some_and(|value| value == "first-call")
}

/// A size: `pushed` at each push, `full` in a full run.
pub fn size<T>(pushed: T, full: T) -> T {
    if is_full() { full } else { pushed }
}
