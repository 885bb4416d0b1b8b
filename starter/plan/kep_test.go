package plan

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/starter/startertest"
	"drydock.dev/drydock/starter/terminal"
)

// kepOf is what -o kep prints of a plan.
func kepOf(t *testing.T, name string, p plan.Plan) api.KEPNodeMaintenance {
	t.Helper()
	tiers, err := p.Tiers()
	if err != nil {
		t.Fatal(err)
	}
	return api.KEPOf(api.Plan{
		PlanSummary: api.PlanSummary{Name: name, Reason: p.Reason}, Spec: &p,
		Stages:    &api.PlanStages{Stage: p.Stage, Tiers: tiers.Entries(), Begun: []api.StageBegun{{Stage: p.Stage, At: time.Unix(1, 0).UTC()}}},
		MoreNodes: 3,
	})
}

func TestPlansInTheShapeOfTheKEP(t *testing.T) {
	startertest.Golden(t, "plan_kep", func(w io.Writer) {
		output := terminal.Output{Format: terminal.FormatYAML}
		if err := output.Write(w, api.KEPOf(startertest.StagedPlan())); err != nil {
			t.Error(err)
		}
	})
}

// takenFrom is the plan that "plan create -f" makes of a file.
func takenFrom(t *testing.T, content string) (name string, p plan.Plan, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "plan.yaml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := &planFlags{}
	cmd := &cobra.Command{Use: "create"}
	flags.register(cmd)
	if err := cmd.ParseFlags([]string{"--file", file}); err != nil {
		t.Fatal(err)
	}
	_, p, err = flags.build(strings.NewReader(""), "", nil)
	return flags.name, p, err
}

func TestWhatIsPrintedAsKEPIsTakenAsInput(t *testing.T) {
	for name, input := range map[string]string{
		"all nodes":         `{"all":true,"stage":"Cordon"}`,
		"all but some":      `{"all":true,"exclude":["a","b"]}`,
		"names":             `{"nodes":["a","b"],"stage":"Drain","reason":"firmware 7"}`,
		"names but one":     `{"nodes":["a","b"],"exclude":["b"]}`,
		"a selector":        `{"selector":"pool=gpu,zone in (a,b),!old,size>3","exclude":["x"]}`,
		"a node selector":   `{"nodeSelector":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]},{"matchFields":[{"key":"metadata.name","operator":"In","values":["n"]}]}]}}`,
		"one but some":      `{"nodeSelector":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]},{"matchExpressions":[{"key":"b","operator":"Exists"}]}]},"exclude":["x","y"]}`,
		"tiers":             `{"nodes":["a"],"drainPlan":[{"podPriority":1000,"podSelector":"app=db,tier notin (x)"},{"podType":"DaemonSet","podPriority":5}]}`,
		"no standard tiers": `{"nodes":["a"],"drainPlan":{"include":[],"tiers":[{"podPriority":5000}]}}`,
		"some of them":      `{"nodes":["a"],"drainPlan":{"include":["Default","DaemonSet"]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			input = `{"strategy":{"type":"allAtOnce"},` + strings.TrimPrefix(input, "{")
			before, err := plan.Decode("firmware", []byte(input))
			if err != nil {
				t.Fatal(err)
			}
			printed := kepOf(t, "firmware", before)
			text, err := yaml.Marshal(printed)
			if err != nil {
				t.Fatal(err)
			}
			as, after, err := takenFrom(t, string(text))
			if err != nil || as != "firmware" {
				t.Fatalf("%q, %v of\n%s", as, err, text)
			}
			if diff := cmp.Diff(asJSON(t, printed), asJSON(t, kepOf(t, as, after))); diff != "" {
				t.Errorf("printed - printed of what was read +\n%s", diff)
			}
			if before.Requestor != after.Requestor || after.Strategy.Type != plan.AllAtOnce {
				t.Errorf("%+v", after)
			}
		})
	}
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestWhatIsWrongWithAKEPObjectIsNamed(t *testing.T) {
	const good = `{"apiVersion":"maintenance.example/v1alpha1","kind":"NodeMaintenance","metadata":{"name":"m","uid":"u","labels":{"a":"b"}},
		"spec":{"nodeSelector":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]}]},"stage":"Idle"},"status":{"anything":[1]}}`
	if name, _, err := takenFrom(t, good); name != "m" || err != nil {
		t.Errorf("%q, %v", name, err)
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"an unknown field":        {`"stage":"Idle"`, `"stages":"Idle"`, "spec.stages"},
		"one beside the spec":     {`"status"`, `"statuses"`, "statuses"},
		"another kind":            {`"NodeMaintenance"`, `"Maintenance"`, "kind:"},
		"medik8s' object":         {`maintenance.example/v1alpha1`, `nodemaintenance.medik8s.io/v1beta1`, "apiVersion:"},
		"no name":                 {`"name":"m"`, `"generateName":"m"`, "metadata.name: required"},
		"no nodes":                {`"nodeSelector":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]}]},`, ``, "spec.nodeSelector: required"},
		"a term without a word":   {`{"matchExpressions":[{"key":"a","operator":"Exists"}]}`, `{}`, "spec.nodeSelector.nodeSelectorTerms[0]"},
		"no such stage":           {`"Idle"`, `"Undrain"`, "stage"},
		"no such pod type":        {`"uid":"u"`, `"annotations":{"drydock.dev/include":"Pods"}`, "metadata.annotations[drydock.dev/include]"},
		"a tier without priority": {`"stage":"Idle"`, `"drainPlan":[{"podType":"Default"}]`, "podPriority: required"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := takenFrom(t, strings.Replace(good, c.old, c.new, 1)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}
