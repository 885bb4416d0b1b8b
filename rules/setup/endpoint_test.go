package setup

import (
	"slices"
	"strings"
	"testing"
)

func TestTheNexusEndpointLeadsToTheWorkers(t *testing.T) {
	wanted := Wanted{Queue: "c1/drydock", Endpoint: "drydock"}
	there := &Target{Namespace: "ops", Queue: "c1/drydock"}
	for name, c := range map[string]struct {
		service Service
		state   State
		fix     Fix
		text    string
		command string
	}{
		"there":            {Service{Namespace: "ops", Target: there}, Present, "", "leads to task queue c1/drydock of namespace ops", ""},
		"missing":          {Service{Namespace: "ops"}, Missing, CreateEndpoint, "is not there", "temporal operator nexus endpoint create --name drydock --target-namespace ops --target-task-queue c1/drydock"},
		"in Cloud":         {Service{Namespace: "ops.acct1", Cloud: true}, Missing, "", "is not there", "tcld nexus endpoint create --name drydock"},
		"not to be seen":   {Service{Namespace: "ops", Unlooked: "permission denied"}, Unknown, "", "cannot be looked at: permission denied", "temporal operator nexus endpoint create"},
		"of other workers": {Service{Namespace: "ops", Target: &Target{Namespace: "ops", Queue: "c2/drydock"}}, Missing, "", "leads to task queue c2/drydock of namespace ops, not to the workers", "temporal operator nexus endpoint update"},
		"of a URL":         {Service{Namespace: "ops", Target: &Target{Other: "https://example.com"}}, Missing, "", "leads to https://example.com, not", "temporal operator nexus endpoint update"},
	} {
		t.Run(name, func(t *testing.T) {
			item := endpoint(wanted, c.service)
			command := strings.Join(item.Commands, "\n")
			if item.State != c.state || item.Fix != c.fix || !strings.HasPrefix(item.Text, c.text) || !strings.HasPrefix(command, c.command) || (command == "") != (c.command == "") {
				t.Errorf("%+v", item)
			}
		})
	}
	has := func(w Wanted) bool {
		r := Decide(w, Found{Temporal: Service{Exists: true}})
		return slices.ContainsFunc(r.Items, func(i Item) bool { return i.Kind == NexusEndpoint })
	}
	if !has(wanted) || has(Wanted{}) {
		t.Error("the endpoint is looked at exactly where one is wanted")
	}
}
