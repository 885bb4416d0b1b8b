package setup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"drydock.dev/drydock/api"
	manifests "drydock.dev/drydock/deploy/kubernetes"
	"drydock.dev/drydock/rules/setup"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
)

const day = 24 * time.Hour

// stage is both servers, and what the command line is given to find them.
type stage struct {
	temporal   *temporalServer
	kubernetes *apiServer
	changes    *changes
	environ    []string
	stdin      string
}

// complete is where nothing is missing.
func complete() *stage {
	s := bare()
	s.temporal.exists, s.temporal.retention, s.temporal.attributes = true, 40*day, map[string]enums.IndexedValueType{}
	s.kubernetes.all = true
	for _, a := range api.SearchAttributes {
		s.temporal.attributes[a.Name] = enums.INDEXED_VALUE_TYPE_KEYWORD
	}
	return s
}

// bare is where everything is missing.
func bare() *stage {
	return &stage{temporal: &temporalServer{}, kubernetes: &apiServer{}, changes: &changes{}}
}

// start serves both, and has every command of the stage find them.
func (s *stage) start(t *testing.T) *stage {
	t.Helper()
	s.temporal.changes, s.kubernetes.changes = s.changes, s.changes
	s.environ = append([]string{
		"HOME=" + t.TempDir(), "USER=jane", "TEMPORAL_NAMESPACE=" + fleet, "TEMPORAL_ADDRESS=" + s.temporal.start(t), "KUBECONFIG=" + s.kubernetes.start(t),
	}, s.environ...)
	return s
}

// run runs drydock setup, and returns what it prints for both, its exit code and its error in words.
func (s *stage) run(t *testing.T, args ...string) (out, errs string, code int, said string) {
	t.Helper()
	return s.runWithin(t.Context(), t, args...)
}

func (s *stage) runWithin(ctx context.Context, t *testing.T, args ...string) (out, errs string, code int, said string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	app := invocation.New(invocation.Process{
		Args: []string{"drydock"}, Environ: s.environ, Stdin: strings.NewReader(s.stdin), Stdout: &stdout, Stderr: &stderr,
	})
	root := &cobra.Command{Use: "drydock", SilenceErrors: true, SilenceUsage: true}
	app.Global.Register(root.PersistentFlags())
	root.AddCommand(New(app))
	root.SetArgs(append([]string{"setup"}, args...))
	err := root.ExecuteContext(ctx)
	if err != nil {
		said = err.Error()
	}
	return stdout.String(), stderr.String(), exit.CodeOf(err), said
}

// report runs drydock setup for programs.
func (s *stage) report(t *testing.T, args ...string) (r setup.Report, messages string, code int) {
	t.Helper()
	out, messages, code, said := s.run(t, append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v: %s%s%s", err, out, messages, said)
	}
	return r, messages, code
}

// listed are the items of a report in a state, by kind and name.
func listed(r setup.Report, states ...setup.State) string {
	var all []string
	for _, i := range r.Items {
		if slices.Contains(states, i.State) {
			all = append(all, strings.TrimSpace(string(i.Kind)+" "+i.Name))
		}
	}
	return strings.Join(all, ", ")
}

// lacking finds the first thing of a kind that a report says is missing.
func lacking(r setup.Report, kind setup.Kind) setup.Item {
	for _, i := range r.Lacking() {
		if i.Kind == kind {
			return i
		}
	}
	return setup.Item{}
}

// attributes are all of Drydock's search attributes as a report lists them.
func attributes() string {
	var all []string
	for _, a := range api.SearchAttributes {
		all = append(all, "SearchAttribute "+a.Name)
	}
	return strings.Join(all, ", ")
}

var denied = serviceerror.NewPermissionDenied("Request unauthorized.", "")

// What setup plans for a state of the servers: what is missing, what --apply would do, and what to do where it cannot. It changes nothing.
func TestWhatIsPlanned(t *testing.T) {
	for name, c := range map[string]struct {
		at   *stage
		args []string
		// on changes the servers.
		on       func(s *stage)
		missing  string
		fixes    []setup.Fix
		contains []string
	}{
		"nothing is missing": {at: complete()},
		"everything is": {
			at: bare(), args: []string{"--as", manifests.Account}, missing: "Namespace fleet, " + attributes() + ", Permissions base",
			fixes:    []setup.Fix{setup.CreateNamespace, setup.AddAttribute, setup.ApplyPermissions},
			contains: []string{"temporal operator namespace create --namespace fleet --retention 30d", "kubectl --context prod apply -f deploy/kubernetes/rbac.yaml"},
		},
		"an account of one's own": {
			at: bare(), on: func(s *stage) { s.temporal = complete().temporal }, missing: "Permissions base",
			contains: []string{"The account is admin", "--as " + manifests.Account},
		},
		"a part is wanted": {
			at: bare(), on: func(s *stage) { s.temporal = complete().temporal }, args: []string{"--as", manifests.Account, "--with", "volumes"},
			missing: "Permissions base, Permissions volumes", fixes: []setup.Fix{setup.ApplyPermissions}, contains: []string{"rbac-volumes.yaml", "--with"},
		},
		"a health check that runs": {
			at: bare(), on: func(s *stage) {
				s.temporal = complete().temporal
				s.temporal.running = map[string]int64{api.HealthCheckType: 2, api.ProfilesType: 1}
			},
			missing: "Permissions base, Permissions health, Permissions profiles", contains: []string{"2 health checks, running", "1 evaluation of profiles, running"},
		},
		"what runs cannot be counted": {
			at: complete(), on: func(s *stage) { s.temporal.refused = map[string]error{"CountWorkflowExecutions": denied} },
			missing: "Temporal workflows", contains: []string{"--with", "Request unauthorized"},
		},
		"histories are kept too shortly": {
			at: complete(), on: func(s *stage) { s.temporal.retention = 7 * day }, missing: "Retention", fixes: []setup.Fix{setup.RaiseRetention},
		},
		"histories are to be kept for longer": {
			at: complete(), args: []string{"--retention", "90d"}, missing: "Retention", fixes: []setup.Fix{setup.RaiseRetention}, contains: []string{"90d"},
		},
		"an attribute is of another type": {
			at: complete(), on: func(s *stage) { s.temporal.attributes["DrydockKind"] = enums.INDEXED_VALUE_TYPE_TEXT },
			missing: "SearchAttribute DrydockKind", contains: []string{"is there as Text"},
		},
		"attributes cannot be listed": {
			at: complete(), on: func(s *stage) {
				s.temporal.refused = map[string]error{"ListSearchAttributes": serviceerror.NewInvalidArgument("not now")}
			},
			missing: attributes(), contains: []string{"not now"},
		},
		"the namespace must not be looked at": {
			at: complete(), on: func(s *stage) { s.temporal.refused = map[string]error{"DescribeNamespace": denied} },
			missing: "Namespace fleet", contains: []string{"cannot be looked at", "TEMPORAL_API_KEY"},
		},
		"plans recur": {
			at: complete(), on: func(s *stage) {
				s.temporal.schedules = map[string]string{
					api.PlanID("", "weekly"): "drydock", api.PlanID("prod", "theirs"): "prod/drydock", "somebody's": "x", api.PlanID("", "deleted"): gone,
				}
			},
			contains: []string{`"recurring plans: weekly"`},
		},
		"plans recur on another queue": {
			at: complete(), on: func(s *stage) { s.temporal.schedules = map[string]string{api.PlanID("", "weekly"): "old"} },
			missing: "Schedules", contains: []string{"weekly (task queue old)", "drydock plan schedule", "--task-queue"},
		},
		"schedules cannot be listed": {
			at: complete(), on: func(s *stage) { s.temporal.refused = map[string]error{"ListSchedules": denied} },
			missing: "Schedules", contains: []string{"recurring plans need them"},
		},
		"Temporal does not answer": {
			at: complete(), args: []string{"--address", "127.0.0.1:1"}, missing: "Temporal", contains: []string{"127.0.0.1:1 is not reachable", "TEMPORAL_ADDRESS"},
		},
		"Temporal says nothing of itself": {
			at: complete(), on: func(s *stage) { s.temporal.refused = map[string]error{"GetSystemInfo": denied} },
			missing: "Temporal", contains: []string{"TEMPORAL_API_KEY"},
		},
		"nobody may impersonate": {
			at: complete(), on: func(s *stage) { s.kubernetes.refused = []string{"impersonate"} }, args: []string{"--as", manifests.Account},
			missing: "Permissions", contains: []string{"the worker's own kubeconfig"},
		},
		"Kubernetes is left out": {at: bare(), on: func(s *stage) { s.temporal = complete().temporal }, args: []string{"--skip-kubernetes"}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.on != nil {
				c.on(c.at)
			}
			r, _, code := c.at.start(t).report(t, c.args...)
			text, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			if got := listed(r, setup.Missing, setup.Unknown); got != c.missing || !slices.Equal(r.Fixes(), c.fixes) || r.Ready != (c.missing == "") {
				t.Errorf("missing %s, want %s; fixes %v, want %v; ready %t\n%s", got, c.missing, r.Fixes(), c.fixes, r.Ready, text)
			}
			if want := map[bool]int{true: exit.OK, false: exit.Failed}[c.missing == ""]; code != want {
				t.Errorf("exit code %d, want %d", code, want)
			}
			for _, want := range c.contains {
				if !strings.Contains(string(text), want) {
					t.Errorf("%q is not in %s", want, text)
				}
			}
			if sent := c.at.changes.take(); len(sent) > 0 {
				t.Errorf("without --apply it has sent %q", sent)
			}
		})
	}
}

// A worker's configuration says which cluster's workers are meant, and what they need.
func TestTheConfigurationSaysWhatIsNeeded(t *testing.T) {
	s := complete()
	s.kubernetes = &apiServer{}
	s.start(t)
	config := filepath.Join(t.TempDir(), "worker.yaml")
	text := "cluster: prod\ntaskQueue: nodes\nprofiles: {file: profiles.yaml}\nchecks: {smoke: {job: {namespace: tests}}}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const missing = "Permissions base, Permissions profiles, Permissions jobs in tests"
	r, _, _ := s.report(t, "--config", config)
	if got := listed(r, setup.Missing); got != missing || !strings.Contains(strings.Join(s.temporal.queries, ""), "TaskQueue = 'prod/nodes'") {
		t.Errorf("missing %s; asked %q", got, s.temporal.queries)
	}
	s.environ = append(s.environ, "DRYDOCK_CONFIG="+config)
	s.temporal.queries = nil
	if r, _, _ = s.report(t, "--cluster", "other"); listed(r, setup.Missing) != missing || !strings.Contains(s.temporal.queries[0], "TaskQueue = 'other/nodes'") {
		t.Errorf("missing %s; asked %q", listed(r, setup.Missing), s.temporal.queries)
	}
	// A kubeconfig that the worker's configuration names counts before the environment's.
	s.stdin = "kubernetes: {kubeconfig: /nowhere}"
	if _, _, code, said := s.run(t, "--config", "-"); code != exit.Usage || !strings.Contains(said, "/nowhere") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// What is refused before anybody is asked, and the word that mends it.
func TestWhatIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		args    []string
		stdin   string
		environ string
		want    []string
	}{
		"two ways at once":             {args: []string{"--apply", "--print"}, want: []string{"--apply and --print: one of them"}},
		"commands as JSON":             {args: []string{"--print", "-o", "json"}, want: []string{"--print", "--output json"}},
		"an unknown format":            {args: []string{"-o", "xml"}, want: []string{"xml"}},
		"a short retention":            {args: []string{"--retention", "7d"}, want: []string{"--retention 7d", "at least 30d"}},
		"permissions of nobody":        {args: []string{"--as", "me", "--skip-kubernetes"}, want: []string{"leave out --skip-kubernetes"}},
		"parts of nobody":              {args: []string{"--with", "volumes", "--skip-kubernetes"}, want: []string{"leave out --skip-kubernetes"}},
		"an unknown part":              {args: []string{"--with", "volume"}, want: []string{`"volume"`, "volumes"}},
		"a cluster's name":             {args: []string{"--cluster", "Prod"}, want: []string{`"Prod"`, "lower-case"}},
		"a configuration's cluster":    {args: []string{"--config", "-"}, stdin: "cluster: Prod", want: []string{"-: ", `"Prod"`, "lower-case"}},
		"no YAML":                      {args: []string{"--config", "-"}, stdin: "a: [", want: []string{"standard input: not valid YAML"}},
		"another type":                 {args: []string{"--config", "-"}, stdin: "taskQueue: {}", want: []string{"-: ", "taskQueue"}},
		"a configuration's checks":     {args: []string{"--config", "-"}, stdin: "checks: 1", want: []string{"checks"}},
		"no such file":                 {args: []string{"--config", "/nowhere.yaml"}, want: []string{"/nowhere.yaml"}},
		"no such context":              {args: []string{"--context", "staging"}, want: []string{"staging"}},
		"no kubeconfig, permissions":   {args: []string{"--as", "me"}, environ: "KUBECONFIG=", want: []string{"kubeconfig"}},
		"no kubeconfig, parts":         {args: []string{"--with", "volumes"}, environ: "KUBECONFIG=", want: []string{"kubeconfig"}},
		"Temporal's own configuration": {args: []string{"--temporal-profile", "none"}, want: []string{"Temporal's configuration", "none"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := bare()
			s.stdin = c.stdin
			s.start(t)
			s.environ = append(s.environ, c.environ)
			_, _, code, said := s.run(t, c.args...)
			for _, want := range c.want {
				if code != exit.Usage || !strings.Contains(said, want) || strings.Count(said, "/nowhere.yaml") > 1 {
					t.Errorf("exit code %d: %q, want %q in it", code, said, want)
				}
			}
			if sent := s.changes.take(); len(sent) > 0 {
				t.Errorf("it has sent %q", sent)
			}
		})
	}
}

// Where nobody names a Kubernetes and none is found, there is none to look at.
func TestKubernetesMayBeAbsent(t *testing.T) {
	s := complete().start(t)
	s.environ = append(s.environ, "KUBECONFIG=")
	if r, _, code := s.report(t); code != exit.OK || r.Server != "" || strings.Contains(listed(r, setup.Present, setup.Optional), "Permissions") {
		t.Errorf("exit code %d, %+v", code, r)
	}
}

// One that is named and does not answer is missing.
func TestKubernetesThatDoesNotAnswer(t *testing.T) {
	s := complete().start(t)
	s.environ = append(s.environ, "KUBECONFIG="+kubeconfig(t, "http://127.0.0.1:1"))
	r, _, code := s.report(t)
	if item := lacking(r, setup.Kubernetes); code != exit.Failed || !strings.Contains(item.Text, "http://127.0.0.1:1 cannot be asked") || !strings.Contains(item.NextStep, "--skip-kubernetes") {
		t.Errorf("exit code %d, %+v", code, r.Items)
	}
}

// registration is what --apply sends to add all search attributes.
func registration() string {
	var names []string
	for _, a := range api.SearchAttributes {
		names = append(names, a.Name)
	}
	slices.Sort(names)
	return "add attributes " + strings.Join(names, " ")
}

// What --apply sends in which order, what it reports, and that a second time it sends nothing.
func TestWhatIsApplied(t *testing.T) {
	base := []string{
		"apply namespaces/drydock", "apply serviceaccounts/drydock-worker", "apply clusterroles/drydock-worker", "apply clusterrolebindings/drydock-worker",
	}
	volumes := []string{"apply clusterroles/drydock-worker-volumes", "apply clusterrolebindings/drydock-worker-volumes"}
	nodeLeases := []string{"apply roles/drydock-worker-node-leases", "apply rolebindings/drydock-worker-node-leases"}
	for name, c := range map[string]struct {
		on      func(s *stage)
		args    []string
		sent    []string
		made    string
		missing string // afterwards
	}{
		"nothing": {on: func(s *stage) { *s = *complete() }},
		"everything": {
			args: []string{"--with", "volumes"}, sent: slices.Concat([]string{"create namespace fleet, 720h0m0s", registration()}, base, volumes, nodeLeases),
			made: "Namespace fleet, " + attributes() + ", Permissions base, Permissions volumes",
		},
		"a server that is slow to know of it": {
			on: func(s *stage) { s.temporal.unaware, s.kubernetes.slow = 5, 30 },
			// The base is asked for first: what it lacks is enough to apply it.
			sent: slices.Concat([]string{"create namespace fleet, 720h0m0s", registration()}, base), made: "Namespace fleet, " + attributes() + ", Permissions base",
		},
		"the retention": {
			on:   func(s *stage) { *s = *complete(); s.temporal.retention = day },
			args: []string{"--retention", "60d"}, sent: []string{"retain 1440h0m0s"}, made: "Retention",
		},
		"one attribute": {
			on:   func(s *stage) { *s = *complete(); delete(s.temporal.attributes, "DrydockKind") },
			sent: []string{"add attributes DrydockKind"}, made: "SearchAttribute DrydockKind",
		},
		"permissions where Temporal is away": {
			args: []string{"--address", "127.0.0.1:1"}, sent: base, made: "Permissions base", missing: "Temporal",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := bare()
			if c.on != nil {
				c.on(s)
			}
			s.start(t)
			args := append([]string{"--apply", "--as", manifests.Account}, c.args...)
			r, messages, _ := s.report(t, args...)
			if sent := s.changes.take(); !slices.Equal(sent, c.sent) {
				t.Errorf("sent %q\nwant %q", sent, c.sent)
			}
			if got := listed(r, setup.Made); got != c.made || strings.Count(messages, ": done\n") != strings.Count(messages, "\n") {
				t.Errorf("made %s, want %s; it said\n%s", got, c.made, messages)
			}
			r, messages, _ = s.report(t, args...)
			if sent := s.changes.take(); len(sent) > 0 || listed(r, setup.Made) != "" || messages != "" {
				t.Errorf("a second time it has sent %q and made %s: %s", sent, listed(r, setup.Made), messages)
			}
			if got := listed(r, setup.Missing, setup.Unknown); got != c.missing {
				t.Errorf("afterwards are missing: %s, want %s", got, c.missing)
			}
		})
	}
}

// What --apply may not do is said with the reason, and with what makes it instead.
func TestWhatCannotBeApplied(t *testing.T) {
	for name, c := range map[string]struct {
		on      func(s *stage)
		args    []string
		kind    setup.Kind
		tried   string
		next    string
		sent    string
		missing string
	}{
		"the namespace": {
			on:   func(s *stage) { s.temporal.refused = map[string]error{"RegisterNamespace": denied} },
			kind: setup.Namespace, tried: "creating namespace fleet: Request unauthorized.", next: "temporal operator namespace create",
			// What is Kubernetes' is made without it.
			sent: "apply clusterrolebindings/drydock-worker", missing: "Namespace fleet, " + attributes(),
		},
		"the attributes": {
			on:   func(s *stage) { s.temporal.refused = map[string]error{"AddSearchAttributes": denied} },
			kind: setup.SearchAttribute, tried: "registering search attributes in namespace fleet: Request unauthorized.", next: "temporal operator search-attribute create",
			sent: "apply clusterrolebindings/drydock-worker", missing: attributes(),
		},
		"the retention": {
			on: func(s *stage) {
				*s = *complete()
				s.temporal.retention, s.temporal.refused = day, map[string]error{"UpdateNamespace": denied}
			},
			kind: setup.Retention, tried: "changing the retention of namespace fleet: Request unauthorized.", next: "temporal operator namespace update", missing: "Retention",
		},
		"the permissions": {
			on: func(s *stage) {
				s.temporal, s.kubernetes.refused = complete().temporal, []string{"clusterroles"}
			},
			kind: setup.Permissions, tried: "rbac.yaml: clusterroles is forbidden", next: "kubectl --context prod apply -f deploy/kubernetes/rbac.yaml",
			sent: "apply serviceaccounts/drydock-worker", missing: "Permissions base",
		},
		"a namespace of Temporal Cloud": {
			on: func(s *stage) {
				s.temporal.refused = map[string]error{"RegisterNamespace": denied}
			},
			args: []string{"--namespace", "fleet.a1b2c"},
			kind: setup.Namespace, next: "tcld namespace create --namespace fleet ", sent: "apply clusterrolebindings/drydock-worker",
			missing: "Namespace fleet.a1b2c, " + attributes(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := bare()
			c.on(s)
			s.start(t)
			args := append([]string{"--apply", "--as", manifests.Account}, c.args...)
			r, messages, code := s.report(t, args...)
			item := lacking(r, c.kind)
			if code != exit.Failed || !strings.HasPrefix(item.Tried, c.tried) || !strings.Contains(strings.Join(item.Commands, "\n")+item.NextStep, c.next) {
				t.Errorf("exit code %d, %+v", code, item)
			}
			if got := listed(r, setup.Missing, setup.Unknown); got != c.missing {
				t.Errorf("missing %s, want %s", got, c.missing)
			}
			if c.tried != "" && !strings.Contains(messages, c.tried) {
				t.Errorf("it said %s", messages)
			}
			sent := append(s.changes.take(), "")
			if c.sent != "" && sent[len(sent)-2] != c.sent || c.sent == "" && len(sent) > 1 {
				t.Errorf("sent %q", sent)
			}
			out, _, _, _ := s.run(t, args...)
			if c.tried != "" && !strings.Contains(out, "could not be done: "+c.tried) || !strings.Contains(out, "By hand:\n") {
				t.Errorf("it says nothing of what else to do:\n%s", out)
			}
		})
	}
}

// standing is both servers as they are, of which nothing can be made before an interrupt.
type standing struct {
	setup.Found
	interrupt context.CancelFunc
	tried     []setup.Fix
}

func (s *standing) look(context.Context) setup.Found { return s.Found }

func (s *standing) do(ctx context.Context, fix setup.Fix, _ []string) error {
	s.tried = append(s.tried, fix)
	s.interrupt()
	return ctx.Err()
}

func TestAnInterruptEndsWhatIsApplied(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	on := &standing{Found: setup.Found{Temporal: setup.Service{Namespace: fleet}}, interrupt: cancel}
	w := wanted(setup.DefaultRetention, nil, "drydock")
	var out strings.Builder
	fix(ctx, on, w, setup.Decide(w, on.Found), &out)
	if !slices.Equal(on.tried, []setup.Fix{setup.CreateNamespace}) || out.String() != "" {
		t.Errorf("tried %v, and said %q", on.tried, out.String())
	}
	if _, _, code, said := complete().start(t).runWithin(ctx, t); code != exit.Failed || !strings.Contains(said, context.Canceled.Error()) {
		t.Errorf("exit code %d: %q", code, said)
	}
}

func TestWhatTakesEffectIsAwaited(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		ask  func(ctx context.Context, asked int) (bool, error)
		want string
		took time.Duration
	}{
		"at once":        {ask: func(context.Context, int) (bool, error) { return true, nil }},
		"after a while":  {ask: func(_ context.Context, asked int) (bool, error) { return asked == 3, nil }, took: time.Second},
		"a failure":      {ask: func(context.Context, int) (bool, error) { return true, broken }, want: "broken"},
		"never":          {ask: func(context.Context, int) (bool, error) { return false, nil }, want: "nothing is there after 1m30s: run it again in a few minutes", took: takesEffect},
		"without answer": {ask: silent, want: "nothing is there after 1m30s: run it again in a few minutes", took: takesEffect},
		"interrupted":    {ask: silent, want: "context canceled", took: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				if c.want == "context canceled" {
					time.AfterFunc(time.Minute, cancel)
				}
				defer cancel()
				begun, asked := time.Now(), 0
				err := await(ctx, takesEffect, "nothing is there", func(ctx context.Context) (bool, error) {
					asked++
					return c.ask(ctx, asked)
				})
				if got := strings.TrimPrefix(fmt.Sprint(err), "<nil>"); got != c.want || time.Since(begun) != c.took {
					t.Errorf("%q after %s, want %q after %s", got, time.Since(begun), c.want, c.took)
				}
			})
		})
	}
}

// silent is a server that does not answer.
func silent(ctx context.Context, _ int) (bool, error) {
	<-ctx.Done()
	return false, ctx.Err()
}

// Every manifest can be applied: its kinds have a resource here.
func TestAllManifestsCanBeApplied(t *testing.T) {
	parts, err := manifests.Parts()
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range parts {
		for _, object := range part.Objects {
			if resources[object.GetKind()] == "" {
				t.Errorf("%s: no resource is known for %s", part.File, object.GetKind())
			}
		}
	}
	if names := partNames(); len(names) != len(parts) || names[0] != manifests.Base {
		t.Errorf("--with completes %q", names)
	}
}

// What --print prints can be given to a shell: commands, and all else is a comment of one line.
func TestWhatIsPrinted(t *testing.T) {
	for name, c := range map[string]struct {
		on   func(s *stage)
		code int
		want string
	}{
		"nothing": {on: func(s *stage) { *s = *complete() }},
		"everything": {want: "temporal operator namespace create --namespace fleet --retention 30d\n" +
			"temporal operator search-attribute create --namespace fleet" + strings.ReplaceAll(strings.ReplaceAll(" "+attributes(), "SearchAttribute ", "--name "), ",", " --type Keyword") + " --type Keyword\n" +
			"kubectl --context prod apply -f deploy/kubernetes/rbac.yaml\n"},
		"what no command makes": {
			on: func(s *stage) {
				*s = *complete()
				s.temporal.schedules = map[string]string{api.PlanID("", "weekly"): "old\nrm -rf /"}
			},
			code: exit.Failed,
			want: "# Schedules: runs of these recurring plans begin on a task queue that is not the workers' (drydock): weekly (task queue old rm -rf /)\n" +
				"# Have their plans recur anew: \"drydock plan schedule NAME\" with --cron or --every; or name the queue that is meant (--task-queue, --cluster).\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := bare()
			if c.on != nil {
				c.on(s)
			}
			out, _, code, _ := s.start(t).run(t, "--print", "--as", manifests.Account)
			if out != c.want || code != c.code {
				t.Errorf("exit code %d, want %d:\n%s\nwant\n%s", code, c.code, out, c.want)
			}
			if sent := s.changes.take(); len(sent) > 0 {
				t.Errorf("it has sent %q", sent)
			}
		})
	}
}

// What people read: states in words, what is not needed in one line, and what to do next.
func TestWhatIsShown(t *testing.T) {
	s := bare().start(t)
	want := func(code int, texts []string, args ...string) {
		t.Helper()
		out, _, got, _ := s.run(t, args...)
		out = strings.Join(strings.Fields(out), " ")
		for _, text := range texts {
			if !strings.Contains(out, text) || got != code {
				t.Errorf("%q: exit code %d, want %d and %q in\n%s", args, got, code, text, out)
			}
		}
	}
	as := []string{"--as", manifests.Account}
	want(exit.Failed, []string{
		"namespace fleet", "account " + manifests.Account, "MISSING Namespace fleet is not there", "- Permissions not granted, and nothing that is configured needs them: cluster-api",
		"things are missing:", "--apply creates namespace fleet", "--apply applies the manifests of permissions base", `"drydock setup --apply" does it`,
	}, as...)
	want(exit.OK, []string{"creates namespace fleet: done", "done Namespace fleet is there", "Everything is there."}, append(as, "--apply")...)
	want(exit.OK, []string{"ok Namespace fleet is there", "Everything was there; nothing was changed."}, append(as, "--apply")...)
	want(exit.OK, []string{"Everything is there."}, as...)
}
