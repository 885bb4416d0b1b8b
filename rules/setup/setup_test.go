package setup

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"drydock.dev/drydock/rules/preflight"
)

func need(namespace, group, resource, verb string) preflight.Need {
	return preflight.Need{ResourceAttributes: authorizationv1.ResourceAttributes{Namespace: namespace, Group: group, Resource: resource, Verb: verb}}
}

func someParts() []Part {
	return []Part{
		{Name: "base", File: "rbac.yaml", Needs: []preflight.Need{need("", "", "nodes", "get"), need("", "", "pods", "list"), need("", "", "pods", "watch")}},
		{Name: "cluster-api", File: "rbac-cluster-api.yaml", Needs: []preflight.Need{need("", "cluster.x-k8s.io", "machines", "patch")}},
		{Name: "daemonsets", File: "rbac-daemonsets.yaml", Needs: []preflight.Need{need("", "apps", "daemonsets", "list")}},
		{Name: "delete-pods", File: "rbac-delete-pods.yaml", Needs: []preflight.Need{need("", "", "pods", "delete")}},
		{Name: "health", File: "rbac-health.yaml", Needs: []preflight.Need{need("medik8s-leases", "coordination.k8s.io", "leases", "get")}},
		{Name: "jobs", File: "rbac-jobs.yaml", Needs: []preflight.Need{need("drydock-jobs", "batch", "jobs", "create")}},
		{Name: "metrics", File: "rbac-metrics.yaml", Needs: []preflight.Need{need("", "authentication.k8s.io", "tokenreviews", "create")}},
		{Name: "node-conditions", File: "rbac-node-conditions.yaml", Needs: []preflight.Need{need("", "", "nodes/status", "patch")}},
		{Name: "profiles", File: "rbac-profiles.yaml", Needs: []preflight.Need{need("", "", "nodes", "update")}},
		{Name: "volumes", File: "rbac-volumes.yaml", Needs: []preflight.Need{need("", "storage.k8s.io", "volumeattachments", "list")}},
		{Name: "work", File: "rbac-work.yaml", Needs: []preflight.Need{need("drydock-work", "batch", "jobs", "create")}},
	}
}

const account = "system:serviceaccount:drydock:drydock-worker"

func wanted(t *testing.T, config string, with ...string) Wanted {
	t.Helper()
	parts, err := Require(someParts(), []byte(config), with)
	if err != nil {
		t.Fatal(err)
	}
	return Wanted{Retention: DefaultRetention, Attributes: []string{"DrydockNode", "DrydockKind"}, Queue: "drydock", Parts: parts, Account: account}
}

// complete is where nothing is missing.
func complete() Found {
	return Found{
		Temporal: Service{
			Address: "127.0.0.1:7233", Namespace: "ops", Version: "1.32.1", Exists: true, Retention: 40 * day,
			Attributes: map[string]string{"DrydockNode": "Keyword", "DrydockKind": "Keyword", "Other": "Int"},
		},
		Cluster: &Cluster{Context: "prod", Server: "https://k8s", Account: account},
	}
}

// lines are the items that lack, as text to compare.
func lines(r Report) string {
	var all []string
	for _, i := range r.Lacking() {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", i.Kind, i.Name, i.State, i.Fix)))
	}
	return strings.Join(all, "\n")
}

// What the settings are about comes first: a namespace that must not be looked at need not be made.
func TestSettingsAreNamedWhereTheyAreWrong(t *testing.T) {
	for name, change := range map[string]func(t *Service){
		"not reachable":      func(t *Service) { t.Unreachable = "no route" },
		"refused":            func(t *Service) { t.Exists, t.Undescribed = false, "Request unauthorized." },
		"refused by a Cloud": func(t *Service) { t.Exists, t.Undescribed, t.Cloud = false, "Request unauthorized.", true },
	} {
		found := complete()
		found.Temporal.Advice = "Set this."
		change(&found.Temporal)
		lacking := Decide(wanted(t, ""), found).Lacking()
		if len(lacking) == 0 || !strings.HasPrefix(lacking[0].NextStep, "Set this.") || (len(lacking[0].Commands) > 0) != found.Temporal.Cloud {
			t.Errorf("%s: %+v", name, lacking)
		}
	}
}

// An open server is not missing anything: it is said beside what is, as long as it answers at all.
func TestAnOpenServerIsSaid(t *testing.T) {
	found := complete()
	if Decide(wanted(t, ""), found).Open {
		t.Error("a server that wants credentials is said to be open")
	}
	found.Temporal.Open = true
	if r := Decide(wanted(t, ""), found); !r.Open || !r.Ready {
		t.Errorf("open %v, ready %v", r.Open, r.Ready)
	}
}

func TestWhatIsMissingAndWhatMakesIt(t *testing.T) {
	denied := map[string][]preflight.Need{"base": {need("", "", "nodes", "get"), need("", "", "nodes", "patch")}, "volumes": {need("", "storage.k8s.io", "volumeattachments", "list")}}
	for name, c := range map[string]struct {
		change   func(f *Found)
		config   string
		with     []string
		want     string
		commands []string
	}{
		"nothing":                  {},
		"no Kubernetes was named":  {change: func(f *Found) { f.Cluster = nil }},
		"Temporal does not answer": {change: func(f *Found) { f.Temporal.Unreachable = "no answer" }, want: "Temporal  missing"},
		"no namespace": {
			change: func(f *Found) {
				f.Temporal.Exists, f.Temporal.Retention, f.Temporal.Attributes = false, 0, nil
			},
			want: "Namespace ops missing create-namespace\nSearchAttribute DrydockNode missing add-attribute\nSearchAttribute DrydockKind missing add-attribute",
			commands: []string{
				"temporal operator namespace create --namespace ops --retention 30d",
				"temporal operator search-attribute create --namespace ops --name DrydockNode --type Keyword --name DrydockKind --type Keyword",
			},
		},
		"a namespace that cannot be looked at": {
			change:   func(f *Found) { f.Temporal.Exists, f.Temporal.Undescribed = false, "denied" },
			want:     "Namespace ops unknown",
			commands: []string{"temporal operator namespace create --namespace ops --retention 30d"},
		},
		"a short retention": {
			change:   func(f *Found) { f.Temporal.Retention = 72 * time.Hour },
			want:     "Retention  missing raise-retention",
			commands: []string{"temporal operator namespace update --namespace ops --retention 30d"},
		},
		"one attribute": {
			change:   func(f *Found) { delete(f.Temporal.Attributes, "DrydockKind") },
			want:     "SearchAttribute DrydockKind missing add-attribute",
			commands: []string{"temporal operator search-attribute create --namespace ops --name DrydockKind --type Keyword"},
		},
		"an attribute of another type": {
			change: func(f *Found) { f.Temporal.Attributes["DrydockKind"] = "Text" },
			want:   "SearchAttribute DrydockKind missing",
			commands: []string{
				"temporal operator search-attribute remove --namespace ops --name DrydockKind --yes",
				"temporal operator search-attribute create --namespace ops --name DrydockKind --type Keyword",
			},
		},
		"a name that a shell would take apart": {
			change:   func(f *Found) { f.Temporal.Namespace, f.Temporal.Retention = "it's; mine", day },
			want:     "Retention  missing raise-retention",
			commands: []string{`temporal operator namespace update --namespace 'it'\''s; mine' --retention 30d`},
		},
		"Temporal Cloud": {
			change: func(f *Found) {
				f.Temporal.Cloud, f.Temporal.Namespace, f.Temporal.Retention, f.Temporal.Attributes = true, "ops.a1b2c", 7*day, nil
			},
			want: "Retention  missing\nSearchAttribute DrydockNode missing\nSearchAttribute DrydockKind missing",
			commands: []string{
				"tcld namespace retention set --namespace ops.a1b2c --retention-days 30",
				"tcld namespace search-attributes add --namespace ops.a1b2c --search-attribute DrydockNode=Keyword --search-attribute DrydockKind=Keyword",
			},
		},
		"no namespace in Temporal Cloud": {
			change: func(f *Found) {
				f.Temporal.Cloud, f.Temporal.Namespace, f.Temporal.Exists, f.Temporal.Undescribed = true, "ops.a1b2c", false, "denied"
			},
			want:     "Namespace ops.a1b2c unknown",
			commands: []string{"tcld namespace create --namespace ops --retention-days 30 --region REGION --auth-method api_key"},
		},
		"schedules that are paused, and ours": {
			change: func(f *Found) { f.Temporal.Recurring = []Schedule{{Plan: "patches", Queue: "drydock", Paused: true}} },
		},
		"a schedule that nobody works for": {
			change: func(f *Found) { f.Temporal.Recurring = []Schedule{{Plan: "patches", Queue: "blue/drydock"}} },
			want:   "Schedules  missing",
		},
		"schedules that cannot be looked at":   {change: func(f *Found) { f.Temporal.Unscheduled = "denied" }, want: "Schedules  unknown"},
		"Kubernetes does not answer":           {change: func(f *Found) { f.Cluster.Unreachable = "no route" }, want: "Kubernetes prod missing"},
		"permissions that cannot be asked for": {change: func(f *Found) { f.Cluster.Unasked = "denied" }, want: "Permissions  unknown"},
		"permissions": {
			change:   func(f *Found) { f.Cluster.Denied = denied },
			want:     "Permissions base missing apply-permissions",
			commands: []string{"kubectl --context prod apply -f rbac.yaml"},
		},
		"permissions of a feature that is configured": {
			change: func(f *Found) { f.Cluster.Denied = denied }, config: `{"defaults": {"drain": {"waitForVolumeDetach": true}}}`,
			want:     "Permissions base missing apply-permissions\nPermissions volumes missing apply-permissions",
			commands: []string{"kubectl --context prod apply -f rbac.yaml", "kubectl --context prod apply -f rbac-volumes.yaml"},
		},
		"permissions that are asked for": {
			change: func(f *Found) { f.Cluster.Denied = map[string][]preflight.Need{"volumes": denied["volumes"]} }, with: []string{"volumes"},
			want:     "Permissions volumes missing apply-permissions",
			commands: []string{"kubectl --context prod apply -f rbac-volumes.yaml"},
		},
		"permissions of what runs": {
			change: func(f *Found) {
				f.Temporal.Running = map[string]string{"health": "2 health checks"}
				f.Cluster.Denied = map[string][]preflight.Need{"health": {need("medik8s-leases", "coordination.k8s.io", "leases", "list")}}
			},
			want:     "Permissions health missing apply-permissions",
			commands: []string{"kubectl --context prod apply -f rbac-health.yaml"},
		},
		"what runs cannot be counted": {
			change: func(f *Found) { f.Temporal.Uncounted = "denied" }, want: "Temporal workflows unknown",
		},
		"permissions of another account": {
			change: func(f *Found) { f.Cluster.Account, f.Cluster.Denied = "ann", denied }, want: "Permissions base missing",
		},
		"permissions in a namespace of another name": {
			change: func(f *Found) {
				f.Cluster.Denied = map[string][]preflight.Need{"jobs in burn-in": {need("burn-in", "batch", "jobs", "create")}}
			},
			config: `{"checks": {"burn-in": {"job": {"namespace": "burn-in"}}}}`, want: "Permissions jobs in burn-in missing",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := complete()
			if c.change != nil {
				c.change(&f)
			}
			r := Decide(wanted(t, c.config, c.with...), f)
			if got := lines(r); got != c.want || r.Ready != (c.want == "") {
				t.Errorf("ready %v, missing\n%s\nwant\n%s", r.Ready, got, c.want)
			}
			if got := r.Commands(); !slices.Equal(got, c.commands) {
				t.Errorf("commands %q, want %q", got, c.commands)
			}
			if left := r.Uncommanded(); (len(left) > 0) != (c.want != "" && len(c.commands) == 0) {
				t.Errorf("without a command are %v", left)
			}
			for _, i := range r.Lacking() {
				if i.Fix == "" && len(i.Commands) == 0 && i.NextStep == "" && i.Kind != Schedules {
					t.Errorf("%+v does not say what to do", i)
				}
			}
		})
	}
}

func TestPermissionsAreTheConfigurations(t *testing.T) {
	for config, want := range map[string]string{
		``:                            "base",
		`{"defaults": {"drain": {}}}`: "base",
		`{"defaults": {"drain": {"escalation": [{"after": "1h", "do": "bypassBudget"}]}}}`:                        "base, delete-pods (defaults.drain)",
		`{"defaults": {"sla": {"after": "1h", "do": "kill"}}}`:                                                    "base, delete-pods (defaults.drain)",
		`{"defaults": {"validation": {"daemonSets": "all"}}}`:                                                     "base, daemonsets (defaults.validation.daemonSets)",
		`{"kubernetes": {"marks": {"clusterAPI": true}}}`:                                                         "base, cluster-api (kubernetes.marks.clusterAPI)",
		`{"defaults": {"outOfService": true, "work": "off"}}`:                                                     "base, volumes (defaults.drain)",
		`{"healthChecks": {"a": {}, "b": {"escalatingRemediations": [{"maintenance": {"outOfService": true}}]}}}`: "base, health (healthChecks), volumes (healthChecks.b)",
		`{"metrics": {"authentication": "token"}}`:                                                                "base, metrics (metrics.authentication)",
		`{"metrics": {"authentication": "none"}}`:                                                                 "base",
		`{"healthChecks": {"workers": {}}}`:                                                                       "base, health (healthChecks)",
		`{"profiles": {"file": "maintenance.yaml"}}`:                                                              "base, profiles (profiles.file)",
		`{"profiles": {}}`:                         "base",
		`{"kubernetes": {"nodeConditions": true}}`: "base, node-conditions (kubernetes.nodeConditions)",
		`{"checks": {"a": {"http": {}}, "b": {"job": {"namespace": "drydock-jobs"}}}}`:        "base, jobs (checks.b.job)",
		`{"hooks": {"a": {"signal": {}, "closing": {"job": {"namespace": "drydock-jobs"}}}}}`: "base, jobs (hooks.a.closing.job)",
		`{"work": {"reboot": {"job": {"namespace": "drydock-work"}}}}`:                        "base, work (work.reboot.job)",
		`{"work": {"reboot": {"job": {"namespace": "mine"}}}}`:                                "base, jobs in mine (work.reboot.job)",
	} {
		parts, err := Require(someParts(), []byte(config), nil)
		if err != nil {
			t.Errorf("%s: %v", config, err)
			continue
		}
		var got []string
		for i, p := range parts {
			if i == 0 && p.Why != "" {
				got = append(got, p.Name)
			} else if p.Why != "" {
				got = append(got, p.Name+" ("+p.Why+")")
			}
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s needs %s, want %s", config, text, want)
		}
	}
	parts, err := Require(someParts(), nil, []string{"volumes"})
	if at := slices.IndexFunc(parts, func(p Part) bool { return p.Name == "volumes" }); err != nil || parts[at].Why != "--with" {
		t.Errorf("%v, %+v", err, parts)
	}
	for config, with := range map[string][]string{`{"defaults": {"nodee": 1}}`: nil, `{"checks": 3}`: nil, `{}`: {"volume"}} {
		if _, err := Require(someParts(), []byte(config), with); err == nil {
			t.Errorf("%s with %v is taken", config, with)
		}
	}
}

func TestAReportAfterFixesSaysWhatTheyDid(t *testing.T) {
	w, f := wanted(t, ""), complete()
	f.Temporal.Retention = day
	delete(f.Temporal.Attributes, "DrydockNode")
	before := Decide(w, f)
	if got := before.Fixes(); !slices.Equal(got, []Fix{RaiseRetention, AddAttribute}) {
		t.Fatalf("fixes %v", got)
	}
	f.Temporal.Retention = 30 * day
	after := After(before, Decide(w, f), map[Fix]string{AddAttribute: "no more of them"})
	var made []string
	for _, i := range after.Items {
		if i.State == Made {
			made = append(made, string(i.Kind))
		}
	}
	if !slices.Equal(made, []string{"Retention"}) || after.Ready {
		t.Errorf("made %v, ready %v", made, after.Ready)
	}
	if lacking := after.Lacking(); len(lacking) != 1 || lacking[0].Tried != "no more of them" {
		t.Errorf("lacking %+v", lacking)
	}
	delete(f.Temporal.Attributes, "DrydockKind")
	f.Temporal.Attributes["DrydockNode"] = "Keyword"
	if after := After(before, Decide(w, f), nil); after.Items[3].State != Made || after.Items[4].State != Missing {
		t.Errorf("%+v", after.Items)
	}
}

func TestTemporalCloudIsToldByItsAddress(t *testing.T) {
	for _, c := range []struct {
		address, namespace string
		refused, want      bool
	}{
		{"ops.a1b2c.tmprl.cloud:7233", "ops.a1b2c", false, true},
		{"eu-central-1.aws.api.temporal.io:7233", "ops.a1b2c", false, true},
		{"temporal.example.com:7233", "ops.a1b2c", false, false},
		{"vpce-1.example.com:7233", "ops.a1b2c", true, true},
		{"temporal.example.com:7233", "ops", true, false},
		{"nottmprl.cloud", "ops", false, false},
	} {
		if got := IsCloud(c.address, c.namespace, c.refused); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
