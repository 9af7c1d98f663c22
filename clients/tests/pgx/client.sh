# shellcheck shell=bash
install() {
    need_packages golang-go golang-github-jackc-pgx-v4-dev
    pgx_program
}

# pgx_program: compiles test.go with Debian's packages of Go libraries. Go looks
# for those of a workspace in its directory `src`.
pgx_program() {
    PROGRAM=$(keyed pgx test.go)/test
    [ ! -x "$PROGRAM" ] || return 0
    GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE=$SNOWFLAKE_CACHE/clients/go GOFLAGS=-buildvcs=false \
        go build -o "$PROGRAM" test.go
}

run() {
    pgx_program
    printf 'pgx %s\n' "$(dpkg-query -W -f '${source:Upstream-Version}' golang-github-jackc-pgx-v4-dev)" >"$OUT/version"
    "$PROGRAM"
}
