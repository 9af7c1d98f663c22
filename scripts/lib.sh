# What the scripts share; to be sourced, not run.
#
# Everything they make outside the checkout lies in one cache directory, which
# may be deleted at any time:
#   tools/           cargo-pgrx, apart from one the user may have
#   pg/              private copies of servers, one directory a server, with
#                    the PGRX_HOME that belongs to it
#   postgresql-18/   PostgreSQL 18, built from source (scripts/postgresql-18)
#   postgresql-15-newest/  the newest minor release (scripts/postgresql-15-newest)
#   demo/            the server of `make demo`
# shellcheck shell=bash disable=SC2034

set -euo pipefail
# The user `postgres` has to read what root writes.
umask 022

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
PGRX_VERSION=$(sed -n 's/^pgrx = .*"=\([0-9.]*\)".*/\1/p' "$ROOT/Cargo.toml")

say() { printf '\n==> %s\n' "$*" >&2; }
note() { printf '    %s\n' "$*" >&2; }
die() {
    printf '\nerror: %s\n' "$1" >&2
    shift
    for line in "$@"; do printf '       %s\n' "$line" >&2; done
    exit 1
}

# quietly LOG COMMAND...: its output goes to a file, and is shown if it fails.
quietly() {
    local log=$1
    shift
    "$@" >>"$log" 2>&1 </dev/null || {
        tail -n 30 "$log" >&2
        note "This failed: $*"
        note "The whole log: $log"
        return 1
    }
}

is_root() { [ "$(id -u)" = 0 ]; }

# Root's servers run as `postgres`, who can't look into /root.
if [ -n "${SNOWFLAKE_CACHE:-}" ]; then
    case $SNOWFLAKE_CACHE in /*) ;; *) SNOWFLAKE_CACHE=$PWD/$SNOWFLAKE_CACHE ;; esac
elif is_root; then
    SNOWFLAKE_CACHE=/var/cache/snowflake
else
    SNOWFLAKE_CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/snowflake
fi
export SNOWFLAKE_CACHE

TARGET=${CARGO_TARGET_DIR:-$ROOT/target}
DEBIAN_PG_CONFIG=/usr/lib/postgresql/15/bin/pg_config
PG_CONFIG=${PG_CONFIG:-$DEBIAN_PG_CONFIG}

# cargo-pgrx passes linker flags of its own, which a RUSTFLAGS variable would
# turn off: the extension's SQL would come out empty.
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS
PATH=$SNOWFLAKE_CACHE/tools/bin:$PATH
# pgrx's test framework asks for USER, which a container may not set.
USER=${USER:-$(id -un)}
# Where rustup puts cargo, for shells whose PATH lacks it.
command -v cargo >/dev/null || PATH=$PATH:${CARGO_HOME:-${HOME:-/root}/.cargo}/bin
export PATH USER

# installed_version PACKAGE: its version, or nothing.
installed_version() {
    { dpkg-query -W -f='${db:Status-Status} ${Version}\n' "$1" 2>/dev/null || :; } | sed -n 's/^installed //p'
}

# missing_packages PACKAGE...: those not installed, one a line.
missing_packages() {
    local package
    for package in "$@"; do
        [ -n "$(installed_version "$package")" ] || printf '%s\n' "$package"
    done
}

# need_packages PACKAGE...: installs those that are missing or, without the
# right to, says how and stops.
need_packages() {
    local missing command by_hand
    if ! command -v apt-get >/dev/null; then
        note "This system has no apt; make sure that it has what Debian calls: $*"
        return
    fi
    mapfile -t missing < <(missing_packages "$@")
    [ ${#missing[@]} -gt 0 ] || return 0
    if is_root; then
        say "Installing ${missing[*]} (about a minute)"
        apt_get update
    fi
    pin_server_dev missing
    command="apt-get install -q -y --no-install-recommends ${missing[*]}"
    by_hand="sudo $command"
    # Debian's package would create a cluster and start it, which is not wanted.
    # This holds only while it is installed: a server that the machine's owner
    # installs later comes up the way Debian means it to.
    if [[ $command == *" postgresql-15"* && -z $(installed_version postgresql-15) ]]; then
        local dir=/etc/postgresql-common/createcluster.d
        command="mkdir -p $dir; echo create_main_cluster = false >$dir/snowflake-setup.conf; $command"
        command="trap \"rm -f $dir/snowflake-setup.conf\" EXIT; $command"
        by_hand="sudo sh -c '$command'"
    fi
    is_root || die "missing packages: ${missing[*]}" "Install them, then run this again:" "" "$by_hand"
    DEBIAN_FRONTEND=noninteractive quietly "$SNOWFLAKE_CACHE/apt.log" sh -c "$command" ||
        die "apt could not install what is needed" \
            "Where the system has another version of PostgreSQL than 15: PG_CONFIG=/path/to/pg_config"
}

apt_get() {
    mkdir -p "$SNOWFLAKE_CACHE"
    quietly "$SNOWFLAKE_CACHE/apt.log" apt-get -q "$@"
}

# pin_server_dev ARRAY: a server that is there already is not upgraded for its
# headers; where the archive still has those of its minor version, take them.
pin_server_dev() {
    local -n packages=$1
    local i version
    for i in "${!packages[@]}"; do
        [[ ${packages[i]} == postgresql-server-dev-* ]] || continue
        version=$(installed_version "postgresql-${packages[i]##*-}")
        if [ -n "$version" ] && apt-cache madison "${packages[i]}" | grep -F " $version " >/dev/null; then
            packages[i]="${packages[i]}=$version"
        fi
    done
}

# The version of the extension.
project_version() { sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' "$ROOT/Cargo.toml"; }

# The major version of a server, from its pg_config: 15, 16, ...
major_version() { "$1" --version | sed -E 's/^PostgreSQL ([0-9]+).*/\1/'; }

# tree_dir PG_CONFIG: where the private copies of that server lie.
tree_dir() {
    local bindir version
    bindir=$(realpath "$("$1" --bindir)")
    version=$("$1" --version | sed -E 's/^PostgreSQL ([^ ]+).*/\1/')
    printf '%s/pg/%s-%s\n' "$SNOWFLAKE_CACHE" "$version" \
        "$(printf '%s' "$bindir" | sha256sum | cut -c1-8)"
}

# use_server PG_CONFIG: what building for that server needs. Sets FEATURE, and
# pgrx's variables. The extension is always compiled against the tree `build`,
# which only pgrx's own tests install into; so the builds for the other trees
# find everything compiled already.
use_server() {
    [ -x "$1" ] || die "there is no pg_config at $1" "Name another with PG_CONFIG=/path/to/pg_config."
    FEATURE=pg$(major_version "$1")
    # Cargo notices when this one changes and makes new bindings; it would not
    # notice another PGRX_HOME.
    PGRX_PG_CONFIG_PATH=$("$ROOT/scripts/private-tree" "$1" build)
    PGRX_HOME=$(tree_dir "$1")/pgrx
    export PGRX_PG_CONFIG_PATH PGRX_HOME
    if ! grep -qsxF "$FEATURE = \"$PGRX_PG_CONFIG_PATH\"" "$PGRX_HOME/config.toml"; then
        say "Telling pgrx about PostgreSQL ${FEATURE#pg}"
        mkdir -p "$PGRX_HOME"
        cargo-pgrx pgrx init --no-run "--$FEATURE=$PGRX_PG_CONFIG_PATH" >&2
    fi
}

# install_into PG_CONFIG [FEATURE]: builds the extension and installs it into
# that tree; PROFILE=dev builds it as cargo does for tests, many times as fast.
install_into() {
    local profile=(--release)
    if [ "${PROFILE:-release}" = dev ]; then profile=(); fi
    (cd "$ROOT" && cargo-pgrx pgrx install ${profile[@]+"${profile[@]}"} --pg-config "$1" \
        --no-default-features --features "$FEATURE${2:+ $2}")
}
