#!/bin/sh
# Builds the images drydock:VERSION and drydock-temporal:VERSION, each also as :latest, out of static binaries.
set -eu
version=${1:?usage: build.sh VERSION}
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT

echo "== building static binaries"
cd "$root"
CGO_ENABLED=0 GOFLAGS="${GOFLAGS:-} -trimpath" go build -ldflags "-s -w -X drydock/starter.Version=$version -X drydock/worker.Version=$version" \
  -o "$context/" ./starter/drydock ./worker/drydock-worker
cp "$root/.bin/devtemporal" "$context/devtemporal"
mkdir "$context/tmp"
chmod 1777 "$context/tmp"

echo "== building the images"
# A tag may not have all the characters that a version may.
tag=$(printf %s "$version" | tr -c 'A-Za-z0-9_.-' -)
for image in drydock drydock-temporal; do
  file=$here/Dockerfile
  [ $image = drydock ] || file=$here/Dockerfile.temporal
  DOCKER_BUILDKIT=${DOCKER_BUILDKIT:-0} docker build --quiet -f "$file" -t "$image:$tag" -t "$image:latest" "$context"
done
docker image ls --filter reference='drydock*'
