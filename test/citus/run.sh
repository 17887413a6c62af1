#!/bin/sh
# Runs the program on a real Citus cluster: make test-citus. It starts a coordinator and two workers on 127.0.0.1 and
# removes them at the end.
#   run.sh              all parts
#   run.sh PART …       some of: cluster e2e crash
# CITUS_PREFIX is the folder of a PostgreSQL with Citus, as ../shared/citus/build.sh makes it. Without it that script
# builds one, in the cache of this user or, as root, in /var/cache, where the user of PostgreSQL can read it.
set -eu
cd "$(dirname "$0")/../.."
go=${GO:-go}

if [ -z "${CITUS_PREFIX:-}" ]; then
	if [ ! -f ../shared/citus/build.sh ]; then
		cat >&2 <<-'HELP'
			test-citus: no Citus here. Citus is not part of this repository (AGPL-3.0). Do one of these:
			  - set CITUS_PREFIX to a folder with usr/lib/postgresql/15/bin, built with Citus 13
			  - put build.sh and the archive of Citus into ../shared/citus
		HELP
		exit 1
	fi
	cache=${XDG_CACHE_HOME:-$HOME/.cache}
	[ "$(id -u)" -ne 0 ] || cache=/var/cache
	CITUS_PREFIX=$cache/autopost-test/citus
	mkdir -p "$CITUS_PREFIX"
	sh ../shared/citus/build.sh "$CITUS_PREFIX" >/dev/null
fi
export CITUS_PREFIX
if [ ! -x "$CITUS_PREFIX/usr/lib/postgresql/15/bin/postgres" ]; then
	echo "test-citus: no PostgreSQL in $CITUS_PREFIX/usr/lib/postgresql/15/bin: correct CITUS_PREFIX" >&2
	exit 1
fi

base=${TMPDIR:-/tmp}
[ ! -w /dev/shm ] || base=/dev/shm
AUTOPOST_TEST_CITUS=$(mktemp -d "$base/autopost-citus-XXXXXX")
AUTOPOST_TEST_CITUS_SCRIPT=$PWD/test/citus/cluster.sh
AUTOPOST_TEST_BIN=${AUTOPOST_TEST_BIN:-$PWD/bin/test}
export AUTOPOST_TEST_CITUS AUTOPOST_TEST_CITUS_SCRIPT AUTOPOST_TEST_BIN
trap 'sh test/citus/cluster.sh drop "$AUTOPOST_TEST_CITUS"' EXIT
trap 'exit 130' INT TERM

GO=$go sh scripts/test-programs.sh s3server
GO=$go sh scripts/test-programs.sh engine
sh test/citus/cluster.sh start "$AUTOPOST_TEST_CITUS"

failed=0
suite() { "$go" test -vet=off -count=1 -timeout 60m "$@" || failed=1; }
for part in ${*:-cluster e2e crash}; do
	case $part in
	cluster) suite -v -tags citus ./test/citus ;; # its log has the figures
	e2e) suite -skip "$(grep -v '^#' test/citus/skipped.txt | cut -d ' ' -f 1 | paste -sd '|')" ./test/e2e ;;
	crash) # a sample: before and after the receipt, the claim, the call and the outcome
		suite -run '^(TestTwoDaemons|TestKilledWhileSending|TestKilledAtEveryPoint)$/^P(3|7|10|12|14|29)$' ./test/crash ;;
	*) echo "test-citus: no such part: $part" >&2; exit 2 ;;
	esac
done
if grep -l 'terminated by signal 11' "$AUTOPOST_TEST_CITUS"/node*.log; then
	echo "test-citus: a node crashed:" >&2
	grep -h -B 2 -A 4 'terminated by signal 11' "$AUTOPOST_TEST_CITUS"/node*.log >&2
	failed=1
fi
exit $failed
