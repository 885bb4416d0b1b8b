package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// scriptName is that of the maintenance script.
const scriptName = "patch.sh"

// scriptFor is a maintenance script that fails on one node until a file says that it was repaired.
func scriptFor(repaired string) string {
	return fmt.Sprintf(`#!/bin/sh
# The maintenance: here one would flash, patch or reboot the node named in $1.
echo "patching $1${DRYDOCK_WORKFLOW_ID:+ (workflow $DRYDOCK_WORKFLOW_ID)}"
sleep 1
if [ "$1" = %s ] && [ ! -e %s ]; then
  echo "firmware update failed" >&2
  exit 7
fi
echo "patched $1"
`, brokenNode, quoted(repaired))
}

// typed shows a command as it can be pasted into a shell in this directory.
func (d *demo) typed(args ...string) {
	short := make([]string, len(args))
	for i, arg := range args {
		short[i] = fromHere(arg)
	}
	fmt.Printf("\n$ %s\n", commandLine(short))
}

// fromHere shortens the path of a file below the working directory.
func fromHere(arg string) string {
	here, err := os.Getwd()
	if err != nil || !filepath.IsAbs(arg) {
		return arg
	}
	if path, err := filepath.Rel(here, arg); err == nil && filepath.IsLocal(path) {
		return path
	}
	return arg
}

// commandLine is what a shell takes for these words.
func commandLine(words []string) string {
	all := make([]string, len(words))
	for i, word := range words {
		all[i] = quoted(word)
	}
	return strings.Join(all, " ")
}

// plain needs no quotes.
var plain = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

func quoted(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
