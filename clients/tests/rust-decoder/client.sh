# The crate snowflake-id as it would be published: packaged, unpacked, built and
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
        tar -xzf "$directory"/package/package/snowflake-id-*.crate -C "$directory" --strip-components=1 &&
        cargo_there "$directory" build --locked --example decode &&
        cargo_there "$directory" test --locked --no-run --lib --test vectors &&
        touch "$directory/.complete"
}

run() {
    local directory session preset id layout
    directory=$(unpacked)
    decode() { "$directory/target/debug/examples/decode" "$@"; }
    printf 'crate %s\n' "$(basename "$directory"/package/package/*.crate .crate)" >"$OUT/version"

    # Its tests, with the published IDs among them.
    if cargo_there "$directory" test --locked --offline --lib --test vectors; then
        check ok 'the tests of the packaged crate'
    else
        check failed 'the tests of the packaged crate'
    fi

    # Half of the IDs one by one, from several slots; the others in bulk.
    psql -U app -c 'CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text)'
    for session in 1 2 3 4 5; do
        # shellcheck disable=SC1083
        printf '%s\n' "SELECT format('INSERT INTO orders (note) VALUES (%L)', $session) FROM generate_series(1, 200) \\gexec" |
            psql -U app
    done
    psql -U app -c "INSERT INTO orders (note) SELECT 'bulk' FROM generate_series(1, 1000)"

    # IDs of all presets, and those that others have published: "decoded" has the columns layout, id, created_at, …
    psql -U app -c 'COPY (SELECT id FROM orders) TO STDOUT' | decode | sed 's/^/default\t/' >"$OUT/decoded"
    psql -U app -c 'SELECT name FROM snowflake_layouts' >"$OUT/presets"
    while read -r preset; do
        psql -U app -v preset="$preset" >"$OUT/input" <<'SQL'
SELECT floor(random() * snowflake_max_id(now(), :'preset'))::bigint FROM generate_series(1, 100)
SQL
        decode "$preset" <"$OUT/input" | sed "s/^/$preset\t/" >>"$OUT/decoded"
    done <"$OUT/presets"
    tail -n +2 "$crate/tests/data/vectors.tsv" >"$OUT/vectors"
    while IFS=$'\t' read -r id layout _; do
        decode "$layout" <<<"$id" | sed "s/^/$layout\t/" >>"$OUT/decoded"
    done <"$OUT/vectors"

    {
        printf '%s\n' 'CREATE TEMPORARY TABLE decoded (layout text, id bigint, created_at timestamptz, node int, backend int, sequence int);' \
            'COPY decoded FROM stdin;'
        cat "$OUT/decoded"
        printf '%s\n' '\.' 'CREATE TEMPORARY TABLE vectors (id bigint, layout text, created_at timestamptz, node int, sequence int, source text);' \
            'COPY vectors FROM stdin;'
        cat "$OUT/vectors"
        printf '%s\n' '\.' '\i compare.sql'
    } | psql -U app >>"$OUT/checks"
    wc -l <"$OUT/decoded" >"$OUT/checked"
}
