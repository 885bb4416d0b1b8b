#!/bin/sh
# Builds container images FROM scratch, each tagged with the version and the architecture, and that of this machine also with the
# version and as :local.
#   build.sh VERSION              drydock (the worker and the bridge) and drydock-cli, with SBOMs in .bin/images; ARCHITECTURES chooses
#   build.sh VERSION trial        drydock-temporal and drydock-cluster, to try it with, out of .bin
set -eu
version=${1:?usage: build.sh VERSION [trial]}
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
cd "$root"

machine=$(go env GOHOSTARCH)
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
created=$(git log -1 --format=%cI 2>/dev/null || date -u +%Y-%m-%dT%H:%M:%SZ)
source=${SOURCE_URL:-$(git config --get remote.origin.url 2>/dev/null || echo unknown)}
# A tag may not have all the characters that a version may.
tag=$(printf %s "$version" | tr -c 'A-Za-z0-9_.-' -)

# image NAME DOCKERFILE ARCHITECTURE DESCRIPTION
image() {
  set -- "$1" "$2" "$3" "$4" -t "$1:$tag-$3"
  [ "$3" != "$machine" ] || set -- "$@" -t "$1:$tag" -t "$1:local"
  name=$1 file=$2 arch=$3 description=$4
  shift 4
  DOCKER_BUILDKIT=${DOCKER_BUILDKIT:-0} docker build --quiet --no-cache --platform "linux/$arch" -f "$here/$file" "$@" \
    --label "org.opencontainers.image.title=$name" \
    --label "org.opencontainers.image.description=$description" \
    --label "org.opencontainers.image.version=$version" \
    --label "org.opencontainers.image.revision=$revision" \
    --label "org.opencontainers.image.created=$created" \
    --label "org.opencontainers.image.source=$source" \
    --label "org.opencontainers.image.licenses=Apache-2.0" \
    "$context/$arch" >/dev/null 2>"$context/errors" || { cat "$context/errors" >&2; return 1; }
  echo "   $name:$tag-$arch, $(docker image inspect -f '{{.Size}}' "$name:$tag-$arch" | awk '{printf "%.1f MB", $1 / 1e6}')"
}

if [ "${2:-}" = trial ]; then
  echo "== building the images to try Drydock with"
  # The one folder that anybody may write into. Only what is in a folder that is copied keeps its mode.
  mkdir -p "$context/$machine/folders/tmp"
  chmod 1777 "$context/$machine/folders/tmp"
  cp .bin/devtemporal .bin/devcluster "$context/$machine/"
  # Where there is a C compiler, devcluster is linked with the C library.
  mkdir "$context/$machine/libraries"
  for library in $(ldd .bin/devcluster 2>/dev/null | grep -o '/[^ ]*'); do
    mkdir -p "$context/$machine/libraries/$(dirname "$library")"
    cp -L "$library" "$context/$machine/libraries/$library"
  done
  image drydock-temporal Dockerfile.temporal "$machine" "Temporal's development server with its UI"
  image drydock-cluster Dockerfile.cluster "$machine" "A Kubernetes control plane with nodes that are played"
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
  echo "== building the images for linux/$arch"
  image drydock Dockerfile "$arch" "Drydock's worker and bridge"
  image drydock-cli Dockerfile.cli "$arch" "Drydock's command line"
done
