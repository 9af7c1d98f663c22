# For scripts/test-clients and the client.sh of each client: what gets programs
# from their registries; to be sourced, not run.
# shellcheck shell=bash

# keyed NAME FILE...: a directory in the cache for what these files name.
keyed() {
    local name=$1
    shift
    printf '%s/clients/%s-%s\n' "$SNOWFLAKE_CACHE" "$name" "$(cat "$@" | sha256sum | cut -c1-12)"
}

# free_port: a TCP port that nothing listens on.
free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# check ok|failed WHAT: writes a check down.
check() { printf '%s\t%s\n' "$1" "$2" >>"$OUT/checks"; }

# python_env: the packages of requirements.txt, in a virtual environment; sets VENV.
python_env() {
    VENV=$(keyed python requirements.txt)
    [ ! -e "$VENV/.complete" ] || return 0
    python3 -c 'import ensurepip' 2>/dev/null || need_packages python3-venv
    rm -rf "$VENV"
    python3 -m venv "$VENV" &&
        "$VENV/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: -r requirements.txt &&
        touch "$VENV/.complete"
}

# unpack_into PG_CONFIG PACKAGES: puts Debian's packages of extensions into that
# private tree of Debian's server. The system itself is not changed.
unpack_into() {
    local package debs=$SNOWFLAKE_CACHE/clients/debs file version
    version=$(major_version "$1")
    mkdir -p "$debs"
    for package in $2; do
        if ! compgen -G "$debs/${package}_*.deb" >/dev/null; then
            (cd "$debs" && { apt-get -q download "$package" || { apt_get update && apt-get -q download "$package"; }; } >>"$SNOWFLAKE_CACHE/apt.log" 2>&1) ||
                die "apt could not download $package"
        fi
        file=$(compgen -G "$debs/${package}_*.deb" | tail -n 1)
        rm -rf "${debs:?}/$package"
        dpkg-deb -x "$file" "$debs/$package"
        [ ! -d "$debs/$package/usr/lib/postgresql/$version/lib" ] || cp -R --remove-destination "$debs/$package/usr/lib/postgresql/$version/lib/." "$("$1" --pkglibdir)/"
        [ ! -d "$debs/$package/usr/share/postgresql/$version" ] || cp -R --remove-destination "$debs/$package/usr/share/postgresql/$version/." "$("$1" --sharedir)/"
    done
}

# as_postgres COMMAND...: as root, services run as that user, who may not be
# allowed into the checkout.
as_postgres() {
    if is_root; then (cd / && exec runuser -u postgres -- "$@"); else "$@"; fi
}

# superuser SQL...: runs it in the client's database, and prints what it returns.
superuser() {
    local statements=() statement
    for statement in "$@"; do statements+=(-c "$statement"); done
    PGUSER=postgres "$BINDIR/psql" -X -q -A -t -v ON_ERROR_STOP=1 "${statements[@]}"
}

# expect WANTED FOUND WHAT: writes a check down.
expect() {
    if [ "$1" = "$2" ]; then check ok "$3: $2"; else check failed "$3: $2, not $1"; fi
}
