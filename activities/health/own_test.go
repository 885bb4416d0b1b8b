package health

import (
	"net/http"
	"strings"
	"testing"

	"drydock.dev/drydock/activities/activitytest"
	rules "drydock.dev/drydock/rules/health"
)

// object is a remediation object of a check; without one it is nobody's.
func (s *site) object(check, name, node, template string, more string) rules.Resource {
	labels := ""
	if check != "" {
		labels = `"labels":{"` + checkLabel + `":"` + check + `"},`
	}
	o := s.kinds.Set(`{"apiVersion":"` + group + `","kind":"Restart","metadata":{"name":"` + name + `","namespace":"fixers",` + labels + more +
		`"annotations":{"` + nodeNameAnnotation + `":"` + node + `","` + templateNameAnnotation + `":"` + template + `"}}}`)
	return rules.Resource{APIVersion: group, Kind: "Restart", Namespace: "fixers", Name: name, UID: string(o.GetUID())}
}

func TestNothingOfSomebodyElsesIsTouched(t *testing.T) {
	s := newSite(t, worker("n1", "True"))
	s.withTemplates("")
	foreign := []rules.Resource{s.object("others", "a", "n1", "t", ""), s.object("", "b", "n1", "t", "")}
	foreign[1].UID = "" // whoever forges it need not know that
	at := since.Time
	marked, err := activitytest.Call(t, s.acts.MarkObjects, MarkInput{Check: "workers", Objects: foreign, TimedOut: &at})
	if err != nil || !marked.Gone[0] || !marked.Gone[1] {
		t.Errorf("%+v, %v", marked, err)
	}
	removed, err := activitytest.Call(t, s.acts.RemoveObjects, RemoveInput{Check: "workers", Node: "n1", Objects: foreign})
	if err != nil || !removed.Done || !removed.Gone[0] || !removed.Gone[1] {
		t.Errorf("%+v, %v", removed, err)
	}
	for _, name := range []string{"a", "b"} {
		if o := s.kinds.Find(ofResource + name); o == nil || o.GetAnnotations()[timedOutAnnotation] != "" {
			t.Errorf("%s: %v", name, o)
		}
	}
}

func TestUnreportedObjectsAreRemoved(t *testing.T) {
	s := newSite(t, worker("n1", "True"))
	in := s.withTemplates("")
	s.object("workers", "n1", "n1", "t", "")
	s.object("workers", "n2", "n2", "t", "")
	s.object("workers", "x", "n1", "other", "")
	s.object("others", "y", "n1", "t", "")
	s.kinds.Delete("restarter.example.com/restarttemplates/fixers/t") // its template may be gone meanwhile
	removed, err := activitytest.Call(t, s.acts.RemoveObjects, RemoveInput{Check: "workers", Node: "n1", Templates: []rules.TemplateRef{in.Template}})
	if err != nil || !removed.Done || len(removed.Gone) != 0 {
		t.Fatalf("%+v, %v", removed, err)
	}
	if s.kinds.Find(ofResource+"n1") != nil {
		t.Error("it is still there")
	}
	for _, name := range []string{"n2", "x", "y"} {
		if s.kinds.Find(ofResource+name) == nil {
			t.Errorf("%s was removed", name)
		}
	}
}

func TestALostAnswerIsFoundThoughNothingWouldBeMadeAnyMore(t *testing.T) {
	s := newSite(t, worker("n1", "Unknown"))
	in := s.withTemplates(multiple)
	made := s.ensure(in)
	s.kinds.Delete("restarter.example.com/restarttemplates/fixers/t")
	refused := s.ensure(in)
	again, err := s.acts.madeBefore(t.Context(), in, refused)
	if err != nil || refused.Resource != nil || again.Resource == nil || *again.Resource != *made.Resource || !again.Lease.Held {
		t.Errorf("%+v, then %+v, %v", refused, again, err)
	}
}

func TestOneControlPlaneNodeAtATimeWhoeverRemediatesIt(t *testing.T) {
	master := activitytest.Labelled("node-role.kubernetes.io/master", "")
	s := newSite(t, worker("n1", "Unknown", master), worker("m2", "True", master), worker("m3", "True", master))
	in := s.withTemplates("")
	s.object("", "m9", "m9", "t", "")
	o := s.kinds.Find(ofResource + "m9")
	o.SetLabels(map[string]string{controlPlaneLabel: ""})
	text, _ := o.MarshalJSON()
	s.kinds.Set(string(text))
	if made := s.ensure(in); made.Resource != nil || !strings.Contains(made.Indispensable, "Restart m9 is there") {
		t.Errorf("%+v", made)
	}
	s.kinds.Delete(ofResource + "m9")
	if made := s.ensure(in); made.Resource == nil {
		t.Errorf("%+v", made)
	}
}

func TestALeaseIsTakenForANodeThatNobodyHasSeen(t *testing.T) {
	s := newSite(t, worker("n1", "Unknown"))
	in := s.withTemplates("")
	in.UID = ""
	s.ensure(in)
	uid := func() string {
		lease := s.kinds.Find(leaseOfNode)
		if lease == nil || len(lease.GetOwnerReferences()) != 1 {
			return "none"
		}
		return string(lease.GetOwnerReferences()[0].UID)
	}
	if got := uid(); got != "uid-1" {
		t.Errorf("the lease goes with %s", got)
	}
	s.kinds.Delete(leaseOfNode)
	if _, err := activitytest.Call(t, s.acts.TakeLease, LeaseInput{Check: "workers", Node: "n1"}); err != nil || uid() != "uid-1" {
		t.Errorf("the lease goes with %s: %v", uid(), err)
	}
}

func TestALeaseThatCannotBeReadIsNotLost(t *testing.T) {
	s := newSite(t, worker("n1", "Unknown"))
	made := s.ensure(s.withTemplates(""))
	s.kinds.Lose = func(r *http.Request) bool { return strings.Contains(r.URL.Path, "leases") }
	seen, err := activitytest.Call(t, s.acts.WatchRemediation, RemediationWatch{
		Check: "workers", Node: "n1", UID: "uid-1", Objects: []WatchedObject{{Resource: *made.Resource}}, Lease: &LeaseWant{},
	})
	if err != nil || !seen.Lease.Held {
		t.Errorf("%+v, %v", seen, err)
	}
}
