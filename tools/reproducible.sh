#!/bin/sh
# Builds the programs of a release twice, in two folders and with empty caches, and fails where their digests differ.
#   reproducible.sh VERSION
set -eu
version=${1:?usage: reproducible.sh VERSION}
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"; git -C "$root" worktree prune' EXIT

# built FOLDER: prints the digests of what is built there.
built() {
  git -C "$root" worktree add --quiet --detach "$1/source" HEAD
  cd "$1/source"
  for program in starter/drydock worker/drydock-worker bridge/drydock-bridge; do
    CGO_ENABLED=0 GOFLAGS=-trimpath GOCACHE="$1/cache" go build \
      -ldflags "-s -w -X drydock.dev/drydock/starter.Version=$version -X drydock.dev/drydock/worker.Version=$version -X drydock.dev/drydock/bridge.Version=$version" \
      -o "$1/out/" "./$program"
  done
  cd "$1/out"
  sha256sum drydock drydock-worker drydock-bridge
}

echo "== building the programs of $version twice, without caches (some minutes)"
mkdir -p "$work/one" "$work/another/and/deeper"
built "$work/one" >"$work/first"
umask 077
TZ=Pacific/Apia built "$work/another/and/deeper" >"$work/second"
cat "$work/first"
diff "$work/first" "$work/second" >&2 || { echo "the second build differs" >&2; exit 1; }
echo "== both builds have these digests"
