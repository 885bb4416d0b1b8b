// Package bridge tests from end to end what Kubernetes' API server makes of Drydock's objects.
package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/lab/world"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/spec"
)

// name is that of the objects, unless a case has another.
const name = "kernel"

// kind is a kind of objects, and how the input of its workflow is decoded.
type kind struct {
	name, plural, input string
	decode              func(name string, s v1alpha1.Spec) error
}

var kinds = []kind{
	{"NodeMaintenance", "nodemaintenances", "maintenance", func(name string, s v1alpha1.Spec) error {
		input, _, err := s.Input(map[string]string{"requestor": name})
		if err != nil {
			return err
		}
		m, err := spec.Decode(input, nil)
		if m.Lockstep || m.Remediation != nil || m.ReportTo != nil {
			err = errors.Join(err, errors.New("lockstep, remediation, reportTo: no object sets them"))
		}
		return errors.Join(err, m.Reserved())
	}},
	{"MaintenancePlan", "maintenanceplans", "plan", func(name string, s v1alpha1.Spec) error {
		input, _, err := s.Input(nil)
		if err != nil {
			return err
		}
		p, err := plan.Decode(name, input)
		if p.Object != nil || p.ReportTo != nil {
			err = errors.Join(err, errors.New("object, reportTo: no object sets them"))
		}
		return errors.Join(err, p.Reserved())
	}},
	{"HealthCheck", "healthchecks", "health", func(name string, s v1alpha1.Spec) error {
		input, _, err := s.Input(nil)
		if err != nil {
			return err
		}
		c, err := health.Decode(input)
		if c.Object != nil {
			err = errors.Join(err, errors.New("object: Drydock alone sets it"))
		}
		return errors.Join(err, health.CheckName(name))
	}},
}

// server is an API server with Drydock's CustomResourceDefinitions.
type server struct {
	*testing.T
	ctx context.Context
	rest.Interface
}

const (
	definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	group       = "/apis/drydock.dev/v1alpha1/"
)

func newServer(t *testing.T) *server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(cancel)
	cluster, err := devstack.StartCluster(ctx, t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	})
	s := &server{t, ctx, cluster.Client.CoreV1().RESTClient()}
	files, err := filepath.Glob("../../../deploy/kubernetes/crds/*.yaml")
	if err != nil || len(files) != len(kinds) {
		t.Fatalf("files %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		definition, err := yaml.YAMLToJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.do(s.Post().AbsPath(definitions).Param("fieldValidation", "Strict"), definition); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	for _, k := range kinds {
		err := world.Eventually(ctx, time.Minute, k.plural+" are served", func() error { return s.served(k) })
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// served wants a definition that is established, whose schema has nothing wrong, and that the API server answers for.
func (s *server) served(k kind) error {
	text, err := s.do(s.Get().AbsPath(definitions, k.plural+".drydock.dev"), nil)
	if err != nil {
		return err
	}
	var definition struct {
		Status struct {
			Conditions []struct{ Type, Status, Message string } `json:"conditions"`
		} `json:"status"`
	}
	if err := json.Unmarshal(text, &definition); err != nil {
		return err
	}
	established := false
	for _, c := range definition.Status.Conditions {
		if c.Type == "NonStructuralSchema" && c.Status == "True" {
			s.Fatalf("%s: %s", k.plural, c.Message)
		}
		established = established || c.Type == "Established" && c.Status == "True"
	}
	if !established {
		return fmt.Errorf("%+v", definition.Status.Conditions)
	}
	_, err = s.do(s.Get().AbsPath(group+k.plural), nil)
	return err
}

func (s *server) do(r *rest.Request, body []byte) ([]byte, error) {
	if body != nil {
		r = r.SetHeader("Content-Type", "application/json").Body(body)
	}
	return r.SetHeader("Accept", "application/json").DoRaw(s.ctx)
}

// object is one of a kind as it is sent.
func (k kind) object(name string, spec json.RawMessage) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"drydock.dev/v1alpha1","kind":%q,"metadata":{"name":%q},"spec":%s}`, k.name, name, spec)
}

// create returns why the API server refuses an object, and the spec of one that it takes; it keeps none.
func (s *server) create(k kind, name string, spec json.RawMessage) (taken json.RawMessage, refusal error) {
	s.Helper()
	text, err := s.do(s.Post().AbsPath(group+k.plural).Param("dryRun", "All").Param("fieldValidation", "Strict"), k.object(name, spec))
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return nil, err
	case err != nil:
		s.Fatalf("%s: %v", spec, err)
	}
	var object struct{ Spec json.RawMessage }
	if err := json.Unmarshal(text, &object); err != nil {
		s.Fatal(err)
	}
	return object.Spec, nil
}

// TestTheDefinitions has an API server serve the objects.
func TestTheDefinitions(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	t.Run("the API server takes what the decoder takes", func(t *testing.T) { s.with(t).comparesWithTheDecoder() })
	t.Run("what changes of a spec", func(t *testing.T) { s.with(t).changes() })
	t.Run("the status is a subresource", func(t *testing.T) { s.with(t).hasStatuses() })
}

func (s *server) with(t *testing.T) *server {
	of := *s
	of.T = t
	return &of
}

// comparesWithTheDecoder gives many specs to both. Where they disagree it fails, unless that is known.
func (s *server) comparesWithTheDecoder() {
	t := s.T
	hit := map[string]bool{}
	for _, k := range kinds {
		taken, refused := 0, 0
		for _, c := range casesOf(t, k) {
			got, refusal := s.create(k, c.name, c.spec)
			decoded := k.decode(c.name, v1alpha1.Spec{Raw: c.spec})
			why := known(c)
			switch {
			case (refusal == nil) == (decoded == nil):
				// What is known to differ for most values of a field may agree for some.
				if why != "" && c.path == "extra" {
					t.Errorf("%s %s: they agree: API server: %v, decoder: %v", k.name, c, refusal, decoded)
				}
			case why != "":
				hit[why] = true
			default:
				t.Errorf("%s %s:\nAPI server: %v\ndecoder: %v", k.name, c, refusal, decoded)
			}
			if refusal != nil {
				refused++
				continue
			}
			taken++
			if !same(t, got, c.spec) && c.value != "null" {
				t.Errorf("%s %s: the API server has made %s of %s", k.name, c, got, c.spec)
			}
		}
		t.Logf("%s: %d were taken, %d refused", k.name, taken, refused)
		if taken < 70 || refused < 70 {
			t.Errorf("%s: %d were taken, %d refused: that is few", k.name, taken, refused)
		}
	}
	for _, d := range disagreements {
		if !hit[d.why] {
			t.Errorf("nothing disagrees any more: %s", d.why)
		}
	}
}

func same(t *testing.T, a, b json.RawMessage) bool {
	t.Helper()
	var x, y any
	if err := errors.Join(json.Unmarshal(a, &x), json.Unmarshal(b, &y)); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(x, y)
}

// changes changes objects that are there.
func (s *server) changes() {
	for _, c := range changes {
		k := kinds[c.kind]
		path := group + k.plural
		s.Run(k.name+" "+c.patch, func(t *testing.T) {
			if _, err := s.do(s.Post().AbsPath(path), k.object(name, json.RawMessage(c.spec))); err != nil {
				t.Fatal(err)
			}
			_, err := s.Patch(types.MergePatchType).AbsPath(path, name).Body([]byte(c.patch)).DoRaw(s.ctx)
			if refused := apierrors.IsInvalid(err); refused == c.taken || !refused && err != nil {
				t.Errorf("%v, want it taken: %v", err, c.taken)
			}
			if _, err := s.do(s.Delete().AbsPath(path, name), nil); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// hasStatuses writes a status as the bridge does, which changes no spec, and looks at what kubectl get shows.
func (s *server) hasStatuses() {
	t := s.T
	for i, want := range []string{"worker-01 Ready ci True", "Running 12 3 2 1", "Remediating 12 10 2 1"} {
		k := kinds[i]
		path := group + k.plural
		if _, err := s.do(s.Post().AbsPath(path), k.object(name, json.RawMessage(firsts[i]))); err != nil {
			t.Fatal(err)
		}
		patch := fmt.Sprintf(`{"apiVersion":"drydock.dev/v1alpha1","kind":%q,"metadata":{"name":%q},"status":%s}`, k.name, name, statuses[i])
		_, err := s.Patch(types.ApplyPatchType).AbsPath(path, name, "status").Param("fieldManager", "bridge").Param("fieldValidation", "Strict").
			Body([]byte(patch)).DoRaw(s.ctx)
		if err != nil {
			t.Fatal(err)
		}
		text, err := s.Get().AbsPath(path).SetHeader("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").DoRaw(s.ctx)
		var table struct {
			ColumnDefinitions []struct {
				Name     string
				Priority int
			}
			Rows []struct{ Cells []any }
		}
		if err := errors.Join(err, json.Unmarshal(text, &table)); err != nil || len(table.Rows) != 1 {
			t.Fatalf("%v: %s", err, text)
		}
		var cells []string
		for i, column := range table.ColumnDefinitions {
			if column.Priority == 0 && column.Name != "Name" && column.Name != "Age" {
				cells = append(cells, fmt.Sprint(table.Rows[0].Cells[i]))
			}
		}
		if got := strings.Join(cells, " "); got != want {
			t.Errorf("%s: %s, want %s", k.name, got, want)
		}
		// The status is not a part of the object that a user writes.
		text, err = s.Patch(types.MergePatchType).AbsPath(path, name).Body([]byte(`{"status":{"phase":"Forged"}}`)).DoRaw(s.ctx)
		if err != nil || strings.Contains(string(text), "Forged") {
			t.Errorf("%s: %v: %s", k.name, err, text)
		}
	}
}
