// Command site makes a web site of the documentation: a page for each Markdown page, at the same place as in the repository, with a list of all
// of them and a search, which loads nothing from anywhere and works without a server. Each version is in a folder of its own, and its pages lead
// to the others. A link that leads nowhere is an error.
package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"drydock.dev/drydock/rules/web"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed site.css
	siteCSS string
	//go:embed search.js
	searchJS string

	pageTemplate = template.Must(template.New("page.html").Parse(pageHTML))
)

func main() {
	version := flag.String("version", "dev", "the `VERSION` that the pages are of")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: site [-version VERSION] SOURCE-TREE FOLDER   makes the site of a version in FOLDER/VERSION, and leaves other versions")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 2 {
		flag.Usage()
		os.Exit(2)
	}
	pages, err := build(flag.Arg(0), flag.Arg(1), *version)
	if err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
	fmt.Printf("%d pages: open %s\n", pages, filepath.Join(flag.Arg(1), *version, "index.html"))
}

// sections are the parts of the list of pages, by the folders of their pages.
var sections = []struct{ folder, name string }{
	{".", "Drydock"}, {"docs", "Begin"}, {"docs/tasks", "Tasks"}, {"docs/concepts", "Concepts"}, {"docs/reference", "Reference"},
	{"docs/runbooks", "Runbooks"}, {"docs/development", "Development"},
}

// site is a site that is made.
type site struct {
	root string
	// pages are by their paths in the source tree, and files are others to which they lead.
	pages map[string]*page
	files map[string]bool
}

// build makes the site, and returns how many pages it has.
func build(root, to, version string) (int, error) {
	s := &site{root: root, pages: map[string]*page{}, files: map[string]bool{}}
	if err := s.read(); err != nil {
		return 0, err
	}
	if err := s.link(); err != nil {
		return 0, err
	}
	folder, err := folderOf(to, version)
	if err == nil {
		err = putVersions(to) // first, so that a build that was interrupted can be repeated
	}
	if err != nil {
		return 0, err
	}
	for _, p := range s.sorted() {
		if err := s.write(folder, version, p); err != nil {
			return 0, err
		}
	}
	for file := range s.files {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err == nil {
			err = put(folder, file, text)
		}
		if err != nil {
			return 0, err
		}
	}
	index, err := s.index()
	return len(s.pages), errors.Join(err, put(folder, "search.js", append(index, searchJS...)),
		put(folder, "site.css", []byte(web.Style()+siteCSS)), putVersions(to))
}

// read reads all pages.
func (s *site) read() error {
	all, err := filepath.Glob(filepath.Join(s.root, "*.md"))
	if err != nil {
		return err
	}
	err = filepath.WalkDir(filepath.Join(s.root, "docs"), func(file string, _ fs.DirEntry, err error) error {
		switch filepath.Ext(file) {
		case ".md":
			all = append(all, file)
		case ".png", ".svg":
			relative, problem := filepath.Rel(s.root, file)
			s.files[filepath.ToSlash(relative)], err = true, errors.Join(err, problem)
		}
		return err
	})
	for _, file := range all {
		err = errors.Join(err, s.add(file))
	}
	return err
}

func (s *site) add(file string) error {
	relative, err := filepath.Rel(s.root, file)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	p, err := parse(filepath.ToSlash(relative), text)
	s.pages[p.path] = p
	return err
}

// sorted are the pages in the order of their paths.
func (s *site) sorted() []*page {
	var all []*page
	for _, p := range s.pages {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *page) int { return strings.Compare(a.path, b.path) })
	return all
}

// at is where a page is in the site. The readme is what is opened first.
func at(page string) string {
	if page == "README.md" {
		return "index.html"
	}
	return strings.TrimSuffix(page, ".md") + ".html"
}

// entry is a page in the list.
type entry struct {
	Title, To string
	Here      bool
}

type section struct {
	Name    string
	Entries []entry
}

// list is the list of all pages, as it stands on one of them.
func (s *site) list(here *page) (all []section) {
	for _, of := range sections {
		one := section{Name: of.name}
		for _, p := range s.sorted() {
			if path.Dir(p.path) == of.folder {
				one.Entries = append(one.Entries, entry{Title: p.title, To: from(here, at(p.path)), Here: p == here})
			}
		}
		all = append(all, one)
	}
	return all
}

// from is how a place in the site is written on a page.
func from(here *page, place string) string {
	return strings.Repeat("../", strings.Count(here.path, "/")) + place
}

func (s *site) write(to, version string, p *page) error {
	body, err := p.html()
	if err != nil {
		return err
	}
	var text bytes.Buffer
	err = pageTemplate.Execute(&text, map[string]any{
		"Title": p.title, "Version": version, "Body": template.HTML(body), //nolint:gosec // the documentation is ours
		"Sections": s.list(p), "Style": from(p, "site.css"), "Search": from(p, "search.js"), "Root": from(p, ""), "All": from(p, "../"), "Home": from(p, "index.html"),
	})
	return errors.Join(err, put(to, at(p.path), text.Bytes()))
}

// index is what the search looks in.
func (s *site) index() ([]byte, error) {
	type found struct {
		Title string `json:"title"`
		To    string `json:"to"`
		Text  string `json:"text"`
	}
	var all []found
	for _, p := range s.sorted() {
		all = append(all, found{p.title, at(p.path), p.text()})
	}
	text, err := json.Marshal(all)
	return slices.Concat([]byte("const pages = "), text, []byte(";\n")), err
}

func put(to, file string, text []byte) error {
	name := filepath.Join(to, filepath.FromSlash(file))
	return errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, text, 0o644))
}
