#!/bin/sh
# Pushes what `make images` built to a registry, each image as one name for both architectures. The digests of these are written to the
# file DIGESTS, an image a line, for those who sign them.
set -eu
version=${1:?usage: push.sh VERSION REGISTRY [DIGESTS]}
registry=${2:?usage: push.sh VERSION REGISTRY [DIGESTS], such as registry.example.com/team}
digests=${3:-/dev/null}
: >"$digests"
tag=$(printf %s "$version" | tr -c 'A-Za-z0-9_.-' -)
for image in drydock drydock-cli; do
  all=
  for arch in ${ARCHITECTURES:-amd64 arm64}; do
    docker tag "$image:$tag-$arch" "$registry/$image:$tag-$arch"
    docker push --quiet "$registry/$image:$tag-$arch"
    all="$all $registry/$image:$tag-$arch"
  done
  # shellcheck disable=SC2086 # one image a word
  docker manifest create --amend "$registry/$image:$tag" $all
  digest=$(docker manifest push --purge "$registry/$image:$tag" | tail -n 1)
  case $digest in sha256:*) echo "$registry/$image $digest" | tee -a "$digests";; *) echo "push.sh: docker says no digest: $digest" >&2; exit 1;; esac
done
