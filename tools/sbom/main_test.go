package main

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/spdx/tools-golang/json"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// The test's own binary is a Go binary with dependencies.
func TestADocumentOfABinary(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "sbom.json")
	o := options{name: "drydock", version: "v1.2.3-4-gabc+x", created: "2026-01-31T13:00:00+01:00"}
	if err := run(o, out, []string{self}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var doc spdx.Document
	if err := json.ReadInto(bytes.NewReader(text), &doc); err != nil {
		t.Fatal(err)
	}
	if got := doc.CreationInfo.Created; got != "2026-01-31T12:00:00Z" {
		t.Errorf("it was made at %s: SPDX wants UTC", got)
	}
	versions := map[string]string{}
	for _, p := range doc.Packages {
		versions[p.PackageName] = p.PackageVersion
	}
	if versions["drydock"] != o.version || versions["github.com/spdx/tools-golang"] == "" || !strings.HasPrefix(versions["stdlib"], "1.") {
		t.Errorf("the packages are %v", versions)
	}
	again := filepath.Join(t.TempDir(), "sbom.json")
	if err := run(o, again, []string{self}); err != nil {
		t.Fatal(err)
	}
	if second, err := os.ReadFile(again); err != nil || !bytes.Equal(text, second) {
		t.Errorf("the same binary gives another document (%v)", err)
	}
}

func TestAReplacedModuleIsWhatIsThere(t *testing.T) {
	info := &buildinfo.BuildInfo{GoVersion: "go1.26.1 X:some", Deps: []*debug.Module{
		{Path: "b.example/was", Version: "v1.0.0", Replace: &debug.Module{Path: "b.example/is", Version: "v1.1.0", Sum: "h1:x="}},
		{Path: "a.example/m", Version: "v0.1.0"},
	}}
	all := modules(info)
	if len(all) != 3 || all[0].PackageVersion != "1.26.1" || all[1].PackageName != "a.example/m" || all[2].PackageName != "b.example/is" {
		t.Fatalf("modules: %v %v %v", all[0], all[1], all[2])
	}
	if got := all[2].PackageExternalReferences[0].Locator; got != "pkg:golang/b.example/is@v1.1.0" {
		t.Errorf("purl %s", got)
	}
}

func TestWhatIsRefused(t *testing.T) {
	out := filepath.Join(t.TempDir(), "sbom.json")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for want, err := range map[string]error{
		"usage":                run(options{name: "x", version: "v1"}, out, nil),
		"-created \"today\"":   run(options{name: "x", version: "v1", created: "today"}, out, []string{self}),
		"unrecognized file":    run(options{name: "x", version: "v1", created: "2026-01-31T12:00:00Z"}, out, []string{"main.go"}),
		"lacks its version":    check([]byte(`{"spdxVersion":"SPDX-2.3","SPDXID":"SPDXRef-DOCUMENT"}`)),
		"describes 0 packages": check([]byte(`{"spdxVersion":"SPDX-2.3","SPDXID":"SPDXRef-DOCUMENT"}`)),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want an error with %q", err, want)
		}
	}
}
