#!/bin/sh
# Builds container images FROM scratch into .bin/images, and loads those of this machine into Docker where there is one, tagged with the version
# and the architecture, with the version, and as :local. tools/image says what is in them.
#   build.sh VERSION              drydock (the worker and the bridge) and drydock-cli, with SBOMs in .bin/images; ARCHITECTURES chooses
#   build.sh VERSION trial        drydock-temporal and drydock-cluster, to try it with, out of .bin
set -eu
version=${1:?usage: build.sh VERSION [trial]}
root=$(cd "$(dirname "$0")/../.." && pwd)
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
cd "$root"

machine=$(go env GOHOSTARCH)
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
created=$(git log -1 --format=%cI 2>/dev/null || date -u +%Y-%m-%dT%H:%M:%SZ)
source=${SOURCE_URL:-$(git config --get remote.origin.url 2>/dev/null || echo unknown)}
# A tag may not have all the characters that a version may.
tag=$(printf %s "$version" | tr -c 'A-Za-z0-9_.-' -)

# images ARCHITECTURE NAME...
images() {
  arch=$1
  shift
  echo "== building the images for linux/$arch"
  (cd tools/image && CGO_ENABLED=0 go run . build -from "$context" -to "$root/.bin/images" -arch "$arch" \
    -version "$version" -revision "$revision" -created "$created" -source "$source" "$@")
  if [ "$arch" != "$machine" ] || ! docker info >/dev/null 2>&1; then return; fi
  for name; do
    docker load --quiet --input ".bin/images/$name-$tag-$arch.tar" >/dev/null
    docker tag "$name:$tag-$arch" "$name:$tag"
    docker tag "$name:$tag-$arch" "$name:local"
  done
}

if [ "${2:-}" = trial ]; then
  # The one folder that anybody may write into.
  mkdir -p "$context/$machine/folders/tmp" "$context/$machine/libraries"
  chmod 1777 "$context/$machine/folders/tmp"
  cp .bin/devtemporal .bin/devcluster "$context/$machine/"
  # Where there is a C compiler, devcluster is linked with the C library.
  for library in $(ldd .bin/devcluster 2>/dev/null | grep -o '/[^ ]*'); do
    mkdir -p "$context/$machine/libraries/$(dirname "$library")"
    cp -L "$library" "$context/$machine/libraries/$library"
  done
  images "$machine" drydock-temporal drydock-cluster
  exit
fi

mkdir -p .bin/images
for arch in ${ARCHITECTURES:-amd64 arm64}; do
  echo "== building static binaries for linux/$arch"
  mkdir "$context/$arch"
  cp LICENSE "$context/$arch/"
  CGO_ENABLED=0 GOOS=linux GOARCH=$arch GOFLAGS="${GOFLAGS:-} -trimpath" go build \
    -ldflags "-s -w -X drydock.dev/drydock/starter.Version=$version -X drydock.dev/drydock/worker.Version=$version -X drydock.dev/drydock/bridge.Version=$version" \
    -o "$context/$arch/" ./starter/drydock ./worker/drydock-worker ./bridge/drydock-bridge
  for program in drydock drydock-worker drydock-bridge; do
    (cd tools/sbom && go run . -name "$program" -version "$version" -created "$created" \
      -out "$context/$arch/$program.spdx.json" "$context/$arch/$program")
    cp "$context/$arch/$program.spdx.json" ".bin/images/$program-$tag-linux-$arch.spdx.json"
  done
  images "$arch" drydock drydock-cli
done
