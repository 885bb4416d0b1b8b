package health

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"drydock.dev/drydock/activities/activitytest"
	rules "drydock.dev/drydock/rules/health"
)

const ofAll = "restarter.example.com/restarts"

// at calls what happens right before the API server handles the first request of a method about a resource.
func (s *site) at(method, resource string, happens func()) {
	var happened atomic.Bool
	handle := s.server.Handle
	s.server.Handle = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == method && strings.Contains(r.URL.Path, "/"+resource) && happened.CompareAndSwap(false, true) {
			happens()
		}
		return handle(w, r)
	}
}

func TestTwoRunsOfOneRemediationMakeOneObject(t *testing.T) {
	for name, annotations := range map[string]string{"named as the node": "", "of any name": multiple} {
		t.Run(name+", one after the other", func(t *testing.T) {
			s := newSite(t, worker("n1", "Unknown"))
			first := s.withTemplates(annotations)
			second := first
			second.RunID = "another"
			a, b := s.ensure(first), s.ensure(second)
			if a.Resource == nil || b.Resource == nil || *a.Resource != *b.Resource || !b.Found || !b.Lease.Held {
				t.Errorf("%+v and %+v", a, b)
			}
		})
		t.Run(name+", at the same time", func(t *testing.T) {
			s := newSite(t, worker("n1", "Unknown"))
			first := s.withTemplates(annotations)
			second := first
			second.RunID = "another"
			var a EnsuredObject
			s.at(http.MethodPost, "restarts", func() { a, _ = activitytest.Call(t, s.acts.EnsureObject, first) })
			b := s.ensure(second) // it has looked before the first has made the object
			if all := s.kinds.Names(ofAll); len(all) != 1 {
				t.Errorf("%d objects: %v", len(all), all)
			}
			if a.Resource == nil || b.Resource == nil || *a.Resource != *b.Resource || !b.Found || b.StartedAt.IsZero() || !b.Lease.Held {
				t.Errorf("%+v and %+v", a, b)
			}
		})
	}
}

func TestALaterIllnessHasAnObjectOfItsOwn(t *testing.T) {
	s := newSite(t, worker("n1", "Unknown"))
	in := s.withTemplates(multiple)
	first := s.ensure(in)
	s.kinds.Delete(ofResource + first.Resource.Name)
	in.RunID = "another"
	later := s.ensure(in)
	if later.Resource == nil || later.Found || later.Resource.UID == first.Resource.UID || len(s.kinds.Names(ofAll)) != 1 {
		t.Errorf("%+v, then %+v", first, later)
	}
}

func TestANameThatIsTakenMeanwhile(t *testing.T) {
	for name, annotations := range map[string]string{"named as the node": "", "of any name": multiple} {
		for what, c := range map[string]struct {
			check, template, more string
			want                  func(EnsuredObject) bool
		}{
			"by nobody's object":     {"", "t", "", func(e EnsuredObject) bool { return strings.Contains(e.NotOwned, "nobody is named") }},
			"by another check's":     {"others", "t", "", func(e EnsuredObject) bool { return strings.Contains(e.NotOwned, "health check others") }},
			"from another template":  {"workers", "u", "", func(e EnsuredObject) bool { return strings.Contains(e.NotOwned, "is from template u") }},
			"by one that is deleted": {"workers", "t", `"finalizers":["a/b"],"deletionTimestamp":"2026-01-01T00:00:00Z",`, func(e EnsuredObject) bool { return strings.Contains(e.Waiting, "being deleted") }},
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				s := newSite(t, worker("n1", "Unknown"))
				in := s.withTemplates(annotations)
				s.at(http.MethodPost, "restarts", func() {
					s.object(c.check, in.name(template{multiple: annotations != ""}), "n1", c.template, c.more)
				})
				if made := s.ensure(in); made.Resource != nil || !c.want(made) || len(s.kinds.Names(ofAll)) != 1 {
					t.Errorf("%+v", made)
				}
			})
		}
	}
}

func TestAnObjectIsFoundUnderAnyNameThatItMayHave(t *testing.T) {
	for name, c := range map[string]struct{ annotations, object string }{
		"of an earlier worker":                             {multiple, "n1-0old0"},
		"of the node, before several were allowed":         {multiple, "n1"},
		"of its own, and several are not allowed any more": {"", "n1-1abcd"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, worker("n1", "Unknown"))
			in := s.withTemplates(c.annotations)
			s.object("workers", c.object, "n1", "t", "")
			if made := s.ensure(in); made.Resource == nil || made.Resource.Name != c.object || !made.Found || len(s.kinds.Names(ofAll)) != 1 {
				t.Errorf("%+v", made)
			}
		})
	}
}

func TestNamesOfObjects(t *testing.T) {
	long := strings.Repeat("a", 100)
	several := template{multiple: true}
	of := func(check, node, template string) string {
		return ObjectInput{Check: check, Node: node, Template: rules.TemplateRef{Name: template}}.name(several)
	}
	names := map[string]bool{}
	for _, name := range []string{of("c", "n", "t"), of("d", "n", "t"), of("c", "n", "u"), of("c", long+"1", "t"), of("c", long+"2", "t")} {
		if names[name] || len(name) > 63 {
			t.Errorf("name %s", name)
		}
		names[name] = true
	}
}

func TestAnObjectThatIsMadeAfterItsRemediationHasEndedIsTakenBack(t *testing.T) {
	s := newSite(t, worker("n1", "Unknown"))
	in := s.withTemplates(multiple)
	s.at(http.MethodPost, "restarts", func() { s.kinds.Delete(leaseOfNode) })
	if made := s.ensure(in); made.Resource != nil || made.Waiting == "" || len(s.kinds.Names(ofAll)) != 0 {
		t.Errorf("%+v, %v", made, s.kinds.Names(ofAll))
	}
}

func TestAnObjectThatIsMadeDuringTheRemovalIsRemoved(t *testing.T) {
	s := newSite(t, worker("n1", "Unknown"))
	in := s.withTemplates(multiple)
	made := s.ensure(in)
	s.at(http.MethodDelete, "leases", func() { s.object("workers", "n1-late0", "n1", "t", "") })
	removed, err := activitytest.Call(t, s.acts.RemoveObjects, RemoveInput{
		Check: "workers", Node: "n1", Objects: []rules.Resource{*made.Resource}, Templates: []rules.TemplateRef{in.Template},
	})
	if err != nil || !removed.Done || len(removed.Gone) != 1 || len(s.kinds.Names(ofAll)) != 0 {
		t.Errorf("%+v, %v, %v", removed, err, s.kinds.Names(ofAll))
	}
}

func TestUnreportedObjectsAreFound(t *testing.T) {
	s := newSite(t, worker("n1", "Unknown"))
	in := s.withTemplates(multiple)
	of := s.object("workers", "a", "n1", "u", "")
	s.object("workers", "b", "n2", "t", "")
	s.object("others", "c", "n1", "t", "")
	s.object("workers", "d", "n1", "t", `"finalizers":["a/b"],"deletionTimestamp":"2026-01-01T00:00:00Z",`)
	u := in.Template
	u.Name = "u"
	found, err := activitytest.Call(t, s.acts.FindObjects, FindInput{Check: "workers", Node: "n1", Templates: []rules.TemplateRef{in.Template, u}})
	if err != nil || len(found.Objects) != 1 || found.Objects[0].Template != 1 || found.Objects[0].Resource != of {
		t.Errorf("%+v, %v", found, err)
	}
}
