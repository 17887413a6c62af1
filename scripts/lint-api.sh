#!/bin/sh
# Lints docs/reference/openapi.json and compiles the clients that generators make of it, in TypeScript and Go.
# The versions are pinned in tools/apilint. The work is in .cache/apilint.
set -eu
cd "$(dirname "$0")/.."
go=${GO:-go}
document=$PWD/docs/reference/openapi.json
if ! command -v npm >/dev/null; then
	echo "lint-api needs Node.js 20 or newer with npm. Install it: apt-get install nodejs npm" >&2
	exit 1
fi
mkdir -p .cache/apilint/client
cp tools/apilint/* tools/apilint/.spectral.yaml .cache/apilint/
cd .cache/apilint
if ! cmp -s package-lock.json installed.json; then
	npm ci --ignore-scripts --no-audit --no-fund
	cp package-lock.json installed.json
fi
export REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true
tools=$PWD/node_modules/.bin
"$tools/redocly" lint "$document"
"$tools/spectral" lint --fail-severity=warn "$document"
"$tools/openapi-typescript" "$document" --output api.d.ts
"$tools/tsc" --noEmit --strict post.ts
# The generator warns about OpenAPI 3.1. The compiler decides.
"$go" tool oapi-codegen -generate types,client -package client -o client/client.go "$document"
"$go" vet ./client
