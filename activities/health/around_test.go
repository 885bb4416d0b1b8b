package health

import (
	"strings"
	"testing"

	rules "drydock.dev/drydock/rules/health"
)

func TestWhatIsAroundTheNodesIsReported(t *testing.T) {
	uid := ""
	machine := func(s *site, conditions string) {
		for _, kind := range []string{"MachineHealthCheck machinehealthchecks", "Machine machines"} {
			name, resource, _ := strings.Cut(kind, " ")
			s.kinds.Serve("machine.openshift.io/v1beta1", name, resource, true)
		}
		s.kinds.Set(`{"apiVersion":"machine.openshift.io/v1beta1","kind":"Machine","metadata":{"namespace":"m","name":"one","labels":{"a":"b"}},"status":{"nodeRef":{"name":"n1"` + uid + `}}}`)
		s.kinds.Set(`{"apiVersion":"machine.openshift.io/v1beta1","kind":"MachineHealthCheck","metadata":{"namespace":"m","name":"mhc"},
			"spec":{"selector":{"matchLabels":{"a":"b"}},"unhealthyConditions":[` + conditions + `]}}`)
	}
	for name, c := range map[string]struct {
		prepare func(s *site, in *WatchInput)
		want    func(rules.Observation) bool
	}{
		"nothing": {func(*site, *WatchInput) {}, func(o rules.Observation) bool { return o.Upgrading+o.Disabled == "" }},
		"OpenShift is upgraded": {func(s *site, _ *WatchInput) {
			s.kinds.Serve("config.openshift.io/v1", "ClusterVersion", "clusterversions", false)
			s.kinds.Set(`{"apiVersion":"config.openshift.io/v1","kind":"ClusterVersion","metadata":{"name":"version"},"status":{"conditions":[{"type":"Progressing","status":"True","message":"half way"}]}}`)
		}, func(o rules.Observation) bool { return strings.Contains(o.Upgrading, "half way") && o.Disabled == "" }},
		"a configured sign": {func(s *site, _ *WatchInput) {
			s.kinds.Serve("ops.example.com/v1", "Rollout", "rollouts", false)
			s.kinds.Set(`{"apiVersion":"ops.example.com/v1","kind":"Rollout","metadata":{"name":"all"},"status":{"conditions":[{"type":"Upgrading","status":"Yes"}]}}`)
			s.acts.Settings.Upgrades = []UpgradeSign{
				{APIVersion: "none.example.com/v1", Kind: "Rollout", Name: "all", Type: "Upgrading", Status: "Yes"},
				{APIVersion: "ops.example.com/v1", Kind: "Rollout", Name: "all", Type: "Upgrading", Status: "Yes"},
			}
		}, func(o rules.Observation) bool { return strings.Contains(o.Upgrading, "Rollout all") }},
		"a MachineHealthCheck on a node": {func(s *site, _ *WatchInput) { machine(s, `{"type":"Ready","status":"False"}`) },
			func(o rules.Observation) bool {
				return o.DisabledReason == rules.DisabledMachineHealthCheck && strings.Contains(o.Disabled, "m/mhc") && strings.Contains(o.Disabled, "n1")
			}},
		"one on a node of that name in another cluster": {func(s *site, _ *WatchInput) {
			uid = `,"uid":"uid-of-another"`
			defer func() { uid = "" }()
			machine(s, `{"type":"Ready","status":"False"}`)
		}, func(o rules.Observation) bool { return o.Disabled == "" }},
		"one that only looks for what the cloud takes": {func(s *site, _ *WatchInput) { machine(s, `{"type":"Terminating","status":"True"}`) },
			func(o rules.Observation) bool { return o.Disabled == "" }},
		"one that is ignored": {func(s *site, _ *WatchInput) {
			machine(s, `{"type":"Ready","status":"False"}`)
			s.acts.Settings.IgnoreMachineHealthChecks = true
		}, func(o rules.Observation) bool { return o.Disabled == "" }},
		"a template that is not there": {func(_ *site, in *WatchInput) {
			in.Intent.Templates = []rules.TemplateRef{{APIVersion: "a.example/v1", Kind: "FixTemplate", Namespace: "n", Name: "t"}}
		}, func(o rules.Observation) bool { return o.DisabledReason == rules.DisabledTemplateNotFound }},
		"a template that is": {func(s *site, in *WatchInput) {
			in.Intent.Templates = []rules.TemplateRef{s.withTemplates("").Template}
		}, func(o rules.Observation) bool { return o.Disabled == "" }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, worker("n1", "True"))
			in := check("workers")
			c.prepare(s, &in)
			if o := s.see(in).Observation; !c.want(*o) {
				t.Errorf("%+v", o)
			}
		})
	}
}

// A look that the account may not make is reported, once: the check goes on without what it would have said.
func TestADeniedLookIsReported(t *testing.T) {
	s := newSite(t, worker("n1", "True"))
	s.kinds.Serve("config.openshift.io/v1", "ClusterVersion", "clusterversions", false)
	s.deny("list", "config.openshift.io", "clusterversions", "")
	in := check("workers")
	seen := s.see(in)
	if seen.Denied == nil || !strings.Contains(*seen.Denied, "clusterversions") || !strings.Contains(*seen.Denied, "rbac-health.yaml") {
		t.Fatalf("%+v", seen)
	}
	in.Known.Take(seen)
	s.quiet(in, func() {})
}
