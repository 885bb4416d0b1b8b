package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/v1alpha1"
)

// maxBeyond is how many writes an object may have beyond those that changed its conditions.
const maxBeyond = 3

// judge sees every version of every object.
type judge struct {
	mu   sync.Mutex
	all  map[string]*course
	fell error
}

// course is what became of an object.
type course struct {
	handed
	// writes are the versions that are not of the asker, changes those of them with other conditions, and beyond what the rest changed.
	writes, changes int
	beyond          []string
	conditions      string
	phases          []api.Phase
	readies         int
	// asked: the asker has been given it to end.
	asked bool
	last  v1alpha1.NodeMaintenance
	gone  bool
}

// handed is an object whose node is Ready.
type handed struct {
	name    string
	uid     types.UID
	deletes bool
}

func newJudge() *judge { return &judge{all: map[string]*course{}} }

func (j *judge) fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.fell = errors.Join(j.fell, err)
}

// lost is why nothing is seen any more.
func (j *judge) lost() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.fell
}

func (j *judge) see(kind watch.EventType, seen *unstructured.Unstructured) {
	var o v1alpha1.NodeMaintenance
	text, err := seen.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err != nil {
		j.fail(err)
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	c := j.all[o.Name]
	if kind == watch.Added {
		c = &course{handed: handed{name: o.Name, uid: o.UID, deletes: isEven(o.Name)}}
		j.all[o.Name] = c
	}
	c.take(o, kind)
}

func isEven(name string) bool { return strings.ContainsAny(name[len(name)-1:], "02468") }

// take takes the next version.
func (c *course) take(o v1alpha1.NodeMaintenance, kind watch.EventType) {
	was := c.last
	c.last, c.gone = o, kind == watch.Deleted
	if kind != watch.Modified {
		return
	}
	if !o.DeletionTimestamp.Equal(was.DeletionTimestamp) || len(o.Annotations) > len(was.Annotations) {
		return // the asker's
	}
	c.writes++
	if is := conditionsOf(o); is != c.conditions {
		c.conditions = is
		c.changes++
	} else {
		c.beyond = append(c.beyond, changeOf(was, o))
	}
	if o.Status.Phase != was.Status.Phase {
		c.phases = append(c.phases, o.Status.Phase)
		if o.Status.Phase == api.Ready {
			c.readies++
		}
	}
}

// changeOf names what an object has otherwise than before, besides its conditions.
func changeOf(was, is v1alpha1.NodeMaintenance) string {
	var changed []string
	for _, part := range []struct {
		name   string
		of, to any
	}{
		{"finalizers", was.Finalizers, is.Finalizers},
		{"annotations", was.Annotations, is.Annotations},
		{"requestors", was.Status.Requestors, is.Status.Requestors},
		{"drain", was.Status.Drain, is.Status.Drain},
		{"message", was.Status.Message, is.Status.Message},
		{"phase", was.Status.Phase, is.Status.Phase},
		{"run", was.Status.RunID, is.Status.RunID},
		{"since", was.Status.Since, is.Status.Since},
	} {
		if !equality.Semantic.DeepEqual(part.of, part.to) {
			changed = append(changed, part.name)
		}
	}
	return cmp.Or(strings.Join(changed, "+"), "nothing")
}

func conditionsOf(o v1alpha1.NodeMaintenance) string {
	var all []string
	for _, c := range o.Status.Conditions {
		all = append(all, fmt.Sprintf("%s=%s %s %s", c.Type, c.Status, c.Reason, c.Message))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func (c *course) ended() bool {
	return c.gone || !c.deletes && c.last.Status.Phase.Ended() && len(c.last.Finalizers) == 0
}

// ready are the objects whose nodes have become Ready since it was asked last, and ended counts those that have ended.
func (j *judge) ready() (ready []handed, ended int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range j.all {
		if c.ended() {
			ended++
		} else if c.last.Status.Phase == api.Ready && !c.asked {
			c.asked = true
			ready = append(ready, c.handed)
		}
	}
	return ready, ended
}

// tell says how far it is.
func (j *judge) tell() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	counts := map[string]int{}
	writes, changes := 0, 0
	for _, c := range j.all {
		if writes, changes = writes+c.writes, changes+c.changes; c.ended() {
			counts["ended"]++
		} else {
			counts[string(c.last.Status.Phase)]++
		}
	}
	return fmt.Sprintf("%d objects: %v; %d writes, %d changes of conditions", len(j.all), counts, writes, changes)
}

// verdict is what is wrong with what was seen.
func (j *judge) verdict(want int) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var problems []error
	if len(j.all) != want {
		problems = append(problems, fmt.Errorf("%d of %d objects were seen", len(j.all), want))
	}
	for name, c := range j.all {
		if len(c.beyond) > maxBeyond {
			problems = append(problems, fmt.Errorf("%s: %d writes, %d of them changed conditions, and the others %v", name, c.writes, c.changes, c.beyond))
		}
		if c.readies != 1 {
			problems = append(problems, fmt.Errorf("%s became Ready %d times: %v", name, c.readies, c.phases))
		}
		if !c.deletes && c.last.Status.Phase != api.Completed {
			problems = append(problems, fmt.Errorf("%s ended %s: %v", name, c.last.Status.Phase, c.phases))
		}
	}
	if len(problems) > maxShown {
		problems = append(problems[:maxShown], fmt.Errorf("and %d more", len(problems)-maxShown))
	}
	return errors.Join(problems...)
}

// maxShown bounds the problems that are shown.
const maxShown = 20
