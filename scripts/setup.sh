#!/bin/sh
# Makes sure that the tests find PostgreSQL 15 or newer with its contrib modules,
# pgTAP with pg_prove, plpgsql_check, PgBouncer, Chromium for the tests of the pages, and a C compiler for
# Go's race detector.
# Quick when all is there. Installs with apt-get as root or through sudo without a
# password; otherwise says what to type and fails.
set -eu

# server_bin prints the folder of the PostgreSQL that the tests will start, in the
# order of internal/localpg.
server_bin() {
	if [ -n "${AUTOPOST_PG_BIN:-}" ]; then
		echo "$AUTOPOST_PG_BIN"
		return
	fi
	for dir in "$(pg_config --bindir 2>/dev/null || true)" \
		$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -t / -k 5,5nr) \
		/usr/pgsql-*/bin /opt/homebrew/opt/postgresql@*/bin /usr/local/opt/postgresql@*/bin \
		"$(dirname "$(command -v postgres || echo /nowhere/postgres)")"; do
		if [ -x "$dir/postgres" ] && [ -x "$dir/initdb" ] && [ "$(major "$dir")" -ge 15 ]; then
			echo "$dir"
			return
		fi
	done
}

major() {
	"$1/postgres" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/'
}

# missing lists what is not there, one word each.
missing() {
	command -v "${CC:-cc}" >/dev/null 2>&1 || command -v gcc >/dev/null 2>&1 || echo compiler
	command -v pgbouncer >/dev/null 2>&1 || [ -x /usr/sbin/pgbouncer ] || echo pgbouncer
	command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1 ||
		[ -x /Applications/Chromium.app/Contents/MacOS/Chromium ] || echo chromium
	bin=$(server_bin)
	if [ -z "$bin" ]; then
		echo postgresql pgtap plpgsql_check pg_prove
		return
	fi
	share=$("$bin/pg_config" --sharedir 2>/dev/null || echo "/usr/share/postgresql/$(major "$bin")")
	[ -e "$share/extension/pgcrypto.control" ] || echo contrib
	[ -e "$share/extension/pgtap.control" ] || echo pgtap
	[ -e "$share/extension/plpgsql_check.control" ] || echo plpgsql_check
	command -v pg_prove >/dev/null 2>&1 || echo pg_prove
}

# packages prints Debian's names of what is missing; the server's own modules are
# named for its major, which is known only once it is installed.
packages() {
	bin=$(server_bin)
	version=
	if [ -n "$bin" ]; then
		version=$(major "$bin")
	fi
	for item in $(missing); do
		case $item in
		compiler) echo gcc libc6-dev ;;
		postgresql) echo postgresql ;;
		contrib) echo postgresql-contrib ;;
		pgtap) [ -z "$version" ] || echo "postgresql-$version-pgtap" ;;
		plpgsql_check) [ -z "$version" ] || echo "postgresql-$version-plpgsql-check" ;;
		pgbouncer) echo pgbouncer ;;
		chromium) echo chromium ;;
		pg_prove) echo libtap-parser-sourcehandler-pgtap-perl ;;
		esac
	done
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	else
		sudo -n "$@"
	fi
}

explain() {
	echo "setup: missing: $(missing | tr '\n' ' ')" >&2
	echo "Type this, then run make again:" >&2
	case $(uname -s) in
	Darwin)
		echo "  brew install postgresql@17 pgtap pgbouncer && brew install --cask chromium && cpan TAP::Parser::SourceHandler::pgTAP" >&2
		echo "  (plpgsql_check: build it from github.com/okbob/plpgsql_check)" >&2
		;;
	*)
		if command -v dnf >/dev/null 2>&1; then
			echo "  sudo dnf install gcc postgresql-server postgresql-contrib pgtap plpgsql_check pgbouncer chromium perl-TAP-Parser-SourceHandler-pgTAP" >&2
		else
			echo "  sudo apt-get update && sudo apt-get install $(packages | tr '\n' ' ')" >&2
		fi
		;;
	esac
	exit 1
}

[ -n "$(missing)" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1 || ! as_root true 2>/dev/null; then
	explain
fi
export DEBIAN_FRONTEND=noninteractive
as_root apt-get update -qq
# Twice: the second round knows the major that the first has installed.
for round in 1 2; do
	wanted=$(packages)
	# shellcheck disable=SC2086 # a list of package names
	[ -z "$wanted" ] || as_root apt-get install -y -qq --no-install-recommends $wanted >/dev/null
done
[ -z "$(missing)" ] || explain
