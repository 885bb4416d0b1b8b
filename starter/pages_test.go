package starter

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"drydock.dev/drydock/starter/invocation"
)

var (
	// shellBlocks are the blocks of commands of a page; runbooks indent theirs.
	shellBlocks = regexp.MustCompile("(?sm)^ *```sh[^\n]*\n(.*?)^ *```|(?m)^ {4,}(drydock [^\n]+)")
	// commandsIn are the commands of a block, and those in backticks.
	commandsIn = regexp.MustCompile("(?m)^ *(?:until )?(drydock [^#\n;|<]+)|`(drydock [^`]+)`")
	// flagsIn are those of a command, without their values.
	flagsIn = regexp.MustCompile(`(?:^| )--?([a-zA-Z][a-zA-Z-]*)`)
	// ofACommand is what stands behind a -- on its own: another program's.
	ofACommand = regexp.MustCompile(` -- .*`)
)

// People type what a page says: each command is there, with its flags.
func TestPagesNameCommandsThatThereAre(t *testing.T) {
	files := []string{"../README.md"}
	err := filepath.WalkDir("../docs", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	root := newRoot(&invocation.App{})
	found, shown := 0, map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var commands []string
		for _, block := range shellBlocks.FindAllStringSubmatch(string(text), -1) {
			for _, match := range commandsIn.FindAllStringSubmatch(strings.ReplaceAll(block[1]+block[2], "\\\n", " "), -1) {
				commands = append(commands, match[1])
			}
		}
		for _, match := range commandsIn.FindAllStringSubmatch(string(text), -1) {
			if match[2] != "" {
				commands = append(commands, match[2])
			}
		}
		for _, typed := range commands {
			found++
			command, problem := namedBy(root, ofACommand.ReplaceAllString(strings.ReplaceAll(typed, "\n", " "), ""))
			if problem != "" {
				t.Errorf("%s: %s: %s", file, typed, problem)
				continue
			}
			shown[strings.TrimSpace(command.CommandPath())] = true
		}
	}
	if found < 150 {
		t.Errorf("only %d commands were found", found)
	}
	for _, path := range []string{"profile lint", "profile graph", "profile list", "profile explain"} {
		if !shown[path] {
			t.Errorf("no page shows %s", path)
		}
	}
}

// namedBy is the command that a line names, or what is wrong with the line.
func namedBy(root *cobra.Command, typed string) (*cobra.Command, string) {
	typed, _, _ = strings.Cut(typed, " | ")
	words := strings.Fields(typed)[1:]
	if len(words) > 0 && words[0] == "completion" {
		return root, "" // cobra adds it when the program runs
	}
	command, _, err := root.Find(words)
	if err != nil {
		return nil, err.Error()
	}
	if command == root && len(words) > 0 && !strings.HasPrefix(words[0], "-") {
		return nil, "there is no such command"
	}
	for _, match := range flagsIn.FindAllStringSubmatch(strings.Join(words, " "), -1) {
		if slices.Contains([]string{"help", "version", "h"}, match[1]) {
			continue
		}
		flag := command.Flags().Lookup(match[1])
		for _, flags := range []*pflag.FlagSet{command.Flags(), command.InheritedFlags(), command.PersistentFlags()} {
			if len(match[1]) == 1 && flag == nil {
				flag = flags.ShorthandLookup(match[1])
			}
			if flag == nil {
				flag = flags.Lookup(match[1])
			}
		}
		if flag == nil {
			return nil, command.CommandPath() + " has no flag " + match[1]
		}
	}
	return command, ""
}
