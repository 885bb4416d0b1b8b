#!/usr/bin/env bash
# Refuses commits that changed or deleted what is kept of a release: histories, which are what users have running, and code,
# which is what they may go back to. A release is frozen by the commit that adds its SHA256SUMS. Of code the imports may follow the
# module's path, which was "drydock" up to 0.1.0.
set -euo pipefail

if [ "$(git rev-parse --is-shallow-repository)" = true ]; then
    echo "NOT CHECKED: the clone is shallow; whether what is kept of a release was changed shows only with all commits (git fetch --unshallow)"
    exit 0
fi

touched=""
for folder in "$@"; do
    releases=$(git log --diff-filter=A --no-renames --name-only --format= -- "$folder/v*/SHA256SUMS" | sort -u)
    if [ -z "$releases" ]; then
        echo "nothing of a release was ever frozen in $folder: this looks at the wrong place" >&2
        exit 1
    fi
    for sums in $releases; do
        commit=$(git log --diff-filter=A --format=%H -- "$sums" | tail -1)
        while IFS=$'\t' read -r what file; do
            if [ "$what" != M ] || ! git show "$commit:$file" | sed 's#"drydock/workflows/testdata/#"drydock.dev/drydock/workflows/testdata/#' | cmp -s - "$file"; then
                touched+="$what $file"$'\n'
            fi
        done < <(git diff --no-renames --diff-filter=a --name-status "$commit" -- "$(dirname "$sums")")
    done
done
if [ -n "$touched" ]; then
    printf 'what is kept of a release is frozen, and this was changed or deleted:\n%s\n' "$touched" >&2
    exit 1
fi
echo "== what is kept of the releases is as it was"
