# The crate pg-snowflake-id as it would be published: packaged, unpacked, built and
# tested by itself. Its example decodes IDs of the server.
# shellcheck shell=bash

crate=../../../crates/snowflake-id

# unpacked: the directory of the packaged crate.
unpacked() {
    local files
    mapfile -t files < <(find "$crate" -type f | LC_ALL=C sort)
    keyed crate ../../../Cargo.toml ../../../Cargo.lock "${files[@]}"
}

# cargo_there DIRECTORY ARGUMENTS...: cargo in that directory.
cargo_there() {
    (cd "$1" && CARGO_TARGET_DIR=$1/target CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=false cargo "${@:2}")
}

install() {
    local directory
    directory=$(unpacked)
    [ ! -e "$directory/.complete" ] || return 0
    rm -rf "$directory"
    # It is verified by building it below, with its own lock file.
    cargo package --locked --allow-dirty --no-verify --manifest-path "$crate/Cargo.toml" --target-dir "$directory/package" &&
        tar -xzf "$directory"/package/package/pg-snowflake-id-*.crate -C "$directory" --strip-components=1 &&
        cargo_there "$directory" build --locked --example decode &&
        cargo_there "$directory" test --locked --no-run --lib --test vectors &&
        touch "$directory/.complete"
}

run() {
    local directory layout
    directory=$(unpacked)
    decode() { "$directory/target/debug/examples/decode" "$@"; }
    printf 'crate %s\n' "$(basename "$directory"/package/package/*.crate .crate)" >"$OUT/version"

    # Its tests, with the published IDs among them.
    if cargo_there "$directory" test --locked --offline --lib --test vectors; then
        check ok 'the tests of the packaged crate'
    else
        check failed 'the tests of the packaged crate'
    fi

    # shellcheck source=clients/tests/decoder.sh
    . ../decoder.sh
    decoder_inputs >"$OUT/inputs"
    cut -f 1 "$OUT/inputs" | LC_ALL=C sort -u >"$OUT/layouts"
    while read -r layout; do
        awk -F '\t' -v layout="$layout" '$1 == layout { print $2 }' "$OUT/inputs" | decode "$layout" | sed "s/^/$layout\t/"
    done <"$OUT/layouts" >"$OUT/decoded"
    compare_decoded
}
