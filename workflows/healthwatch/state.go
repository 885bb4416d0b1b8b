package healthwatch

import (
	"cmp"
	"slices"
	"strings"
	"time"

	activity "drydock/activities/health"
	"drydock/api"
	"drydock/rules/health"
	"drydock/workflows/loop"
)

// state is all that a run hands to the next.
type state struct {
	// Checks come in the order of their age.
	Checks []*check `json:"checks,omitempty"`
	// Known: the checks that run are; Silent are those that have not said yet what they want.
	Known  bool                    `json:"known,omitempty"`
	Silent []activity.RunningCheck `json:"silent,omitempty"`
	// FoundAt is when it was looked last which checks run.
	FoundAt time.Time `json:"foundAt,omitzero"`
	// Until is how long they have to.
	Until time.Time `json:"until,omitzero"`
	// Overlaps are the nodes that several checks select.
	Overlaps activity.Overlaps `json:"overlaps,omitzero"`
	// Denied is what the watch said last that it may not look at.
	Denied string `json:"denied,omitempty"`
	// Permit is the one that is out, Answers what etcd's budget said of the nodes that were asked for.
	Permit  health.Permitted      `json:"permit,omitzero"`
	Answers []activity.PermitSeen `json:"answers,omitempty"`
	// Run is the run that came by the latest reset; empty is none.
	Run string `json:"run,omitempty"`
	// Ended are the workflows that were found not to run, and when.
	Ended []ended `json:"ended,omitempty"`
	loop.Carried
}

// ended is a workflow that was found not to run.
type ended struct {
	WorkflowID string    `json:"workflowId"`
	At         time.Time `json:"at"`
}

// check is one that is watched for.
type check struct {
	Intent api.HealthIntent `json:"intent"`
	// Known is what it was told of its nodes.
	Known activity.Known `json:"known,omitzero"`
	// Sequence is that of the latest news.
	Sequence int `json:"sequence,omitempty"`
	// Latest is what it was told of the cluster last, without nodes.
	Latest health.Observation `json:"latest,omitzero"`
	// Ghost: it does not run any more, and remediations of control-plane nodes that it has begun do.
	Ghost bool `json:"ghost,omitempty"`
	// Refused says why it may not run.
	Refused string `json:"refused,omitempty"`
	// Permit and PermitWhy are what it is to know of the permit.
	Permit    string `json:"permit,omitempty"`
	PermitWhy string `json:"permitWhy,omitempty"`
	// Answered is the latest revision that was answered, Told what was said with it beside the nodes.
	Answered int    `json:"answered,omitempty"`
	Told     string `json:"told,omitempty"`
	// Troubled are the troubles that it was told last.
	Troubled []api.Trouble `json:"troubled,omitempty"`

	// news wait to be told, and nodes whose remediation does not run; busy: some are under way.
	news  []health.Observation
	ended []string
	busy  bool
	// partial: further parts of what was seen follow.
	partial bool
	// age counts how often it was to be told everything.
	age int
	// failures count what could not be told in a row, next is when it is tried again.
	failures int
	next     time.Time
}

// carried is what the next run is handed: what was not told is seen anew.
func (w *healthwatch) carried() state {
	for _, c := range w.state.Checks {
		if len(c.news) > 0 || c.partial {
			c.anew()
		}
	}
	w.state.ContinueAfter = w.ContinueAfter
	return w.state
}

// anew has the check be told everything.
func (c *check) anew() {
	c.partial = false
	c.Known, c.news, c.Answered, c.Told, c.Troubled = activity.Known{}, nil, 0, "", nil
	c.age++
}

// find is the check of a name; nil is none.
func (c *core) find(name string) *check {
	i := slices.IndexFunc(c.state.Checks, func(k *check) bool { return k.Intent.Name == name })
	if i < 0 {
		return nil
	}
	return c.state.Checks[i]
}

// drop forgets a check.
func (c *core) drop(name string) bool {
	before := len(c.state.Checks)
	c.state.Checks = slices.DeleteFunc(c.state.Checks, func(k *check) bool { return k.Intent.Name == name })
	return len(c.state.Checks) < before
}

// sort brings the checks into the order of their age.
func (c *core) sort() {
	slices.SortStableFunc(c.state.Checks, func(a, b *check) int {
		return cmp.Or(a.Intent.CreatedAt.Compare(b.Intent.CreatedAt), strings.Compare(a.Intent.Name, b.Intent.Name))
	})
}
