// Command sbom writes what is in Go binaries, as they themselves say it, as an SPDX document.
package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
	"github.com/spdx/tools-golang/spdxlib"
)

func main() {
	var o options
	flag.StringVar(&o.name, "name", "", "what the binaries are in, such as an image")
	flag.StringVar(&o.version, "version", "", "its version")
	flag.StringVar(&o.created, "created", "", "when it was made, in RFC 3339 (default: when the binaries' commit was)")
	out := flag.String("out", "", "the file to write")
	flag.Parse()
	if err := run(o, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

type options struct{ name, version, created string }

func run(o options, out string, binaries []string) error {
	if o.name == "" || o.version == "" || out == "" || len(binaries) == 0 {
		return errors.New("usage: sbom -name NAME -version VERSION -out FILE BINARY...")
	}
	var all []binary
	for _, path := range binaries {
		b, err := read(path)
		if err != nil {
			return err
		}
		all = append(all, b)
	}
	doc, err := document(o, all)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := json.Write(doc, &text, json.Indent(" ")); err != nil {
		return err
	}
	if err := check(text.Bytes()); err != nil {
		return fmt.Errorf("the document that was made is not valid: %w", err)
	}
	return os.WriteFile(out, text.Bytes(), 0o644)
}

// binary is a Go binary and what it says of itself.
type binary struct {
	name   string
	sha256 string
	info   *buildinfo.BuildInfo
}

func read(path string) (binary, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return binary{}, err
	}
	info, err := buildinfo.Read(bytes.NewReader(data))
	if err != nil {
		return binary{}, fmt.Errorf("%s: %w", path, err)
	}
	sum := sha256.Sum256(data)
	return binary{name: filepath.Base(path), sha256: hex.EncodeToString(sum[:]), info: info}, nil
}

func (b binary) setting(key string) string {
	for _, s := range b.info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

const (
	unknown = "NOASSERTION"
	licence = "Apache-2.0"
)

// document has the whole, its binaries, and the modules that each was made of.
func document(o options, all []binary) (*spdx.Document, error) {
	created := cmp.Or(o.created, all[0].setting("vcs.time"))
	at, err := time.Parse(time.RFC3339, created)
	if err != nil {
		return nil, fmt.Errorf("-created %q: want a time such as 2026-01-31T12:00:00Z: %w", created, err)
	}
	root := pkg("Image", o.name, o.version, "pkg:oci/"+o.name+"@"+o.version)
	root.PackageLicenseDeclared, root.PrimaryPackagePurpose = licence, "CONTAINER"
	doc := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: o.name + "-" + o.version,
		CreationInfo: &spdx.CreationInfo{Created: at.UTC().Format(time.RFC3339), Creators: []common.Creator{{CreatorType: "Tool", Creator: "drydock-sbom"}}},
		Packages:     []*spdx.Package{root},
	}
	relate := func(from common.ElementID, kind string, to common.ElementID) {
		doc.Relationships = append(doc.Relationships, &spdx.Relationship{
			RefA: common.MakeDocElementID("", string(from)), RefB: common.MakeDocElementID("", string(to)), Relationship: kind,
		})
	}
	relate("DOCUMENT", common.TypeRelationshipDescribe, root.PackageSPDXIdentifier)
	known := map[common.ElementID]bool{}
	// The same parts are the same document: its namespace says which.
	whole := sha256.New()
	for _, b := range all {
		fmt.Fprintln(whole, o.name, o.version, b.name, b.sha256)
		program := pkg("Binary", b.name, o.version, "")
		program.PackageLicenseDeclared, program.PrimaryPackagePurpose = licence, "APPLICATION"
		program.PackageFileName = b.name
		program.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: b.sha256}}
		program.PackageComment = b.setting("GOOS") + "/" + b.setting("GOARCH")
		if revision := b.setting("vcs.revision"); revision != "" {
			program.PackageComment += ", commit " + revision
		}
		doc.Packages = append(doc.Packages, program)
		relate(root.PackageSPDXIdentifier, common.TypeRelationshipContains, program.PackageSPDXIdentifier)
		for _, m := range modules(b.info) {
			if !known[m.PackageSPDXIdentifier] {
				known[m.PackageSPDXIdentifier] = true
				doc.Packages = append(doc.Packages, m)
			}
			relate(program.PackageSPDXIdentifier, common.TypeRelationshipDependsOn, m.PackageSPDXIdentifier)
		}
	}
	doc.DocumentNamespace = "https://spdx.org/spdxdocs/" + o.name + "-" + hex.EncodeToString(whole.Sum(nil))
	return doc, nil
}

// modules are those that the binary was linked of, the standard library first.
func modules(info *buildinfo.BuildInfo) []*spdx.Package {
	version, _, _ := strings.Cut(strings.TrimPrefix(info.GoVersion, "go"), " ")
	std := pkg("Module", "stdlib", version, "pkg:golang/stdlib@"+version)
	std.PackageLicenseDeclared = "BSD-3-Clause"
	all := []*spdx.Package{std}
	deps := slices.SortedFunc(slices.Values(info.Deps), func(a, b *debug.Module) int { return cmp.Compare(a.Path, b.Path) })
	for _, m := range deps {
		comment := ""
		if m.Replace != nil {
			comment = "takes the place of " + m.Path
			m = m.Replace
		}
		p := pkg("Module", m.Path, m.Version, "pkg:golang/"+m.Path+"@"+m.Version)
		if m.Sum != "" {
			comment = strings.TrimSpace("go.sum " + m.Sum + " " + comment)
		}
		p.PackageComment, p.PrimaryPackagePurpose = comment, "LIBRARY"
		all = append(all, p)
	}
	return all
}

// outside are the characters that an SPDX identifier may not have.
var outside = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

func pkg(kind, name, version, purl string) *spdx.Package {
	p := &spdx.Package{
		PackageSPDXIdentifier: common.ElementID(outside.ReplaceAllString(kind+"-"+name+"-"+version, "-")),
		PackageName:           name, PackageVersion: version, PackageDownloadLocation: unknown,
		IsFilesAnalyzedTagPresent: true, PackageLicenseConcluded: unknown, PackageLicenseDeclared: unknown, PackageCopyrightText: unknown,
	}
	if purl != "" {
		p.PackageExternalReferences = []*spdx.PackageExternalReference{{
			Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: purl,
		}}
	}
	return p
}

// check reads a document as others will: every relationship is of elements that are there, and nothing that SPDX 2.3 demands is
// missing.
func check(text []byte) error {
	var doc spdx.Document
	if err := json.ReadInto(bytes.NewReader(text), &doc); err != nil {
		return err
	}
	problems := []error{spdxlib.ValidateDocument(&doc)}
	if doc.SPDXVersion != spdx.Version || doc.DataLicense != spdx.DataLicense || doc.DocumentNamespace == "" || doc.DocumentName == "" {
		problems = append(problems, errors.New("the document lacks its version, licence, name or namespace"))
	}
	if described, err := spdxlib.GetDescribedPackageIDs(&doc); err != nil || len(described) != 1 {
		problems = append(problems, fmt.Errorf("it describes %d packages: want 1 (%v)", len(described), err))
	}
	seen := map[common.ElementID]bool{}
	for _, p := range doc.Packages {
		if seen[p.PackageSPDXIdentifier] {
			problems = append(problems, fmt.Errorf("%s is there twice", p.PackageSPDXIdentifier))
		}
		seen[p.PackageSPDXIdentifier] = true
		if p.PackageName == "" || p.PackageDownloadLocation == "" || p.FilesAnalyzed {
			problems = append(problems, fmt.Errorf("%s lacks its name or download location, or claims that files were analysed", p.PackageSPDXIdentifier))
		}
	}
	return errors.Join(problems...)
}
