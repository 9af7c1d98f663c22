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

# step tests|check NAME TIME MINUTES COMMAND...: runs it for that many minutes
# at most, shows and keeps its output, and adds up what `cargo test` or
# pg_regress reports in it.
step() {
    local kind=$1 name=$2 time=$3 minutes=$4 log keeper follower status counts p f s
    shift 4
    log=$logs/$((++number))-${name//[^A-Za-z0-9]/-}.log
    say "$name (about $time)"
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
}

# begin: the count comes last also where getting ready fails.
begin() {
    trap 'status=$?; failures+=("setting up"); failed=$((failed + 1)); summary || exit $((status ? status : 1))' EXIT
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
    for file in scripts/* .ci/* clients/tests/*.sh clients/tests/*/*; do
        [ -f "$file" ] || continue
        if [ "${file##*.}" = sh ] || sed -n 1p "$file" | grep -q '^#!.*bash'; then scripts+=("$file"); fi
    done
    note "${#scripts[@]} scripts"
    shellcheck -x -- "${scripts[@]}"
}

# Words to leave alone: .codespellrc
spelling() { codespell .; }

# Also of the programs of clients, which are a workspace of their own.
formatting() { cargo fmt --all --check && cargo fmt --all --check --manifest-path clients/tests/Cargo.toml; }

# The code of docs/clients.md is what the tests of clients run.
client_guide() { scripts/client-guide; }

lint_crates() { cargo clippy --workspace --exclude snowflake --all-targets -- -D warnings; }

lint_for_use() { cargo clippy -p snowflake --all-targets --no-default-features --features "$FEATURE" -- -D warnings; }
lint_for_tests() {
    cargo clippy -p snowflake --all-targets --no-default-features --features "$FEATURE pg_test unprotected" -- -D warnings
}
lint_extension() { lint_for_use && lint_for_tests; }

# The extension's documentation is for those who work on it: no crate links to a
# shared library, so what is private belongs into it.
documentation() {
    RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" \
        cargo doc --no-deps -p snowflake --no-default-features --features "$FEATURE" --document-private-items &&
        RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --workspace --exclude snowflake
}

test_core() { cargo test -p pg-snowflake-id -p snowflake-shmem --no-fail-fast "$@"; }

# The algorithm and the layout of shared memory; with `snowflake-bench`, what
# the benchmarks compute.
test_crates() { cargo test --workspace --exclude snowflake --exclude snowflake-tests --no-fail-fast; }

# `--cfg loom` replaces the crate's atomics, so nothing else may be built here.
loom() {
    RUSTFLAGS="--cfg loom" CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        cargo test -p pg-snowflake-id --release --target-dir "$TARGET/loom" --test loom --test loom_resolved
}

# pg_tests [FILTER]: the tests of src/tests, which run inside a server.
pg_tests() {
    local as=()
    if is_root; then
        install -d -o postgres -m 755 "$SNOWFLAKE_CACHE/pg_test"
        as=(--runas postgres --pgdata "$SNOWFLAKE_CACHE/pg_test")
    fi
    cargo-pgrx pgrx test "$FEATURE" ${as[@]+"${as[@]}"} "$@"
}

# The install scripts of earlier versions, which upgrades are tested from. Into
# private trees only: the extension is trusted, and a real server that has such
# a script lets the owner of a database create that version, with its holes.
earlier_scripts() {
    local script extensions
    extensions=$("$1" --sharedir)/extension
    for script in "$ROOT"/sql/snowflake--*.sql; do
        case ${script##*/} in
        snowflake--*--*.sql) ;;
        *) install -m 644 "$script" "$extensions/" ;;
        esac
    done
}

# What `make install` installs is a file of the checkout, and has to be what pgrx
# generates. Reads the library that was built last.
install_script() { PROFILE=${PROFILE:-release} "$ROOT/scripts/schema" --check; }

build_release() { PROFILE=release build_library; }

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

install_release() { install_into "$RELEASE" && earlier_scripts "$RELEASE" && install_other_minor && of_those_headers; }
install_unprotected() { install_into "$UNPROTECTED" unprotected && earlier_scripts "$UNPROTECTED"; }

# of_those_headers: what was built has the headers that it is meant to have. A
# build that took others would prove nothing about minor releases.
of_those_headers() {
    local wanted found profile=release
    [ "${PROFILE:-release}" = release ] || profile=debug
    wanted=$(headers_version "$("$PGRX_PG_CONFIG_PATH" --includedir-server)")
    # The bindings that were written or used last.
    found=$(find "$TARGET/$profile" -path "*/pgrx-pg-sys-*/out/$FEATURE.rs" -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d' ' -f2- |
        xargs -r grep -ohE 'PG_VERSION ?: [^;]*' | grep -oE '"[0-9.]+' | tr -d '"')
    note "built with the headers of PostgreSQL $found"
    [ "$found" = "$wanted" ]
}

# Three at a time on two cores: half of what these tests do is wait.
cluster_tests() {
    PG_CONFIG=$RELEASE SNOWFLAKE_UNPROTECTED_PG_CONFIG=$UNPROTECTED SNOWFLAKE_OTHER_MINOR_PG_CONFIG=$OTHER_MINOR \
        cargo test -p snowflake-tests --no-fail-fast "$@" --test-threads=3 --nocapture
}

# cluster_tests_of_version: those that pgrx-tests/versions names for the server's
# version. The others are listed, with the versions they run on.
cluster_tests_of_version() {
    local names=() all status=0
    all=$(cargo test -q -p snowflake-tests --test servers -- --list --format terse | sed -n 's/: test$//p')
    mapfile -t names < <(awk -v version="${FEATURE#pg}" -f "$ROOT/scripts/tests-of-version.awk" "$ROOT/pgrx-tests/versions" - <<<"$all")
    [ ${#names[@]} -gt 0 ] && [ "${names[0]}" != wrong ] || return 1
    if [ "${#names[@]}" = "$(wc -l <<<"$all")" ]; then
        cluster_tests --lib --test servers --
    else
        cluster_tests --lib -- || status=1
        cluster_tests --test servers -- --exact "${names[@]}" || status=1
        return "$status"
    fi
}

# some_cluster_tests FILTER: the tests of servers whose path has FILTER in it, at the
# beginning of one of its parts if there are such. So `mark::` is the module
# mark and not rights_mark.
some_cluster_tests() {
    local names=()
    mapfile -t names < <(cargo test -q -p snowflake-tests --test servers -- --list --format terse | awk -v filter="$1" '
        sub(/: test$/, "") {
            if (index("::" $0, "::" filter)) { whole[++wholes] = $0 }
            else if (index($0, filter)) { part[++parts] = $0 }
        }
        END {
            for (i = 1; i <= wholes; i++) print whole[i]
            for (i = 1; i <= parts && !wholes; i++) print part[i]
        }')
    [ ${#names[@]} -gt 0 ] || {
        note "No test of pgrx-tests/tests has \"$1\" in its path; the words crates, sql and golden are the other tests."
        return 1
    }
    cluster_tests --test servers -- --exact "${names[@]}"
}

# fleet_tests FILTER: tests of several servers, one at a time: each starts several
# and loads them.
fleet_tests() {
    PG_CONFIG=$RELEASE cargo test -p snowflake-tests --no-fail-fast --test fleet -- "$1" --test-threads=1 --nocapture
}
