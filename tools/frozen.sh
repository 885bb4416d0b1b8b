#!/usr/bin/env bash
# Refuses commits that changed or deleted the histories of a release: what replays with them is what users have running.
# A release is frozen by the commit that adds its SHA256SUMS.
set -euo pipefail
histories=$1

if [ "$(git rev-parse --is-shallow-repository)" = true ]; then
    echo "NOT CHECKED: the clone is shallow; whether a release's histories were changed shows only with all commits (git fetch --unshallow)"
    exit 0
fi
releases=$(git log --diff-filter=A --no-renames --name-only --format= -- "$histories/v*/SHA256SUMS" | sort -u)
if [ -z "$releases" ]; then
    echo "no release's histories were ever frozen in $histories: this looks at the wrong place" >&2
    exit 1
fi

touched=""
for sums in $releases; do
    commit=$(git log --diff-filter=A --format=%H -- "$sums" | tail -1)
    touched+=$(git diff --no-renames --diff-filter=a --name-status "$commit" -- "$(dirname "$sums")")
done
if [ -n "$touched" ]; then
    printf 'the histories of a release are frozen, and these were changed or deleted:\n%s\n' "$touched" >&2
    exit 1
fi
echo "== the histories of the releases are as they were"
