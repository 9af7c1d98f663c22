# The checks and tests of the project, and what runs and counts them; to be
# sourced by scripts/check and scripts/test after scripts/lib.sh, not run.
# shellcheck shell=bash

passed=0 failed=0 skipped=0
failures=()

# headers_version DIRECTORY: the minor release of server headers.
headers_version() { sed -nE 's/^#define PG_VERSION "([^" ]*).*/\1/p' "$1"/pg_config*.h | sed -n 1p; }

# The minor releases that a run was with.
versions_tested() {
    local headers
    printf '%s' "$("$PG_CONFIG" --version)"
    headers=$(headers_version "$("$PGRX_PG_CONFIG_PATH" --includedir-server)")
    [[ "$("$PG_CONFIG" --version) " == "PostgreSQL $headers "* ]] || printf ', the library built with the headers of %s' "$headers"
    [ "$OTHER_MINOR" = "$RELEASE" ] ||
        printf ', some tests also on %s' "$("$OTHER_MINOR" --version | sed -E 's/^PostgreSQL ([^ ]*).*/\1/')"
}

summary() {
    if [ ${#failures[@]} -gt 0 ]; then
        printf '\nFailed:\n'
        printf '  %s\n' "${failures[@]}"
    fi
    # Else the run that this one is part of lists them.
    if [ -z "${SNOWFLAKE_TIMES:-}" ] && [ -e "${logs:-}/times" ]; then longest "$logs/times" "${LONG_TEST:-30}"; fi
    [ -z "${OTHER_MINOR:-}" ] || printf '\n%s:' "$(versions_tested)"
    printf '\n%d passed, %d failed%s\n' "$passed" "$failed" \
        "$([ "$skipped" = 0 ] || printf ', %d skipped' "$skipped")"
    [ "$failed" = 0 ] && [ "$passed" -gt 0 ]
}

# bounded MINUTES COMMAND...: runs it in a process group of its own and ends
# that where it takes longer. (`timeout` runs no functions of this script.)
bounded() {
    local minutes=$1 status=0
    shift
    set -m
    (cd "$ROOT" && "$@") &
    group=$!
    (
        sleep $((minutes * 60))
        note "ended: it was not done after $minutes minutes"
        kill -TERM -- "-$group"
        sleep 10
        kill -KILL -- "-$group"
    ) &
    guard=$!
    set +m
    wait "$group" || status=$?
    end_step
    return "$status"
}

# Ends what is left of a step. Servers are in groups of their own: each has a
# reaper, which ends it when its test is gone.
group='' guard=''
end_step() {
    [ -z "$guard" ] || kill -KILL -- "-$guard" 2>/dev/null || :
    [ -z "$group" ] || kill -KILL -- "-$group" 2>/dev/null || :
    [ -z "$guard" ] || wait "$guard" 2>/dev/null || :
    group='' guard=''
}

# step tests|check NAME MINUTES COMMAND...: runs it for that many minutes at
# most, shows and keeps its output and its times, and adds up what `cargo test`
# or pg_regress reports in it.
step() {
    local kind=$1 name=$2 minutes=$3 log keeper follower status counts p f s began=$SECONDS
    shift 3
    log=$logs/$((++number))-${name//[^A-Za-z0-9]/-}.log
    say "$name"
    # Followed, not piped: a server that a broken test leaves behind would
    # keep a pipe open, and this script waiting, for ever.
    : >"$log"
    sleep infinity &
    keeper=$!
    tail -n +1 -s 0.2 -f --pid="$keeper" "$log" &
    follower=$!
    status=0
    bounded "$minutes" "$@" </dev/null >"$log" 2>&1 || status=$?
    kill "$keeper"
    wait "$keeper" "$follower" 2>/dev/null || :

    if [ "$kind" = check ]; then
        counts="$((status == 0)) $((status != 0)) 0"
    else
        counts=$(sed 's/\x1b\[[0-9;]*m//g' "$log" | awk '
            /^test result: / { passed += $4; failed += $6; skipped += $8 }
            # pg_regress, of PostgreSQL 15 and since.
            { sub(/^[# ]+/, "") }
            /^All [0-9]+ tests passed/ { passed += $2 }
            /^[0-9]+ of [0-9]+ tests failed/ { failed += $1; passed += $3 - $1 }
            END { print passed + 0, failed + 0, skipped + 0 }')
    fi
    read -r p f s <<<"$counts"
    # No test to blame: it did not compile, or died. No test at all: a check
    # that checks nothing must not pass.
    if [ "$f" = 0 ] && { [ "$status" != 0 ] || [ "$p" = 0 ]; }; then
        f=1
        note "$name: exit code $status, $p tests passed"
    fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    [ "$f" = 0 ] || failures+=("$name: $log")
    note "$name: $((SECONDS - began)) s"
    keep_times "$name" "$((SECONDS - began))" "$log"
}

# keep_times STEP SECONDS LOG: a step's time and those of its tests, as lines of
# `where, step or test, seconds` with tabs: in the file of this run and in
# target/test-times.tsv, where the newest replaces the earlier ones.
keep_times() {
    local kept=$TARGET/test-times.tsv where=${FEATURE:-}
    {
        printf '%s\tstep %s\t%s\n' "$where" "$1" "$2"
        sed 's/\x1b\[[0-9;]*m//g' "$3" |
            sed -nE "s/^test (.*) \.\.\. (ok|FAILED) <([0-9.]+)s>\$/$where\t\1\t\3/p"
    } >"$3.times"
    cat "$3.times" >>"${SNOWFLAKE_TIMES:-$logs/times}"
    touch "$kept"
    awk -F '\t' '!seen[$1 FS $2]++' "$3.times" "$kept" >"$kept.new"
    mv "$kept.new" "$kept"
}

# longest FILE: the twenty longest, and what takes long without a reason. The
# reasons are in pgrx-tests/versions.
longest() {
    printf '\nThe longest:\n'
    sort -t "$(printf '\t')" -k 3,3nr "$1" | awk -F '\t' 'NR <= 20 { printf "  %7.1f s  %s  %s\n", $3, $1, $2 }'
    awk -v limit="$2" '
        FNR == 1 { file++ }
        file == 1 { if ($1 == "long") reasons[$2]; next }
        {
            split($0, part, "\t")
            if (part[3] <= limit || part[2] ~ /^step /) next
            for (reason in reasons) if (index(part[2], reason) == 1) next
            print "  " part[2] " took " part[3] " s with PostgreSQL " substr(part[1], 3) ": give a reason in pgrx-tests/versions, or make it shorter"
        }' "$ROOT/pgrx-tests/versions" "$1"
}

# begin: the count comes last also where getting ready fails.
begin() {
    trap 'status=$?; failures+=("setting up"); failed=$((failed + 1)); summary || exit $((status ? status : 1))' EXIT
}

# in_memory: servers of tests have their files in memory from here on, where there are 8 GB of it. Hundreds of servers
# are made and removed, and ext4 looks long for inodes that were not deleted just before: a quarter of perf's samples
# in half a minute of a full tier. What that is of the whole time was not measured.
in_memory() {
    local available size
    [ -z "${TMPDIR:-}" ] && [ -w /dev/shm ] || return 0
    available=$(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo)
    size=$(df --output=avail /dev/shm | awk 'NR == 2 { print int($1 / 1048576) }')
    ((available >= 8 && size >= 6)) || return 0
    # A directory in it, which a test that mounts a small /dev/shm can mount again there.
    mkdir -p /dev/shm/snowflake-tests
    [ ! -O /dev/shm/snowflake-tests ] || chmod 1777 /dev/shm/snowflake-tests
    export TMPDIR=/dev/shm/snowflake-tests
}

# ready NAME: from here on the steps count, and their logs are kept under that
# name. Ended early, a script leaves no follower of a log behind, and no step.
ready() {
    trap 'kill $(jobs -p) 2>/dev/null || :; end_step' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    logs=$TARGET/test-logs/$1
    number=0
    rm -rf "$logs"
    mkdir -p "$logs"
}

# Every script of the checkout that bash runs or sources.
lint_scripts() {
    local file scripts=()
    for file in scripts/* .ci/* clients/tests/*.sh clients/tests/*/* test/citus/*.sh; do
        [ -f "$file" ] || continue
        if [ "${file##*.}" = sh ] || sed -n 1p "$file" | grep -q '^#!.*bash'; then scripts+=("$file"); fi
    done
    note "${#scripts[@]} scripts"
    printf '%s\0' "${scripts[@]}" | xargs -0 -n 10 -P 2 shellcheck -x --
}

# Words to leave alone: .codespellrc
spelling() { codespell .; }

# Also of the programs of clients, which are a workspace of their own.
formatting() { cargo fmt --all --check && cargo fmt --all --check --manifest-path clients/tests/Cargo.toml; }

# SQL of the extensions means the same under any setting.
sql_constants() { scripts/check-constants; }

# The code of docs/clients.md is what the tests of clients run.
client_guide() { scripts/client-guide; }

# Links and mentions of files lead somewhere.
document_links() { scripts/check-links; }

# The decoder in docs/decode.html is that of clients/javascript.
decode_page() { scripts/decode-page --check; }

# No document but the reference, and that on the clock, has errors and layouts of presets.
doc_facts() { scripts/doc-facts; }

# The extension as it is built for tests: that has what is built for use.
lint() {
    cargo clippy --ignore-rust-version --workspace --all-targets --no-default-features --features "snowflake/$FEATURE snowflake/testing" -- -D warnings
}

# The extension's documentation is for those who work on it: no crate links to a
# shared library, so what is private belongs into it.
documentation() {
    RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" \
        cargo doc --ignore-rust-version --no-deps -p snowflake --no-default-features --features "$FEATURE" --document-private-items &&
        RUSTDOCFLAGS="-D warnings" cargo doc --ignore-rust-version --no-deps --workspace --exclude snowflake
}

# timed_tests ARGUMENT...: `cargo test` whose output has the seconds of each test.
# Rust's test runner offers that under this variable only, which cargo must not
# see: it would compile crates anew.
timed_tests() {
    local host
    host=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
    env "CARGO_TARGET_${host}_RUNNER=env RUSTC_BOOTSTRAP=1" cargo test --ignore-rust-version --no-fail-fast "$@"
}

# The algorithm.
test_core() { timed_tests -p pg-snowflake-id --lib --tests -- -Zunstable-options --report-time "$@"; }

# The same with what the benchmarks compute, what judges servers, and the examples of documentation.
test_crates() {
    timed_tests --workspace --exclude snowflake --exclude snowflake-tests --exclude snowflake-sim --lib --bins --tests -- -Zunstable-options --report-time &&
        timed_tests -p snowflake-tests -p snowflake-sim --lib --test traced --test decided -- -Zunstable-options --report-time &&
        cargo test --ignore-rust-version -p pg-snowflake-id --doc
}

# `--cfg loom` replaces the crate's atomics, so nothing else may be built here.
loom() {
    RUSTFLAGS="--cfg loom" CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        cargo test --ignore-rust-version -p pg-snowflake-id --release --target-dir "$TARGET/loom" --test loom --test loom_resolved
}

# Histories of servers. The seeds, which it prints, are new with each change of the
# crates; in a full run, and without git, each time.
simulated() {
    local tree=
    [ "${SNOWFLAKE_TESTS:-}" = full ] || tree=$(git -C "$ROOT" rev-parse HEAD:crates 2>/dev/null | cut -c1-12) || tree=
    MINUTES=1 SEED=${tree:+$((16#$tree))} "$ROOT/scripts/simulate"
}

# Each protection that is taken away, and a history that is replayed and shrunk.
protections() {
    CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        cargo test --ignore-rust-version -p snowflake-sim --release --target-dir "$TARGET/simulate" --tests -- --nocapture
}

upgrade_paths() { "$ROOT/scripts/check-upgrades"; }

# What `make` builds, and that it has nothing of the test build.
build_release() {
    PROFILE=release build_library && ! grep -qaE 'SNOWFLAKE_TEST_|snowflake\.unprotected' "$(PROFILE=release target_directory)/libsnowflake.so"
}

# `make`, `make install` and `make uninstall`, in a copy of the checkout.
installing() { "$ROOT/scripts/test-install" "$PGRX_PG_CONFIG_PATH"; }

# install_other_minor: the extension as it is in the tree of the release. A
# library works with all minor releases of a version.
install_other_minor() {
    [ "$OTHER_MINOR" != "$RELEASE" ] || return 0
    find "$("$OTHER_MINOR" --sharedir)/extension" -name 'snowflake*' -delete
    cp -p "$("$RELEASE" --pkglibdir)/snowflake.so" "$("$OTHER_MINOR" --pkglibdir)/"
    cp -p "$("$RELEASE" --sharedir)"/extension/snowflake* "$("$OTHER_MINOR" --sharedir)/extension/"
}

# The one library that is tested, with what only tests need.
build_for_tests() { install_into "$RELEASE" testing && install_other_minor && of_those_headers; }

# of_those_headers: what was built has the headers that it is meant to have. A
# build that took others would prove nothing about minor releases.
of_those_headers() {
    local wanted found
    wanted=$(headers_version "$("$PGRX_PG_CONFIG_PATH" --includedir-server)")
    # The bindings that were written or used last.
    found=$(find "$(target_directory)" -path "*/pgrx-pg-sys-*/out/$FEATURE.rs" -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d' ' -f2- |
        xargs -r grep -ohE 'PG_VERSION ?: [^;]*' | grep -oE '"[0-9][0-9a-z.]*' | tr -d '"')
    note "built with the headers of PostgreSQL $found"
    [ "$found" = "$wanted" ]
}

# cluster_tests FILE: the tests of servers that are named in the file. Three at a
# time on two cores: half of what these tests do is wait.
cluster_tests() {
    local names
    mapfile -t names <"$1"
    [ ${#names[@]} -gt 0 ] || return 1
    note "${#names[@]} tests"
    PG_CONFIG=$RELEASE SNOWFLAKE_OTHER_MINOR_PG_CONFIG=$OTHER_MINOR \
        timed_tests -p snowflake-tests --test servers -- -Zunstable-options --report-time --exact "${names[@]}" --test-threads=3 --nocapture
}

compile_cluster_tests() { cargo test --ignore-rust-version -q -p snowflake-tests --test servers --no-run; }

# all_cluster_tests: the names of all tests of servers.
all_cluster_tests() { cargo test --ignore-rust-version -q -p snowflake-tests --test servers -- --list --format terse | sed -n 's/: test$//p'; }

# tests_of_tier TIER: those that pgrx-tests/versions names for the server's version
# and that tier. What others have besides is counted on standard error. With LOAD=first-call,
# those of pgrx-tests/without-preload.
tests_of_tier() {
    local list=$ROOT/pgrx-tests/versions
    [ -z "${SNOWFLAKE_TESTS_LOAD:-}" ] || list=$ROOT/pgrx-tests/without-preload
    all_cluster_tests >"$TARGET/tests" && [ -s "$TARGET/tests" ] &&
        awk -v version="${FEATURE#pg}" -v tier="$1" -v without="${WITHOUT:-}" -f "$ROOT/scripts/tests-of-version.awk" "$list" "$TARGET/tests"
}

# tests_named FILTER: the tests of servers whose path has FILTER in it, at the
# beginning of one of its parts if there are such. So `mark::` is the module
# mark and not rights_mark.
tests_named() {
    all_cluster_tests | awk -v filter="$1" '
        index("::" $0, "::" filter) { whole[++wholes] = $0; next }
        index($0, filter) { part[++parts] = $0 }
        END {
            for (i = 1; i <= wholes; i++) print whole[i]
            for (i = 1; i <= parts && !wholes; i++) print part[i]
        }'
}

# fleet_tests FILTER: tests of several servers, one at a time: each starts several
# and loads them.
fleet_tests() {
    PG_CONFIG=$RELEASE timed_tests -p snowflake-tests --test fleet -- -Zunstable-options --report-time "$1" --test-threads=1 --nocapture
}
