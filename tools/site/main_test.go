package main

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	linksTo = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	ids     = regexp.MustCompile(` id="([^"]*)"`)
)

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// All that the pages of this repository lead to is there, and they load nothing from elsewhere.
func TestTheSiteIsWhole(t *testing.T) {
	to := t.TempDir()
	pages, err := build("../..", to, "v0.2.0")
	if err != nil || pages < 70 {
		t.Fatalf("%d pages, %v", pages, err)
	}
	found := 0
	err = filepath.WalkDir(to, func(file string, _ fs.DirEntry, err error) error {
		if filepath.Ext(file) != ".html" {
			return err
		}
		text := read(t, file)
		if strings.Count(text, "<h1") != 1 || !strings.Contains(text, "<small>v0.2.0</small>") {
			t.Errorf("%s has %d titles, or no version", file, strings.Count(text, "<h1"))
		}
		for _, link := range linksTo.FindAllStringSubmatch(text, -1) {
			u, err := url.Parse(link[1])
			switch {
			case err != nil:
				t.Errorf("%s: %v", file, err)
				continue
			case u.Scheme != "":
				if strings.HasPrefix(link[0], "src") {
					t.Errorf("%s loads %s", file, link[1])
				}
				continue
			}
			found++
			target := file
			if u.Path != "" {
				target = filepath.Join(filepath.Dir(file), u.Path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %v", file, err)
			} else if u.Fragment != "" && filepath.Ext(target) == ".html" && !strings.Contains(strings.Join(ids.FindAllString(read(t, target), -1), " "), ` id="`+u.Fragment+`"`) {
				t.Errorf("%s: %s: there is no such place", file, link[1])
			}
		}
		return err
	})
	if err != nil || found < 5000 {
		t.Errorf("%d links, %v", found, err)
	}
	if search := read(t, filepath.Join(to, "search.js")); !strings.Contains(search, `"to":"docs/tasks/page.html"`) || !strings.Contains(search, "drydock plan create") {
		t.Error("the search does not have the pages")
	}
}

func TestOnlyASiteIsReplaced(t *testing.T) {
	to := t.TempDir()
	for range 2 {
		if _, err := build("../..", to, "dev"); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(to, "site.css")); err != nil {
		t.Fatal(err)
	}
	if _, err := build("../..", to, "dev"); err == nil || !strings.Contains(err.Error(), "name a folder of its own") {
		t.Errorf("it replaces what is no site: %v", err)
	}
}

func TestALinkThatLeadsNowhereIsAnError(t *testing.T) {
	for link, want := range map[string]string{"b.md": "leads nowhere", "a.md#c": "no such heading", "#c": "no such heading"} {
		root := t.TempDir()
		if err := os.MkdirAll(filepath.Join(root, "docs"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "docs", "a.md"), []byte("# A\n\n[b]("+link+")\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := build(root, t.TempDir(), "dev"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", link, err)
		}
	}
}
