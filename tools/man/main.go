// Command man writes the manual pages of drydock, and its completions for shells, into a folder: for archives and packages of a release.
package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"drydock.dev/drydock/starter"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: man DIR VERSION RFC3339-DATE")
		os.Exit(2)
	}
	date, err := time.Parse(time.RFC3339, os.Args[3])
	if err == nil {
		err = write(starter.Command(), os.Args[1], os.Args[2], date)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

// write writes man/NAME.1.gz of each command and completions/drydock.SHELL below a folder, the same for the same version and date.
func write(root *cobra.Command, dir, version string, date time.Time) error {
	man, completions := filepath.Join(dir, "man"), filepath.Join(dir, "completions")
	root.DisableAutoGenTag = true
	err := errors.Join(os.RemoveAll(man), os.RemoveAll(completions), os.MkdirAll(man, 0o755), os.MkdirAll(completions, 0o755))
	if err == nil {
		err = doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "drydock " + version, Manual: "Drydock", Date: &date}, man)
	}
	if err != nil {
		return err
	}
	pages, err := filepath.Glob(filepath.Join(man, "*.1"))
	for _, page := range pages {
		err = errors.Join(err, pack(page))
	}
	return errors.Join(err,
		root.GenBashCompletionFileV2(filepath.Join(completions, "drydock.bash"), true),
		root.GenZshCompletionFile(filepath.Join(completions, "drydock.zsh")),
		root.GenFishCompletionFile(filepath.Join(completions, "drydock.fish"), true),
	)
}

// pack puts a compressed file in the place of another, without the time at which that happens.
func pack(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(path+".gz", packed.Bytes(), 0o644), os.Remove(path))
}
