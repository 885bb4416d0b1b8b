package lockstep

import (
	"testing"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/controller"
)

// completedAt is the last stage of a plan.
func completedAt(revision int, name string, nodes ...string) option {
	return func(l *lockstep) {
		in := intentOf(name, api.StageComplete, nodes...)
		in.Revision = revision
		l.settle(in, now)
	}
}

// A run hands over whatever there is, and the next ends what no plan wants any more.
func TestAPlanThatIsCompleteIsHandedOver(t *testing.T) {
	for name, c := range map[string]struct {
		changes []option
		want    string
	}{
		"a node was not begun":           {[]option{completedAt(2, "a", "n1", "n2"), regrouped}, "end/0[n1], watch"},
		"and nothing was regrouped":      {[]option{completedAt(2, "a", "n1", "n2")}, "end/0[n1], watch"},
		"and it was said again":          {[]option{completedAt(2, "a", "n1", "n2"), regrouped, completedAt(2, "a", "n1", "n2")}, "end/0[n1], watch"},
		"as many nodes, and other ones":  {[]option{completedAt(2, "a", "n1", "n3")}, "end/0[n1], watch"},
		"another plan wants what begins": {[]option{accepted("b", api.StageDrain, "n2"), completedAt(2, "a", "n1", "n2"), regrouped}, "end/0[n1], watch, wake 20s"},
	} {
		t.Run(name, func(t *testing.T) {
			l := given(append([]option{accepted("a", api.StageDrain, "n1", "n2"), stands("n1", held), stands("n2", wanted, postponed), regrouped}, c.changes...)...)
			packed, err := api.Pack(l)
			if err != nil {
				t.Fatal(err)
			}
			next := restored(t, packed)
			if got := show(next.Decide(controller.At(now))); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func regrouped(l *lockstep) { l.Inventory.regroup() }
