package drydock_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	blocks    = regexp.MustCompile("(?s:```.*?```)|(?m:^    .*$)")
	linksIn   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headings  = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notInSlug = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors are those that a forge gives the headings of a page.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, heading := range headings.FindAllStringSubmatch(text, -1) {
		all[strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(heading[1]), ""), " ", "-")] = true
	}
	return all
}

// Each link of the documentation leads somewhere.
func TestLinksOfPagesLeadSomewhere(t *testing.T) {
	pages := pagesOf(t, "docs")
	for _, pattern := range []string{"*.md", "deploy/*/README.md"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, more...)
	}
	found := 0
	for _, page := range pages {
		if page == "CHANGELOG.md" {
			continue // it names pages as they were
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range linksIn.FindAllStringSubmatch(blocks.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(link[1], "://") || strings.HasPrefix(link[1], "mailto:") {
				continue
			}
			found++
			file, anchor, _ := strings.Cut(link[1], "#")
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s: %v", page, link[1], err)
				continue
			}
			if anchor == "" || filepath.Ext(target) != ".md" {
				continue
			}
			there, err := os.ReadFile(target)
			if err != nil || !anchors(string(there))[anchor] {
				t.Errorf("%s: %s: there is no such heading (%v)", page, link[1], err)
			}
		}
	}
	if found < 80 {
		t.Errorf("only %d links were found", found)
	}
}
