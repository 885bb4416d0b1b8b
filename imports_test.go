// Package drydock_test holds the project to its structure.
package drydock_test

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
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

// The product is the module of this folder, and what tests it one of its own.
const (
	product = "drydock.dev/drydock"
	lab     = product + "/lab"
)

// packages lists the packages of the product and of the lab.
func packages(t *testing.T) map[string]listed {
	t.Helper()
	all := packagesIn(t, ".")
	maps.Copy(all, packagesIn(t, "lab"))
	return all
}

// packagesIn lists the packages of the module in a folder, and those of ours on which they depend.
func packagesIn(t *testing.T, folder string) map[string]listed {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Imports,Deps", "./...")
	command.Dir = folder
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
		if isUnder(p.ImportPath, product) {
			all[p.ImportPath] = p
		}
	}
	return all
}

func isUnder(path, parent string) bool { return path == parent || strings.HasPrefix(path, parent+"/") }

// layer is a folder and what lies above it, or is none of its business: nothing below the folder may depend on that.
type layer struct {
	folder  string
	refused []string
	// own are the only packages of this module that may be used besides those of the layer itself; nil is no such rule.
	own []string
}

var (
	clients = []string{"k8s.io/client-go", "k8s.io/kubectl"}
	// sdks are those of the receivers of notifications.
	sdks = []string{
		"github.com/aws", "github.com/slack-go", "github.com/nicholas-fedor/shoutrrr", "github.com/wneessen/go-mail",
	}
	receivers = append([]string{"drydock.dev/drydock/notify", "drydock.dev/drydock/checks", "drydock.dev/drydock/audit/webhook"}, sdks...)
	// rulesInCEL are evaluated by activities alone: a library's next release must not change what a history replays to. The command
	// line compiles those of profiles, to lint them.
	rulesInCEL = []string{"drydock.dev/drydock/rules/policy", "drydock.dev/drydock/rules/profile/cel", "github.com/google/cel-go"}
	effects    = []string{"drydock.dev/drydock/activities", "drydock.dev/drydock/workflows"}
	processes  = []string{"drydock.dev/drydock/worker", "drydock.dev/drydock/starter", "drydock.dev/drydock/client"}
)

var layers = []layer{
	{folder: "drydock.dev/drydock/rules", refused: slices.Concat(clients, []string{"go.temporal.io"}), own: []string{}},
	{folder: "drydock.dev/drydock/api", refused: slices.Concat(clients, rulesInCEL), own: []string{"drydock.dev/drydock/rules"}},
	{folder: "drydock.dev/drydock/views", refused: slices.Concat(clients, rulesInCEL), own: []string{"drydock.dev/drydock/rules", "drydock.dev/drydock/api"}},
	{folder: "drydock.dev/drydock/secret", own: []string{"drydock.dev/drydock/rules"}},
	{folder: "drydock.dev/drydock/sections", own: []string{"drydock.dev/drydock/rules", "drydock.dev/drydock/secret"}},
	{folder: "drydock.dev/drydock/k8s", own: []string{"drydock.dev/drydock/rules", "drydock.dev/drydock/api"}},
	{folder: "drydock.dev/drydock/outbound", refused: clients, own: []string{"drydock.dev/drydock/rules", "drydock.dev/drydock/api", "drydock.dev/drydock/secret"}},
	{folder: "drydock.dev/drydock/notify", refused: slices.Concat(effects, processes)},
	{folder: "drydock.dev/drydock/checks", refused: slices.Concat(effects, processes)},
	{folder: "drydock.dev/drydock/audit", refused: slices.Concat(effects, processes)},
	{folder: "drydock.dev/drydock/config", refused: slices.Concat(sdks, effects, processes)},
	{folder: "drydock.dev/drydock/activities", refused: slices.Concat(sdks, []string{"drydock.dev/drydock/workflows"}, processes)},
	{folder: "drydock.dev/drydock/workflows", refused: slices.Concat(sdks, processes)},
	{folder: "drydock.dev/drydock/worker", refused: []string{"drydock.dev/drydock/starter"}},
	{folder: "drydock.dev/drydock/client", refused: slices.Concat(clients, receivers, effects, rulesInCEL), own: []string{"drydock.dev/drydock/rules", "drydock.dev/drydock/api"}},
	{folder: "drydock.dev/drydock/overview", refused: slices.Concat(clients, receivers, effects, rulesInCEL), own: []string{
		"drydock.dev/drydock/rules", "drydock.dev/drydock/api", "drydock.dev/drydock/client", "drydock.dev/drydock/views",
	}},
	{folder: "drydock.dev/drydock/page", refused: slices.Concat(receivers, effects, rulesInCEL), own: []string{
		"drydock.dev/drydock/rules", "drydock.dev/drydock/api", "drydock.dev/drydock/client", "drydock.dev/drydock/views",
		"drydock.dev/drydock/overview", "drydock.dev/drydock/inbound", "drydock.dev/drydock/k8s",
	}},
	{folder: "drydock.dev/drydock/maintain", refused: slices.Concat(clients, receivers, rulesInCEL), own: []string{
		"drydock.dev/drydock/rules", "drydock.dev/drydock/api", "drydock.dev/drydock/workflows/reset",
	}},
	{folder: "drydock.dev/drydock/starter", refused: slices.Concat(receivers, effects, []string{"drydock.dev/drydock/rules/policy", "drydock.dev/drydock/worker"})},
	// The types of the Kubernetes objects import no client: programs that read and write them bring their own.
	{folder: "drydock.dev/drydock/bridge", refused: slices.Concat(receivers, effects, rulesInCEL), own: []string{
		"drydock.dev/drydock/rules", "drydock.dev/drydock/api", "drydock.dev/drydock/client",
		"drydock.dev/drydock/config/temporalenv", "drydock.dev/drydock/config/tracing",
		"drydock.dev/drydock/config/payloadcodec", "drydock.dev/drydock/config/renewed",
		"drydock.dev/drydock/inbound", "drydock.dev/drydock/secret",
	}},
	{folder: "drydock.dev/drydock/bridge/v1alpha1", refused: slices.Concat(clients, []string{"sigs.k8s.io/controller-runtime"}), own: []string{"drydock.dev/drydock/rules", "drydock.dev/drydock/api"}},
	// Its own workflow calls package maintain, which needs a package of workflows.
	{folder: lab + "/chaos", refused: slices.Concat(receivers, []string{"drydock.dev/drydock/activities"})},
	{folder: lab + "/soak", refused: slices.Concat(receivers, effects, []string{lab + "/chaos"})},
	{folder: "drydock.dev/drydock/deploy", refused: slices.Concat(receivers, effects)},
	{folder: lab + "/demo", refused: slices.Concat(receivers, effects)},
	// A benchmark runs the scheduler's workflow by itself.
	{folder: lab + "/bench", refused: sdks},
}

// TestImportsPointOneWay holds the packages to the layers of docs/architecture.md: what needs the contract only links
// no activity, and what is not the worker no SDK of a receiver.
func TestImportsPointOneWay(t *testing.T) {
	all := packages(t)
	for _, l := range layers {
		found := false
		for path, p := range all {
			if !isUnder(path, l.folder) {
				continue
			}
			found = true
			for _, dependency := range p.Deps {
				switch {
				case isUnder(dependency, l.folder):
				case isUnderAny(dependency, l.refused), l.own != nil && isUnder(dependency, "drydock.dev/drydock") && !isUnderAny(dependency, l.own):
					t.Errorf("%s depends on %s", path, dependency)
				}
			}
		}
		if !found {
			t.Errorf("there is no package below %s", l.folder)
		}
	}
}

// room is the folder of the repository that a package is in. Those below deploy/ have nothing in common: each is a room.
func room(path string) string {
	at := strings.SplitN(strings.TrimPrefix(path, product+"/"), "/", 3)
	if at[0] == "deploy" && len(at) > 1 {
		return at[0] + "/" + at[1]
	}
	return at[0]
}

// TestNoTwoRoomsImportEachOther holds the folders to an order in which one can read them: the layers leave open how those that may know of
// each other do.
func TestNoTwoRoomsImportEachOther(t *testing.T) {
	imports := map[[2]string][]string{}
	for path, p := range packages(t) {
		for _, imported := range p.Imports {
			if from, to := room(path), room(imported); isUnder(imported, product) && from != to {
				imports[[2]string{from, to}] = append(imports[[2]string{from, to}], path+" imports "+imported)
			}
		}
	}
	if len(imports) < 50 {
		t.Errorf("only %d rooms import another", len(imports))
	}
	for pair, there := range imports {
		if back := imports[[2]string{pair[1], pair[0]}]; pair[0] < pair[1] && len(back) > 0 {
			t.Errorf("%s and %s import each other:\n%s", pair[0], pair[1], strings.Join(append(there, back...), "\n"))
		}
	}
}

// TestTheProductDoesNotDependOnTheLab keeps what tests the product, and the modules that only tests need, out of the product's module.
func TestTheProductDoesNotDependOnTheLab(t *testing.T) {
	for path := range packagesIn(t, ".") {
		if isUnder(path, lab) {
			t.Errorf("the product depends on %s", path)
		}
	}
}

// TestOnlyActivitiesTouchTheWorld keeps clients of Kubernetes and rules in CEL out of workflow code, and what is for tests out of the rest.
func TestOnlyActivitiesTouchTheWorld(t *testing.T) {
	for path, p := range packages(t) {
		for _, imported := range p.Imports {
			switch {
			case isForTests(imported) && !isForTests(path) && !isUnder(path, lab):
				t.Errorf("%s imports %s, which is for tests", path, imported)
			case isUnder(path, "drydock.dev/drydock/workflows") && isUnderAny(imported, slices.Concat([]string{"drydock.dev/drydock/k8s"}, clients, rulesInCEL)):
				t.Errorf("%s imports %s", path, imported)
			}
		}
	}
}

// TestProgramsStaySmall keeps out of what is shipped whatever has all kinds of Kubernetes in it, or their schemas: each registers
// itself when a program starts, so that it is linked whole. drydock.dev/drydock/k8s/kube is there instead.
func TestProgramsStaySmall(t *testing.T) {
	all := packages(t)
	for _, program := range []string{"drydock.dev/drydock/worker/drydock-worker", "drydock.dev/drydock/starter/drydock"} {
		if len(all[program].Deps) == 0 {
			t.Fatalf("there is no program %s", program)
		}
		for _, dependency := range all[program].Deps {
			if isUnderAny(dependency, []string{"k8s.io/client-go/kubernetes", "k8s.io/kubectl", "github.com/google/gnostic-models"}) {
				t.Errorf("%s depends on %s", program, dependency)
			}
		}
	}
}

func isUnderAny(path string, parents []string) bool {
	return slices.ContainsFunc(parents, func(parent string) bool { return isUnder(path, parent) })
}
