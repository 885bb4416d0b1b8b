package drydock_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	kilobyte = 1024
	// largestPage is what one page has at most, largestFolder what all that are for users have together.
	largestPage, largestFolder, largestReadme = 40 * kilobyte, 328 * kilobyte, 10 * kilobyte
)

// pagesOf are the pages below a folder.
func pagesOf(t *testing.T, folder string) (pages []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// ofDevelopers are pages about how Drydock is built and tested, and runbooks, each of which one reads alone.
var ofDevelopers = regexp.MustCompile(`^docs/(architecture\.md$|development/|runbooks/)`)

// The documentation stays so small that it is read: who adds to a page takes something out.
func TestPagesAreSmall(t *testing.T) {
	sum := 0
	for _, page := range append(pagesOf(t, "docs"), "README.md") {
		info, err := os.Stat(page)
		if err != nil {
			t.Fatal(err)
		}
		size, limit := int(info.Size()), largestPage
		switch {
		case page == "README.md":
			limit = largestReadme
		case !ofDevelopers.MatchString(page):
			sum += size
		}
		if size > limit {
			t.Errorf("%s has %d bytes, more than %d", page, size, limit)
		}
	}
	if sum > largestFolder {
		t.Errorf("the pages for users have %d bytes together, more than %d", sum, largestFolder)
	}
}

// fences are the blocks of a page, with what stands behind their first fence.
var fences = regexp.MustCompile("(?ms)^ *```([^\n]*)\n(.*?)^ *```")

// tried are the pages whose blocks of commands an end-to-end test runs; starter/pages_test.go looks at the commands of all.
var tried []string

// Commands of a page are run by a test, or are an example.
func TestCommandsOfPagesAreRunOrExamples(t *testing.T) {
	run, examples := 0, 0
	for _, page := range append(pagesOf(t, "docs"), "README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range fences.FindAllStringSubmatch(string(text), -1) {
			switch first := strings.TrimSpace(strings.Split(strings.TrimSpace(block[2]), "\n")[0]); {
			case block[1] == "sh example":
				examples++
			case block[1] == "sh" && slices.Contains(tried, page):
				run++
			case block[1] == "sh":
				t.Errorf("%s: %q is in a block of commands that no test runs: mark the block as \"sh example\", or have an end-to-end test run the page, and name it here", page, first)
			case block[1] == "" && regexp.MustCompile(`^(\$ |drydock |kubectl |make |temporal )`).MatchString(first):
				t.Errorf("%s: %q is in a block without a language: mark it as \"sh\" and have a test run it, or as \"sh example\"", page, first)
			}
		}
	}
	if examples < 30 {
		t.Errorf("%d blocks are examples, %d are run", examples, run)
	}
}

// indented is a block that is marked by its indentation alone.
var indented = regexp.MustCompile(`(?m)^\n    [^ \n].*$`)

// Blocks of pages for users are fenced: lines of others look like a paragraph's, and are filled like one.
func TestBlocksOfPagesAreFenced(t *testing.T) {
	for _, page := range append(pagesOf(t, "docs"), "README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if ofDevelopers.MatchString(page) {
			continue
		}
		for _, block := range indented.FindAllString(fences.ReplaceAllString(string(text), ""), -1) {
			t.Errorf("%s: fence the block that begins with %q", page, strings.TrimSpace(block))
		}
	}
}

// The pictures of README.md are what the command line draws.
func TestReadmeShowsWhatIsDrawn(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"views/testdata/status_draining_80.golden", "starter/show/testdata/plan_fleet_80.golden"} {
		golden, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(readme), "\n```\n"+strings.TrimRight(string(golden), "\n")+"\n```\n") {
			t.Errorf("README.md does not show %s in a block", name)
		}
	}
}
