package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"golang.org/x/mod/semver"
)

// versionsFile lists the versions whose pages a folder has, each in a folder of its own. The pages of all of them read it, so that those of
// an old version lead to a new one.
const versionsFile = "versions.js"

var (
	//go:embed versions.html
	versionsHTML string

	versionsTemplate = template.Must(template.New("versions.html").Parse(versionsHTML))

	versionName = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._-]*$`)
)

// folderOf is the folder of a version's pages. What is in it is replaced, unless it is something else than a site.
func folderOf(to, version string) (string, error) {
	if !versionName.MatchString(version) {
		return "", fmt.Errorf("-version %q: letters, digits, dots, dashes and underscores", version)
	}
	if err := isSite(to, versionsFile); err != nil {
		return "", err
	}
	folder := filepath.Join(to, version)
	if err := isSite(folder, "site.css"); err != nil {
		return "", err
	}
	return folder, os.RemoveAll(folder)
}

// isSite is an error where a folder has anything, but not the file that a site has.
func isSite(folder, file string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if _, err := os.Stat(filepath.Join(folder, file)); err != nil {
		return fmt.Errorf("%s has something else than a site: name a folder of its own", folder)
	}
	return nil
}

// putVersions writes the list of the versions that a folder has, and the page that leads to the newest.
func putVersions(to string) error {
	styles, err := filepath.Glob(filepath.Join(to, "*", "site.css"))
	if err != nil {
		return err
	}
	var all []string
	for _, style := range styles {
		all = append(all, filepath.Base(filepath.Dir(style)))
	}
	slices.SortFunc(all, newerFirst)
	list, err := json.Marshal(all)
	if err != nil {
		return err
	}
	var page bytes.Buffer
	if len(all) == 0 {
		return put(to, versionsFile, []byte("const versions = [];\n"))
	}
	if err := versionsTemplate.Execute(&page, all); err != nil {
		return err
	}
	return errors.Join(put(to, versionsFile, slices.Concat([]byte("const versions = "), list, []byte(";\n"))), put(to, "index.html", page.Bytes()))
}

// newerFirst has releases come first, the newest before the others, then their candidates, and then what is no version.
func newerFirst(a, b string) int {
	isRelease := func(v string) int {
		if semver.IsValid(v) && semver.Prerelease(v) == "" {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(isRelease(a), isRelease(b)), semver.Compare(b, a), cmp.Compare(a, b))
}
