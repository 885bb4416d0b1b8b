package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// page is a page of the documentation.
type page struct {
	path, title string
	source      []byte
	root        ast.Node
	// anchors are the IDs of its headings.
	anchors map[string]bool
}

var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(html.WithUnsafe())) // the documentation is ours

func parse(file string, source []byte) (*page, error) {
	p := &page{path: file, source: source, anchors: map[string]bool{}}
	p.root = markdown.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(p))))
	if p.title == "" {
		return p, fmt.Errorf("%s: has no title", file)
	}
	return p, nil
}

var notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)

// Generate implements parser.IDs: headings have the anchors that forges give them.
func (p *page) Generate(value []byte, _ ast.NodeKind) []byte {
	plain := strings.TrimSpace(strings.NewReplacer("`", "", "*", "").Replace(string(value)))
	if p.title == "" {
		p.title = plain
	}
	anchor := strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(plain), ""), " ", "-")
	unique := anchor
	for n := 1; p.anchors[unique]; n++ {
		unique = fmt.Sprintf("%s-%d", anchor, n)
	}
	p.anchors[unique] = true
	return []byte(unique)
}

// Put implements parser.IDs.
func (p *page) Put(value []byte) { p.anchors[string(value)] = true }

func (p *page) html() ([]byte, error) {
	var out bytes.Buffer
	err := markdown.Renderer().Render(&out, p.source, p.root)
	return out.Bytes(), err
}

// text is what the page says, without its marks.
func (p *page) text() string {
	var out strings.Builder
	_ = ast.Walk(p.root, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function has no errors
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				out.Write(n.Segment.Value(p.source))
				out.WriteByte(' ')
			}
		case *ast.FencedCodeBlock:
			if entering {
				out.Write(n.Lines().Value(p.source))
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(out.String()), " ")
}

// link has the links of all pages lead to places of the site. Those to folders of the source tree become text.
func (s *site) link() error {
	var wrong []error
	for _, p := range s.sorted() {
		var folders []*ast.Link
		err := ast.Walk(p.root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			if l, is := n.(*ast.Link); is && entering {
				target, err := s.target(p, string(l.Destination))
				if l.Destination = []byte(target); err == nil && target == "" {
					folders = append(folders, l)
				}
				wrong = append(wrong, err)
			}
			return ast.WalkContinue, nil
		})
		wrong = append(wrong, err)
		for _, l := range folders {
			for child := l.FirstChild(); child != nil; child = l.FirstChild() {
				l.Parent().InsertBefore(l.Parent(), l, child)
			}
			l.Parent().RemoveChild(l.Parent(), l)
		}
	}
	return errors.Join(wrong...)
}

// target is where a link leads in the site; empty is nowhere. The changelog names pages as they were.
func (s *site) target(p *page, link string) (string, error) {
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return link, nil
	}
	file, anchor, _ := strings.Cut(link, "#")
	to := p.path
	if file != "" {
		to = path.Join(path.Dir(p.path), file)
	}
	if other := s.pages[to]; other != nil {
		if anchor != "" && !other.anchors[anchor] && p.path != "CHANGELOG.md" {
			return "", fmt.Errorf("%s: %s: there is no such heading", p.path, link)
		}
		if file == "" {
			return link, nil
		}
		return from(p, at(to)) + strings.TrimSuffix("#"+anchor, "#"), nil
	}
	info, err := os.Stat(filepath.Join(s.root, filepath.FromSlash(to)))
	switch {
	case p.path == "CHANGELOG.md" && err != nil:
		return "", nil
	case err != nil:
		return "", fmt.Errorf("%s: %s leads nowhere: %w", p.path, link, err)
	case info.IsDir():
		return "", nil
	}
	s.files[to] = true
	return from(p, to), nil
}
