#!/bin/sh
# Pushes what `make images` built to a registry, each image as one name for both architectures.
set -eu
version=${1:?usage: push.sh VERSION REGISTRY}
registry=${2:?usage: push.sh VERSION REGISTRY, such as registry.example.com/team}
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
  docker manifest push --purge "$registry/$image:$tag"
done
