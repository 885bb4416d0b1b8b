#!/usr/bin/env bash
# Refuses commits that changed or deleted the histories of a release: what replays with them is what users have running.
# A release is frozen by the commit that adds its SHA256SUMS.
set -euo pipefail
histories=$1

touched=""
while read -r sums; do
    commit=$(git log --diff-filter=A --format=%H -- "$sums" | tail -1)
    touched+=$(git diff --no-renames --diff-filter=a --name-status "$commit" -- "$(dirname "$sums")")
done < <(git log --diff-filter=A --no-renames --name-only --format= -- "$histories/v*/SHA256SUMS" | sort -u)

if [ -n "$touched" ]; then
    printf 'the histories of a release are frozen, and these were changed or deleted:\n%s\n' "$touched" >&2
    exit 1
fi
echo "== the histories of the releases are as they were"
