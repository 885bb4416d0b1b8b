package profile

import (
	"strings"
	"testing"
)

// The permissions that a file needs follow from what its profiles use.
func TestThePermissionsOfProfiles(t *testing.T) {
	const instances = `intervals: {requeue: 1m}
instances:
  check:
  - {type: hasLabel, name: has, config: {key: a}}
  - {type: stagger, name: slowly, config: {duration: 1h, leaseName: l, leaseNamespace: turns, parallel: 2}}
  trigger:
  - {type: eviction, name: cordon, config: {action: cordon}}
  - {type: eviction, name: drain, config: {action: drain}}
  - {type: eviction, name: force, config: {action: drain, forceEviction: true}}
  - {type: job, name: flash, config: {templateFile: flash.yaml, namespace: ops}}
  - {type: maintenance, name: waits, config: {drain: {mode: wait}}}
  - {type: maintenance, name: maintain, config: {}}
  notify:
  - {type: slackThread, name: thread, config: {token: t, channel: c, title: t, message: m, leaseName: l, leaseNamespace: threads, period: 1h}, schedule: {type: periodic, config: {interval: 1h}}}
`
	nodes := []string{"nodes patch"}
	evicts := append(nodes[:1:1], "pods/eviction create", "poddisruptionbudgets list")
	for name, c := range map[string]struct {
		operational, defaults string
		with, without         []string
	}{
		"nothing":               {"{transitions: [{check: has, next: in-maintenance}]}", "", nodes, []string{"pods list", "leases", "jobs"}},
		"a stagger":             {"{transitions: [{check: has && slowly, next: in-maintenance}]}", "", []string{"leases list turns", "leases create turns", "leases patch turns"}, []string{"threads"}},
		"a thread":              {"{notify: thread}", "", []string{"leases get threads", "leases patch threads"}, []string{"turns"}},
		"cordons":               {"{enter: cordon}", "", nodes, []string{"pods"}},
		"drains":                {"{transitions: [{check: has, trigger: cordon && drain, next: in-maintenance}]}", "", evicts, []string{"pods delete"}},
		"drains by force":       {"{enter: force}", "", append(evicts[:3:3], "pods delete"), nil},
		"a Job":                 {"{enter: flash}", "", []string{"jobs create ops", "jobs delete ops", "pods list ops", "pods/log get ops"}, []string{"eviction"}},
		"a maintenance":         {"{enter: maintain}", "", evicts, []string{"pods delete"}},
		"one that waits":        {"{enter: waits}", "", []string{"pods list"}, []string{"eviction"}},
		"one with a default":    {"{enter: maintain}", `{"drain":{"mode":"wait"}}`, []string{"pods list"}, []string{"eviction"}},
		"one that may delete":   {"{enter: maintain}", `{"drain":{"escalation":[{"after":"1h","do":"kill"}]}}`, append(evicts[:3:3], "pods delete"), nil},
		"what nobody ever uses": {"{}", "", nodes, []string{"pods", "leases", "jobs"}},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := Load([]byte(instances+"profiles: [{name: p, operational: "+c.operational+"}]\n"), environment())
			if err != nil {
				t.Fatal(err)
			}
			said := map[string]bool{}
			var all []string
			for _, need := range config.Permissions([]byte(c.defaults)) {
				resource := need.Resource
				if need.Subresource != "" {
					resource += "/" + need.Subresource
				}
				one := strings.TrimSpace(resource + " " + need.Verb + " " + need.Namespace)
				if said[one] || need.Optional {
					t.Errorf("%q once more, or optional", one)
				}
				said[one] = true
				all = append(all, one)
			}
			for _, want := range c.with {
				if !said[want] {
					t.Errorf("lacks %q: %q", want, all)
				}
			}
			for _, unwanted := range c.without {
				if strings.Contains(strings.Join(all, ", "), unwanted) {
					t.Errorf("has %q: %q", unwanted, all)
				}
			}
		})
	}
}
