# What the scripts share; to be sourced, not run.
#
# Everything they make outside the checkout lies in one cache directory, which
# may be deleted at any time:
#   pg/              private copies of servers, one directory a server
#   servers/         servers of each version (scripts/server)
#   packages/        what scripts/test-packages keeps: a Debian system, tools
#   python/          what scripts/site and scripts/record-demo get from PyPI
#   demo/            the server of `make demo`
# shellcheck shell=bash disable=SC2034

set -euo pipefail
# The user `postgres` has to read what root writes.
umask 022

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

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
case $TARGET in /*) ;; *) TARGET=$ROOT/$TARGET ;; esac
# Cargo's configuration may name other directories.
export CARGO_TARGET_DIR=$TARGET
unset CARGO_BUILD_TARGET
DEBIAN_PG_CONFIG=/usr/lib/postgresql/15/bin/pg_config
NAMED_PG_CONFIG=${PG_CONFIG:-}
PG_CONFIG=${PG_CONFIG:-$DEBIAN_PG_CONFIG}
VERSION=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' "$ROOT/Cargo.toml")

# Other flags than those of Cargo.toml would compile everything again.
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS
# Where rustup puts cargo, for shells whose PATH lacks it.
command -v cargo >/dev/null || PATH=$PATH:${CARGO_HOME:-${HOME:-/root}/.cargo}/bin
export PATH

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

# python_packages PACKAGE==VERSION...: the directory of an environment that has
# these packages, from PyPI.
python_packages() {
    local directory=$SNOWFLAKE_CACHE/python log=$SNOWFLAKE_CACHE/python/install.log venv
    command -v python3 >/dev/null || need_packages python3
    python3 -c 'import ensurepip' 2>/dev/null || need_packages python3-venv
    venv=$directory/$(printf '%s\n' "$@" "$(python3 --version)" | sha256sum | cut -c1-12)
    if [ ! -e "$venv/.complete" ]; then
        say "Getting $* (half a minute)"
        rm -rf "$venv"
        mkdir -p "$venv"
        : >"$log"
        quietly "$log" python3 -m venv "$venv"
        quietly "$log" "$venv/bin/pip" install --disable-pip-version-check --only-binary :all: "$@"
        touch "$venv/.complete"
    fi
    printf '%s\n' "$venv"
}

apt_get() {
    mkdir -p "$SNOWFLAKE_CACHE"
    quietly "$SNOWFLAKE_CACHE/apt.log" apt-get -q "$@"
}

# debian_program PACKAGE FILE: unpacks a program from Debian's package, and prints
# its path. Where a service's package is installed, the service may be started.
debian_program() {
    local directory=$SNOWFLAKE_CACHE/programs/$1
    if [ ! -x "$directory/$2" ]; then
        rm -rf "$directory"
        mkdir -p "$directory"
        (cd "$directory" && { apt-get -q download "$1" || { apt_get update && apt-get -q download "$1"; }; } && dpkg-deb -x "$1"_*.deb .) >&2
    fi
    printf '%s\n' "$directory/$2"
}

# debian_uri LABEL: the archive with that label among this machine's entries.
debian_uri() {
    # shellcheck disable=SC2016
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' "Label: $1" | sed -n 1p
}

# debian_entries TYPE SUITE...: sources.list's lines for these suites, from the
# mirrors that this machine uses.
debian_entries() {
    local type=$1 suite uri keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    shift
    if [ -z "$(debian_uri Debian)" ] && is_root; then apt_get update; fi
    [ -n "$(debian_uri Debian)" ] || return 1
    for suite in "$@"; do
        case $suite in *-security) uri=$(debian_uri Debian-Security) ;; *) uri=$(debian_uri Debian) ;; esac
        [ -z "$uri" ] || printf '%s [signed-by=%s] %s %s main\n' "$type" "$keyring" "$uri" "$suite"
    done
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

# default_server: without a PG_CONFIG, the server of the pg_config on PATH is
# meant, else Debian's PostgreSQL 15.
default_server() {
    local found
    if [ -z "$NAMED_PG_CONFIG" ]; then
        # On Debian the one on PATH belongs to no server, and passes questions on.
        if found=$(command -v pg_config) && found=$("$found" --bindir)/pg_config && [ -x "$found" ]; then
            PG_CONFIG=$found
        fi
    elif [[ $PG_CONFIG != */* ]]; then
        PG_CONFIG=$(command -v "$PG_CONFIG") || die "there is no $NAMED_PG_CONFIG in PATH"
    fi
    [ -x "$PG_CONFIG" ] || die "there is no pg_config at $PG_CONFIG" "Name the server with PG_CONFIG=/path/to/pg_config." \
        "Debian has it in postgresql-server-dev-NN."
}

# server_identity PG_CONFIG: the version and the build options of a server, in a
# line. Private copies of a server have the same.
server_identity() {
    printf '%s, %s\n' "$("$1" --version)" \
        "$({ "$1" --version && "$1" --configure && "$1" --cflags; } 2>&1 | sha256sum | cut -c1-16)"
}

# compile_for PG_CONFIG: cargo compiles the extension for that server. Sets
# FEATURE, and the variables of pgrx's build script, which needs nothing else.
compile_for() {
    [ -x "$1" ] || die "there is no pg_config at $1" "Name another with PG_CONFIG=/path/to/pg_config."
    FEATURE=pg$(major_version "$1")
    grep -q "^$FEATURE = " "$ROOT/Cargo.toml" ||
        die "the extension does not support $("$1" --version)" "Name another server with PG_CONFIG=/path/to/pg_config."
    PGRX_PG_CONFIG_PATH=$1
    # Cargo makes new bindings when one of these variables changes; it does not
    # notice that the server at the same path is another one than before. pgrx
    # only compares this variable with "true".
    PGRX_PG_CONFIG_AS_ENV="no: $(server_identity "$1")"
    export PGRX_PG_CONFIG_PATH PGRX_PG_CONFIG_AS_ENV
}

# use_server PG_CONFIG: what compiling for private copies of that server needs.
# It is always done with the tree `build`, into which nothing is installed; so the
# builds for the other trees find everything compiled already. With
# SNOWFLAKE_HEADERS, a directory, it is compiled with those headers, of an earlier
# minor release.
use_server() {
    [ -x "$1" ] || die "there is no pg_config at $1" "Name another with PG_CONFIG=/path/to/pg_config."
    if [ -n "${SNOWFLAKE_HEADERS:-}" ]; then
        compile_for "$("$ROOT/scripts/private-tree" "$1" build-earlier "$SNOWFLAKE_HEADERS")"
    else
        compile_for "$("$ROOT/scripts/private-tree" "$1" build)"
    fi
}

# need_rust: Rust itself is the user's choice of installation.
need_rust() {
    local wanted found
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$ROOT/Cargo.toml")
    command -v cargo >/dev/null || die "Rust is missing ($wanted or newer): no cargo in PATH" \
        "Install it with rustup, see the page \"Install Rust\" of the Rust project's web site."
    found=$(cd "$ROOT" && rustc --version | cut -d' ' -f2)
    [ "$(printf '%s\n' "$wanted" "$found" | sort -V | sed -n 1p)" = "$wanted" ] ||
        die "Rust $wanted or newer is needed; rustc is $found" "With rustup: rustup update stable"
}

# has_libclang: bindgen would find it; the directories are those it looks into.
has_libclang() {
    [ -z "${LIBCLANG_PATH:-}" ] || return 0
    local file
    for file in "$(llvm-config --libdir 2>/dev/null || :)"/libclang* /usr/{lib,lib64,local/lib,local/lib64}/{,llvm*/lib/,*-linux-*/}libclang{,-*}.so*; do
        # libclang-cpp is another library.
        case $file in *libclang-cpp*) ;; *) [ ! -e "$file" ] || return 0 ;; esac
    done
    { ldconfig -p 2>/dev/null || :; } | grep -E 'libclang(-[0-9]+)?\.so' >/dev/null
}

# has_headers_of_icu PG_CONFIG: or the server was built without ICU.
has_headers_of_icu() {
    grep -qs '^#define USE_ICU' "$("$1" --includedir-server)"/pg_config*.h && command -v cc >/dev/null || return 0
    # shellcheck disable=SC2046  # several words
    echo '#include <unicode/ucol.h>' | cc -E -x c - $("$1" --cppflags) >/dev/null 2>&1
}

# need_to_compile PG_CONFIG: stops with the names of Debian's packages if
# something is missing that compiling the extension takes minutes to miss.
need_to_compile() {
    local missing=() major
    need_rust
    major=$(major_version "$1")
    command -v cc >/dev/null || missing+=("a C compiler (gcc libc6-dev)")
    has_libclang || missing+=("libclang (libclang-dev); elsewhere: LIBCLANG_PATH=/directory")
    [ -e "$("$1" --includedir-server)/postgres.h" ] ||
        missing+=("the server's development files (postgresql-server-dev-$major)")
    has_headers_of_icu "$1" || missing+=("the headers of ICU, which those of this server include (libicu-dev)")
    [ ${#missing[@]} = 0 ] ||
        die "the extension can't be compiled; missing, with the names of Debian's packages:" "${missing[@]}"
}

# target_directory: where cargo puts what it builds with PROFILE.
target_directory() {
    local profile=${PROFILE:-release}
    printf '%s/%s\n' "$TARGET" "${profile/#dev/debug}"
}

# sources: a checksum of what the library and its install script are made from.
sources() {
    (cd "$ROOT" && find Cargo.toml Cargo.lock src crates sql -type f -print0 |
        LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c1-16)
}

# record FEATURES IDENTITY: describes the library that is built, and what from.
# Cargo builds the libraries for all servers under one name.
record() {
    printf 'server: %s\nfeatures: %s\nsources: %s\nlibrary: %s\n' "$2" "$1" "$(sources)" \
        "$(sha256sum "$(target_directory)/libsnowflake.so" 2>/dev/null | cut -d' ' -f1)"
}

# The extensions that are made from one library, and their install scripts of this
# version, which concatenate_sql writes.
EXTENSIONS=(snowflake snowflake_migrate snowflake_partitions)
INSTALL_SCRIPTS=("${EXTENSIONS[@]/%/--$VERSION.sql}")
INSTALL_SCRIPTS=("${INSTALL_SCRIPTS[@]/#/$TARGET/sql/}")
CONTROL_FILES=("${EXTENSIONS[@]/%/.control}")
CONTROL_FILES=("${CONTROL_FILES[@]/#/$ROOT/}")

# concatenate_sql: makes the install scripts of the files that sql/order lists.
concatenate_sql() {
    local files extension
    mapfile -t files < <(grep -v '^#' "$ROOT/sql/order")
    diff <(cd "$ROOT/sql" && find . -mindepth 2 -name '*.sql' -printf '%P\n' | LC_ALL=C sort) \
        <(printf '%s\n' "${files[@]}" | LC_ALL=C sort) >&2 || die "sql/order does not list the files of sql/"
    mkdir -p "$TARGET/sql"
    for extension in "${EXTENSIONS[@]}"; do
        mapfile -t files < <(grep "^$extension/" "$ROOT/sql/order")
        (cd "$ROOT/sql" && awk 'FNR == 1 && NR > 1 { print "" } { print }' "${files[@]}") >"$TARGET/sql/$extension--$VERSION.sql"
    done
}

# build_library [FEATURE]: compiles the extension with cargo, after compile_for, and
# makes its install scripts.
# PROFILE=dev compiles it as cargo does for tests, many times as fast.
# BUILD_ALSO is an array of further arguments, for what to build at the same time.
BUILD_ALSO=()
build_library() {
    local features=$FEATURE${1:+ $1} built
    built=$(target_directory)/libsnowflake.built
    rm -f "$built"
    # pgrx's build script would format the bindings, for seconds; they are not read.
    (cd "$ROOT" && RUSTFMT=true cargo build --ignore-rust-version -p snowflake ${BUILD_ALSO[@]+"${BUILD_ALSO[@]}"} --profile "${PROFILE:-release}" \
        --no-default-features --features "${features// /,}") && concatenate_sql || return
    record "$features" "$(server_identity "$PGRX_PG_CONFIG_PATH")" >"$built.new" && mv "$built.new" "$built"
}

# is_built PG_CONFIG: the library and the install scripts are there that build_library
# would make for that server, without a further feature.
is_built() {
    local built
    built=$(target_directory)/libsnowflake.built
    [ -e "$built" ] && [ -e "${INSTALL_SCRIPTS[0]}" ] && [ -e "${INSTALL_SCRIPTS[1]}" ] && [ -e "${INSTALL_SCRIPTS[2]}" ] && [ "$(cat "$built")" = "$(record "pg$(major_version "$1")" "$(server_identity "$1")")" ]
}

# install_scripts: the scripts that are installed: those of this version, and the
# upgrades to it. The install scripts of earlier versions are for tests only: the
# extension is trusted, so the owner of a database could create these versions.
install_scripts() {
    printf '%s\n' "${INSTALL_SCRIPTS[@]}"
    find "$ROOT/sql" -maxdepth 1 -name '*--*--*.sql' | LC_ALL=C sort
}

# copy_into PG_CONFIG: installs the library that was built last into that private
# tree, with its SQL.
copy_into() {
    local scripts
    mapfile -t scripts < <(install_scripts)
    find "$("$1" --sharedir)/extension" \( -name 'snowflake--*.sql' -o -name 'snowflake_migrate--*.sql' -o -name 'snowflake_partitions--*.sql' \) -delete &&
        install -m 755 "$(target_directory)/libsnowflake.so" "$("$1" --pkglibdir)/snowflake.so" &&
        install -m 644 "${CONTROL_FILES[@]}" "${scripts[@]}" "$("$1" --sharedir)/extension/"
}

# install_into PG_CONFIG [FEATURE]: builds the extension, after use_server, and
# installs it into that private tree.
install_into() { build_library "${2:-}" && copy_into "$1"; }
