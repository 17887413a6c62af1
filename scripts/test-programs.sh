#!/bin/sh
# Builds programs that tests start into bin/test, once for all test packages.
#   scripts/test-programs.sh s3server   the S3 server of tools/s3server, with the module versions of the engine, so
#                                       that both share compiled packages
#   scripts/test-programs.sh engine     autopost, with and without failpoints
# A program that did not change keeps its modification time, so the go command can reuse test results.
set -eu
cd "$(dirname "$0")/.."
go=${GO:-go}
folder=$PWD/bin/test
mkdir -p "$folder"

# replace moves a new program into place unless it equals the present one.
replace() {
	if cmp -s "$folder/$1.new" "$folder/$1"; then
		rm "$folder/$1.new"
	else
		mv "$folder/$1.new" "$folder/$1"
	fi
}

case ${1:-} in
s3server)
	if [ ! -x "$folder/versitygw" ] || [ tools/s3server/go.sum -nt "$folder/versitygw" ]; then
		echo "setup: building the S3 server of the tests" >&2
		(cd tools/s3server && "$go" build -o "$folder/versitygw" github.com/versity/versitygw/cmd/versitygw)
	fi
	;;
engine)
	"$go" build -o "$folder/autopost.new" ./cmd/autopost
	replace autopost
	"$go" build -tags failpoint -o "$folder/autopost-failpoint.new" ./cmd/autopost
	replace autopost-failpoint
	;;
*)
	echo "usage: scripts/test-programs.sh s3server | engine" >&2
	exit 2
	;;
esac
