package main

import (
	"context"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
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
	for _, version := range []string{"v0.9.0", "v0.10.0"} {
		if pages, err := build("../..", to, version); err != nil || pages < 70 {
			t.Fatalf("%s: %d pages, %v", version, pages, err)
		}
	}
	found := 0
	err := filepath.WalkDir(to, func(file string, _ fs.DirEntry, err error) error {
		if filepath.Ext(file) != ".html" {
			return err
		}
		text := read(t, file)
		if strings.Count(text, "<h1") != 1 || !strings.Contains(text, ">v0.10.0</a>") && !strings.Contains(text, ">v0.9.0</a>") {
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
	if list := read(t, filepath.Join(to, "versions.js")); list != "const versions = [\"v0.10.0\",\"v0.9.0\"];\n" {
		t.Errorf("versions: %s", list)
	}
	if search := read(t, filepath.Join(to, "v0.9.0", "search.js")); !strings.Contains(search, `"to":"docs/tasks/page.html"`) || !strings.Contains(search, "drydock plan create") {
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
	for _, file := range []string{"dev/site.css", "versions.js"} {
		if err := os.Remove(filepath.Join(to, file)); err != nil {
			t.Fatal(err)
		}
		if _, err := build("../..", to, "dev"); err == nil || !strings.Contains(err.Error(), "name a folder of its own") {
			t.Errorf("it replaces what is no site: %v", err)
		}
		if _, err := os.Stat(filepath.Join(to, "dev", "search.js")); err != nil {
			t.Errorf("it has removed what is no site: %v", err)
		}
	}
	for _, version := range []string{"", "..", "a/b", "-v"} {
		if _, err := build("../..", t.TempDir(), version); err == nil || !strings.Contains(err.Error(), "-version") {
			t.Errorf("version %q: %v", version, err)
		}
	}
}

func TestTheNewestReleaseIsFirst(t *testing.T) {
	got := []string{"dev", "v0.2.0-rc.1", "v0.10.0", "v0.1.0-3-gabc", "abcdef", "v0.9.0"}
	slices.SortFunc(got, newerFirst)
	if want := []string{"v0.10.0", "v0.9.0", "v0.2.0-rc.1", "v0.1.0-3-gabc", "abcdef", "dev"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// shownIn is the text of a page after its scripts ran, in Debian's Chromium.
func shownIn(t *testing.T, address string, more ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	args := append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + t.TempDir(), "--virtual-time-budget=5000"}, more...)
	out, err := exec.CommandContext(ctx, "chromium", append(args, address)...).Output()
	if err != nil {
		t.Fatalf("chromium, which make chromium installs: %v", err)
	}
	return string(out)
}

// DRYDOCK_PICTURES names a folder that keeps what the browser shows.
func TestTheSiteInABrowser(t *testing.T) {
	to := t.TempDir()
	for _, version := range []string{"v0.1.0", "v0.2.0"} {
		if _, err := build("../..", to, version); err != nil {
			t.Fatal(err)
		}
	}
	page := "file://" + filepath.Join(to, "v0.1.0", "docs", "tasks", "page.html")
	all := shownIn(t, page+"?q=disruption+budget", "--dump-dom")
	if option := `<option value="v0.2.0">v0.2.0</option>`; !strings.Contains(all, option) {
		t.Errorf("there is no %s", option)
	}
	_, found, _ := strings.Cut(all, `<div id="found" role="status">`)
	found, _, _ = strings.Cut(found, "</div>")
	for _, want := range []string{`pages:</p>`, `href="../../docs/concepts/drain.html"`} {
		if !strings.Contains(found, want) {
			t.Errorf("a search shows no %s: %s", want, found)
		}
	}
	if forged := shownIn(t, page+"?q="+url.QueryEscape(`<img src=x onerror="document.title='run'">`), "--dump-dom"); strings.Contains(forged, "<img src=\"x\"") || strings.Contains(forged, "<title>run") {
		t.Error("markup of a search becomes a part of the page")
	}
	if none := shownIn(t, page+"?q=nosuchwordanywhere", "--dump-dom"); !strings.Contains(none, "No page has these words.") {
		t.Error("a search that finds nothing does not say so")
	}
	if newest := shownIn(t, "file://"+filepath.Join(to, "index.html"), "--dump-dom"); !strings.Contains(newest, `data-version="v0.2.0"`) {
		t.Error("the first page does not lead to the newest version")
	}
	if dir := os.Getenv("DRYDOCK_PICTURES"); dir != "" {
		shownIn(t, page+"?q=budget", "--screenshot="+filepath.Join(dir, "site.png"), "--window-size=1200,900")
		shownIn(t, page, "--screenshot="+filepath.Join(dir, "site-phone-dark.png"), "--window-size=500,900", "--force-dark-mode", "--blink-settings=preferredColorScheme=0")
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
