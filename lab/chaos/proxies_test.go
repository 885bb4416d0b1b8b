package main

import (
	"net/url"
	"slices"
	"testing"
)

func TestRequestToEndAPodTellsItsUID(t *testing.T) {
	for body, want := range map[string]string{
		`{"kind":"Eviction","deleteOptions":{"preconditions":{"uid":"u-1"}}}`: "u-1",
		`{"kind":"DeleteOptions","preconditions":{"uid":"u-2"}}`:              "u-2",
		`{"kind":"DeleteOptions"}`:                                            "",
		`[{"op":"add"}]`:                                                      "",
		``:                                                                    "",
	} {
		if got := (&request{body: []byte(body)}).ends(); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

// TestRequestBelongsToItsStep shows the patches of a maintenance, as k8s writes them, and of a profile that drains, to the steps: one
// attempt makes either these or those.
func TestRequestBelongsToItsStep(t *testing.T) {
	node := "/api/v1/nodes/worker-01"
	events, eviction := "/api/v1/namespaces/default/events", "/api/v1/namespaces/a/pods/b/eviction"
	for _, c := range []struct {
		r       request
		profile string
		want    string
	}{
		{request{method: "PATCH", path: node, body: []byte(`{"metadata":{"annotations":{"drydock.dev/holders":"{}"}},"spec":{"unschedulable":true}}`)}, "", "cordon"},
		{request{method: "PATCH", path: node, body: []byte(`{"spec":{"taints":[{"key":"drydock.dev/maintenance"}]}}`)}, "", "taint"},
		{request{method: "PATCH", path: node, body: []byte(`[{"op":"add","path":"/metadata/labels/drydock.dev~1phase"}]`)}, "", "phase"},
		{request{method: "PATCH", path: node, body: []byte(`{"metadata":{"annotations":{"drydock.dev/holders":null}},"spec":{"taints":[]}}`)}, "", "uncordon"},
		{request{method: "POST", path: eviction}, "", "evict"},
		{request{method: "DELETE", path: "/api/v1/namespaces/a/pods/b"}, "", "delete"},
		{request{method: "POST", path: events}, "", "event"},
		{request{method: "PATCH", path: node, body: []byte(`{"metadata":{"uid":"u"},"spec":{"unschedulable":true}}`)}, drains, "cordon-to-drain"},
		{request{method: "PATCH", path: node, body: []byte(`{"metadata":{"annotations":{"drydock.dev/holders":"{}"}}}`)}, drains, "hold-to-drain"},
		{request{method: "POST", path: eviction}, drains, "evict-for-profile"},
		{request{method: "PATCH", path: node, body: []byte(`{"metadata":{"annotations":{"drydock.dev/holders":null}}}`)}, drains, "give-back"},
		{request{method: "POST", path: events}, drains, "tell-of-move"},
	} {
		c.r.query = url.Values{}
		var got []string
		for _, s := range steps {
			if s.atRequest() && s.profile == c.profile && s.isRequest(&c.r) {
				got = append(got, s.name)
			}
		}
		if len(got) != 1 || got[0] != c.want {
			t.Errorf("%s is of %v, want %s", &c.r, got, c.want)
		}
	}
}

// TestActivityBelongsToItsStep tells the calls of hooks apart, which are one activity, by what they are given.
func TestActivityBelongsToItsStep(t *testing.T) {
	for _, c := range []struct {
		activity, input string
		want            []string
	}{
		{"CallHook", `{"hook":"before-cordon","subject":{}}`, []string{"before-cordon"}},
		{"CallHook", `{"hook":"after-drain","subject":{}}`, []string{"after-drain"}},
		{"CallHook", `{"hook":"before-release","subject":{}}`, []string{"before-release"}},
		{"CallHook", `{"hook":"before-cordon","closing":true,"subject":{}}`, []string{"before-cordon", "closing"}},
		{"Validate", `{}`, []string{"validate"}},
		{"Deliver", `{}`, []string{"notify"}},
		{"NoSuchActivity", `{"hook":"before-cordon"}`, nil},
	} {
		var got []string
		for _, s := range steps {
			if s.task != "" && s.isCall(call{method: "PollActivityTaskQueue", task: task{c.activity, c.input}}) {
				got = append(got, s.name)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s %s is of %v, want %v", c.activity, c.input, got, c.want)
		}
	}
}

func TestWritesOfTheOtherDrydockAreNoted(t *testing.T) {
	p := &apiProxy{}
	for _, r := range []*request{
		{method: "GET", path: "/api/v1/nodes/worker-01"},
		{method: "POST", path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"},
		{method: "POST", path: "/api/v1/namespaces/default/events"},
		{method: "PATCH", path: "/api/v1/nodes/worker-01"},
		{method: "PATCH", path: "/api/v1/nodes/worker-01/status"},
		{method: "POST", path: "/api/v1/namespaces/a/pods/b/eviction"},
		{method: "DELETE", path: "/api/v1/namespaces/a/pods/b"},
	} {
		p.note(r)
	}
	want := []string{
		"PATCH /api/v1/nodes/worker-01", "PATCH /api/v1/nodes/worker-01/status",
		"POST /api/v1/namespaces/a/pods/b/eviction", "DELETE /api/v1/namespaces/a/pods/b",
	}
	if got := p.writes(); !slices.Equal(got, want) {
		t.Errorf("noted %q, want %q", got, want)
	}
}
