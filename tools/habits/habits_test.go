// Package habits checks what the forge and the release read, without either.
package habits

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goreleaser/goreleaser/v2/pkg/config"
	"github.com/rhysd/actionlint"
	"go.yaml.in/yaml/v3"
)

const root = "../.."

func workflows(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(root + "/.github/workflows/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("workflows: %v (%v)", files, err)
	}
	return files
}

// lint checks one workflow; shellcheck is asked where it is installed.
func lint(t *testing.T, path string, content []byte) []*actionlint.Error {
	t.Helper()
	linter, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{Shellcheck: "shellcheck"})
	if err != nil {
		t.Fatal(err)
	}
	problems, err := linter.Lint(path, content, nil)
	if err != nil {
		t.Fatal(err)
	}
	return problems
}

func TestWorkflows(t *testing.T) {
	for _, path := range workflows(t) {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range lint(t, path, content) {
			t.Error(problem)
		}
	}
	if problems := lint(t, "bad.yaml", []byte("on: push\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    steps:\n      - run: echo ${{ nothing.here }}\n")); len(problems) == 0 {
		t.Error("a workflow with a mistake is found to be right")
	}
}

// An action is code of others that sees the repository's token: a tag can be moved, a commit cannot.
var pinned = regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40}$`)

func TestWorkflowsAskForNoMoreThanTheyNeed(t *testing.T) {
	for _, path := range workflows(t) {
		var w struct {
			Permissions map[string]string
			Jobs        map[string]struct {
				Permissions map[string]string
				Timeout     int `yaml:"timeout-minutes"`
				Steps       []struct {
					Uses string
					Run  string
					With map[string]any
				}
			}
		}
		read(t, path, &w)
		if len(w.Permissions) != 1 || w.Permissions["contents"] != "read" {
			t.Errorf("%s: permissions %v: want contents: read, and what a job needs in the job", path, w.Permissions)
		}
		for name, job := range w.Jobs {
			if job.Timeout == 0 {
				t.Errorf("%s: job %s has no timeout-minutes", path, name)
			}
			for _, step := range job.Steps {
				if step.Uses != "" && !pinned.MatchString(step.Uses) {
					t.Errorf("%s: %s is not pinned to a commit", path, step.Uses)
				}
				if strings.HasPrefix(step.Uses, "actions/checkout@") && step.With["persist-credentials"] != false {
					t.Errorf("%s: job %s keeps the token in the checkout", path, name)
				}
				for _, target := range makeTargets(step.Run) {
					if !hasTarget(t, target) {
						t.Errorf("%s: job %s runs make %s, which there is not", path, name, target)
					}
				}
			}
		}
	}
}

var makeCall = regexp.MustCompile(`(?m)^\s*make ([a-z-]+)`)

func makeTargets(script string) (targets []string) {
	for _, call := range makeCall.FindAllStringSubmatch(script, -1) {
		targets = append(targets, call[1])
	}
	return targets
}

func hasTarget(t *testing.T, name string) bool {
	t.Helper()
	makefile, err := os.ReadFile(root + "/Makefile")
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`(?m)^` + name + `:`).Match(makefile)
}

// made is where the release's manual pages and completions are made.
const made = ".bin/man"

func TestTheReleaseIsConfigured(t *testing.T) {
	c, err := config.Load(root + "/.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, build := range c.Builds {
		ids = append(ids, build.ID)
		if _, err := os.Stat(filepath.Join(root, build.Main)); err != nil {
			t.Errorf("build %s: %v", build.ID, err)
		}
		if !slices.Contains(build.Env, "CGO_ENABLED=0") {
			t.Errorf("build %s is not static", build.ID)
		}
	}
	for _, archive := range c.Archives {
		for _, id := range archive.IDs {
			if !slices.Contains(ids, id) {
				t.Errorf("archive %s is of %s, which is not built", archive.ID, id)
			}
		}
		for _, file := range archive.Files {
			if strings.HasPrefix(file.Source, made) {
				continue
			}
			if found, err := filepath.Glob(filepath.Join(root, file.Source)); err != nil || len(found) == 0 {
				t.Errorf("archive %s: no file is %s", archive.ID, file.Source)
			}
		}
	}
	for _, pkg := range c.NFPMs {
		for _, content := range pkg.Contents {
			if !strings.HasPrefix(content.Source, made) {
				t.Errorf("package %s: nobody makes %s", pkg.ID, content.Source)
			}
		}
	}
	if !slices.ContainsFunc(c.Before.Hooks, func(hook string) bool { return strings.Contains(hook, "-C tools/man . ../../"+made) }) {
		t.Errorf("nobody makes %s", made)
	}
	if len(c.SBOMs) == 0 || c.Checksum.NameTemplate == "" {
		t.Error("a release has SBOMs and checksums")
	}
	if _, err := config.LoadReader(strings.NewReader("version: 2\nbuildz: []\n")); err == nil {
		t.Error("a field that does not exist is taken")
	}
}

// Every module of the repository is updated.
func TestEveryModuleIsUpdated(t *testing.T) {
	var d struct {
		Updates []struct {
			Ecosystem   string `yaml:"package-ecosystem"`
			Directories []string
		}
	}
	read(t, root+"/.github/dependabot.yml", &d)
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != root {
			return filepath.SkipDir
		}
		if entry.Name() != "go.mod" {
			return nil
		}
		folder := "/" + filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(filepath.Dir(path), root), "/"))
		for _, update := range d.Updates {
			for _, pattern := range update.Directories {
				if ok, err := filepath.Match(pattern, folder); err != nil || ok {
					return err
				}
			}
		}
		t.Errorf(".github/dependabot.yml leaves out %s", folder)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTemplatesAreForms(t *testing.T) {
	files, err := filepath.Glob(root + "/.github/ISSUE_TEMPLATE/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("templates: %v (%v)", files, err)
	}
	for _, path := range files {
		var form struct {
			Name, Description string
			Body              []struct {
				Type, ID   string
				Attributes map[string]any
			}
		}
		read(t, path, &form)
		if form.Name == "" || form.Description == "" || len(form.Body) == 0 {
			t.Errorf("%s: name, description and body are needed", path)
		}
		for _, field := range form.Body {
			if !slices.Contains([]string{"markdown", "textarea", "input", "dropdown", "checkboxes"}, field.Type) {
				t.Errorf("%s: there is no field of type %q", path, field.Type)
			}
			if field.Type != "markdown" && (field.ID == "" || field.Attributes["label"] == nil) {
				t.Errorf("%s: a %s has no id or label", path, field.Type)
			}
		}
	}
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
