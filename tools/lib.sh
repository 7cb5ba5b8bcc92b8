# shellcheck shell=bash disable=SC2034
# lib.sh - set-up and builds for tools/demo and tools/test. Sourced, never run.
#
# Set-up checks needs, not names of packages: a command on the path or a library that
# pkg-config finds. Only missing packages are installed, and only then is the network used or sudo asked for.

# Rows: need | Debian/Ubuntu package | why. "cmd:" a command, "pc:" a library known to pkg-config, "py:" a
# module of Python, "cc:" a C compiler that links a program.
needs_build='
cc:|build-essential|C compiler, linker and C library
cmd:pkg-config|pkg-config|finds the libraries
cmd:python3|python3|runs Meson
cmd:meson|meson|describes the build
cmd:ninja|ninja-build|runs the build
cmd:git|git|names the version that a study was made with
pc:gsl|libgsl-dev|special functions and Sobol sequences
pc:openblas|libopenblas-dev|matrix products
pc:lapacke|liblapacke-dev|Cholesky factors
pc:sqlite3|libsqlite3-dev|the store
pc:libcjson|libcjson-dev|JSON
pc:libcurl|libcurl4-openssl-dev|HTTP client
pc:libcrypto|libssl-dev|signatures of webhooks
pc:libmicrohttpd|libmicrohttpd-dev|HTTP server
pc:librsvg-2.0|librsvg2-dev|reports as PDF and PNG
pc:cairo|libcairo2-dev|videos of policies
pc:libgif|libgif-dev|videos as GIF
pc:zlib|zlib1g-dev|checksums and compression
path:/usr/share/javascript/vega/vega-view.min.js|libjs-vega|charts of the pages
'
needs_test='
pc:cmocka|libcmocka-dev|unit tests
pc:libpq|libpq-dev|stores in PostgreSQL
cmd:sqlite3|sqlite3|checks stores from outside
cmd:clang|clang|the second compiler
cmd:wasm-ld|lld|games as WebAssembly, for pages without a server
cmd:clang-format|clang-format|format check
py:ensurepip|python3-venv|tracking servers for tests
cmd:openssl|openssl|certificates for tests of TLS
may:chromium|chromium|looks at the pages of trawl serve
path:/usr/share/i18n/locales/de_DE|locales|a locale with decimal commas
'
# Servers that would also start on the machine itself: in continuous integration alone. Tests that miss them are skipped.
if [ "${CI:-}" = true ]; then
    needs_test+='path:/usr/sbin/sshd|openssh-server|workers over ssh
path:/usr/bin/ssh|openssh-client|workers over ssh
path:/usr/sbin/slurmctld|slurm-wlm|workers in jobs of Slurm
path:/usr/sbin/munged|munge|authenticates within Slurm
glob:/usr/lib/postgresql/*/bin/initdb|postgresql|stores in PostgreSQL
'
fi

say()
{
    printf '== %s\n' "$*" >&2
}

die()
{
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

cc_works()
{
    printf 'int main(void) { return 0; }\n' | "${CC:-cc}" -x c - -o /dev/null 2>/dev/null
}

package_installed()
{
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

package_offered()
{
    apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: [^(]'
}

# need_met NEED PACKAGE
need_met()
{
    case $1 in
    cc:*) cc_works ;;
    path:*) [ -e "${1#path:}" ] ;;
    glob:*) compgen -G "${1#glob:}" >/dev/null ;;
    py:*) python3 -c "import ${1#py:}" 2>/dev/null ;;
    cmd:*) command -v "${1#cmd:}" >/dev/null 2>&1 ;;
    may:*) command -v "${1#may:}" >/dev/null 2>&1 || ! package_offered "$2" ;;
    pc:*)
        if command -v pkg-config >/dev/null 2>&1; then
            pkg-config --exists "${1#pc:}"
        else
            package_installed "$2"
        fi
        ;;
    esac
}

# Sets missing_packages and missing_text from rows of needs.
find_missing()
{
    local need package why
    missing_packages=()
    missing_text=
    while IFS='|' read -r need package why; do
        [ -n "$need" ] || continue
        need_met "$need" "$package" && continue
        missing_packages+=("$package")
        missing_text+=$(printf '  %-22s %s' "$package" "$why")$'\n'
    done <<<"$1"
}

version_at_least() # HAVE WANT
{
    [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

# setup_packages ROWS: returns when all needs are met, otherwise ends the script with advice.
setup_packages()
{
    local as_root=() meson_version
    find_missing "$1"
    if [ "${#missing_packages[@]}" -gt 0 ]; then
        if ! command -v apt-get >/dev/null 2>&1; then
            printf 'These are missing (named as Debian names them):\n%s' "$missing_text" >&2
            die "this is not a Debian or Ubuntu system, so nothing was installed; install them with your package manager and start again"
        fi
        say "installing from the distribution:"
        printf '%s' "$missing_text" >&2
        if [ "$(id -u)" -ne 0 ]; then
            command -v sudo >/dev/null 2>&1 ||
                die "not root and no sudo here; as root run: apt-get update && apt-get install --no-install-recommends ${missing_packages[*]}"
            as_root=(sudo)
            if [ "${CI:-}" = true ] || [ ! -t 0 ]; then
                as_root=(sudo -n)
                sudo -n true 2>/dev/null ||
                    die "sudo would ask for a password, which is not possible here; run: sudo apt-get update && sudo apt-get install --no-install-recommends ${missing_packages[*]}"
            fi
        fi
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q >&2 ||
            say "apt-get update had errors, see above; continuing with the existing package lists"
        find_missing "$1" # the lists may offer more now
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
            "${missing_packages[@]}" </dev/null >&2 ||
            die "apt-get could not install: ${missing_packages[*]} (see above)"
        find_missing "$1"
        [ "${#missing_packages[@]}" -eq 0 ] ||
            die "still missing after the installation: ${missing_packages[*]}; is an own PATH or PKG_CONFIG_LIBDIR set?"
    fi
    meson_version=$(meson --version)
    version_at_least "$meson_version" 1.0.0 ||
        die "meson $meson_version is too old, 1.0 or newer is needed: use Debian 12, Ubuntu 24.04 or newer, or pip install meson"
}

# build_tree DIR LOG MESON-OPTIONS...: configures, builds. A tree that build_tree made with other options is made again;
# one that a person configured is built as it is.
build_tree()
{
    local dir=$1 log=$2
    shift 2
    mkdir -p "$(dirname "$dir")" "$(dirname "$log")"
    if [ -f "$dir/build.ninja" ] && [ "$(cat "$dir/.trawl-options" 2>/dev/null || echo "$*")" = "$*" ]; then
        : >"$log"
    else
        rm -rf "$dir"
        meson setup "$dir" "$@" >"$log" 2>&1 || return 1
        printf '%s\n' "$*" >"$dir/.trawl-options"
    fi
    ninja -C "$dir" >>"$log" 2>&1
}

seconds()
{
    date +%s
}
