package starter

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"drydock.dev/drydock/starter/invocation"
)

var (
	// commandsIn are the commands of a page: lines of a block, and those in backticks.
	commandsIn = regexp.MustCompile("(?m)^ {4,}(drydock [^#\\n]+)|`(drydock [^`]+)`")
	flagsIn    = regexp.MustCompile(`--[a-z-]+`)
)

// Whoever is woken by an alert, or has lost something, types what a page says: each command is there, with its flags.
func TestRunbooksNameCommandsThatThereAre(t *testing.T) {
	files, err := filepath.Glob("../docs/runbooks/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d runbooks, %v", len(files), err)
	}
	for _, page := range []string{"disaster", "from-node-healthcheck", "health", "security", "tuning", "upgrade"} {
		files = append(files, "../docs/"+page+".md")
	}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range commandsIn.FindAllStringSubmatch(string(text), -1) {
			words := strings.Fields(match[1] + match[2])[1:]
			found++
			root := newRoot(&invocation.App{})
			command, rest, err := root.Find(words)
			if err != nil || command == root || !command.Runnable() {
				t.Errorf("%s: there is no command %v (%v)", filepath.Base(file), words, err)
				continue
			}
			for _, flag := range flagsIn.FindAllString(strings.Join(rest, " "), -1) {
				if command.Flag(strings.TrimPrefix(flag, "--")) == nil && command.InheritedFlags().Lookup(strings.TrimPrefix(flag, "--")) == nil {
					t.Errorf("%s: %s has no flag %s", filepath.Base(file), command.CommandPath(), flag)
				}
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d commands were found", found)
	}
}
