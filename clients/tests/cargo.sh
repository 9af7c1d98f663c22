# For client.sh of the clients in Rust; to be sourced, not run.
# shellcheck shell=bash

# cargo_directory: where their programs are built. They share their dependencies.
cargo_directory() { keyed cargo ../Cargo.lock; }

cargo_build() {
    # Diesel calls libpq.
    need_packages libpq-dev
    CARGO_TARGET_DIR=$(cargo_directory) cargo build --locked --manifest-path ../Cargo.toml
}

# cargo_program NAME: its path.
cargo_program() { printf '%s/debug/%s\n' "$(cargo_directory)" "$1"; }

# crate_version NAME: as it is in the lock file.
crate_version() {
    printf '%s %s\n' "$1" "$(sed -n "/^name = \"$1\"\$/{n;s/^version = \"\(.*\)\"/\1/p}" ../Cargo.lock)"
}
