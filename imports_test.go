// Package drydock_test holds the project to its structure.
package drydock_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// listed is what the go command says of a package.
type listed struct {
	ImportPath    string
	Imports, Deps []string
}

// packages lists the packages of this module.
func packages(t *testing.T) map[string]listed {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Imports,Deps", "drydock/...")
	output, err := command.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	all := map[string]listed{}
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if isUnder(p.ImportPath, "drydock") {
			all[p.ImportPath] = p
		}
	}
	return all
}

func isUnder(path, parent string) bool { return path == parent || strings.HasPrefix(path, parent+"/") }

func TestImportsPointOneWay(t *testing.T) {
	all := packages(t)
	processes := []string{"drydock/worker", "drydock/starter"}
	for path, p := range all {
		refuse := func(refused ...string) {
			for _, dependency := range p.Deps {
				if slices.Contains(refused, dependency) {
					t.Errorf("%s depends on %s", path, dependency)
				}
			}
		}
		refuseUnder := func(in []string, parents ...string) {
			for _, dependency := range in {
				if slices.ContainsFunc(parents, func(parent string) bool { return isUnder(dependency, parent) }) {
					t.Errorf("%s imports %s", path, dependency)
				}
			}
		}
		if slices.ContainsFunc(p.Imports, func(i string) bool { return i == "drydock/k8s/k8stest" }) {
			t.Errorf("%s imports the API server for tests", path)
		}
		for _, process := range processes {
			if !isUnder(path, process) {
				refuseUnder(p.Imports, process)
			}
		}
		switch {
		case isUnder(path, "drydock/rules"):
			refuseUnder(p.Deps, "go.temporal.io", "k8s.io/client-go", "k8s.io/kubectl")
			refuseUnder(others(p.Deps, "drydock/rules"), "drydock")
		case isUnder(path, "drydock/api"):
			refuseUnder(p.Deps, "k8s.io/client-go", "k8s.io/kubectl")
			refuseUnder(others(p.Deps, "drydock/rules", "drydock/api"), "drydock")
		case isUnder(path, "drydock/workflows"):
			refuseUnder(p.Imports, "k8s.io/client-go", "k8s.io/kubectl", "drydock/k8s")
			refuse(processes...)
		case isUnder(path, "drydock/k8s"), isUnder(path, "drydock/config"):
			refuseUnder(p.Deps, append([]string{"drydock/activities", "drydock/workflows"}, processes...)...)
		case isUnder(path, "drydock/activities"):
			refuseUnder(p.Deps, append([]string{"drydock/workflows"}, processes...)...)
		}
	}
	for _, known := range []string{"drydock/rules/schedule", "drydock/rules/spec", "drydock/activities/drain", "drydock/k8s", "drydock/config"} {
		if len(all[known].Deps) == 0 {
			t.Errorf("nothing is known of %s", known)
		}
	}
}

// others are the packages that lie under none of the parents.
func others(paths []string, parents ...string) []string {
	var rest []string
	for _, path := range paths {
		if !slices.ContainsFunc(parents, func(parent string) bool { return isUnder(path, parent) }) {
			rest = append(rest, path)
		}
	}
	return rest
}
