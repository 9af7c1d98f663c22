# shellcheck shell=bash
# shellcheck source=clients/tests/cargo.sh
. ../cargo.sh

install() {
    cargo_build
}

run() {
    crate_version sqlx >"$OUT/version"
    "$(cargo_program test-sqlx)"
}
