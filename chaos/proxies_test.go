package main

import (
	"net/url"
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

// TestRequestBelongsToItsStep shows the patches of a maintenance, as k8s writes them, to the steps.
func TestRequestBelongsToItsStep(t *testing.T) {
	node := "/api/v1/nodes/worker-01"
	for _, c := range []struct {
		r    request
		want string
	}{
		{request{method: "PATCH", path: node, body: []byte(`{"metadata":{"annotations":{"drydock.dev/holders":"{}"}},"spec":{"unschedulable":true}}`)}, "cordon"},
		{request{method: "PATCH", path: node, body: []byte(`{"spec":{"taints":[{"key":"drydock.dev/maintenance"}]}}`)}, "taint"},
		{request{method: "PATCH", path: node, body: []byte(`[{"op":"add","path":"/metadata/labels/drydock.dev~1phase"}]`)}, "phase"},
		{request{method: "PATCH", path: node, body: []byte(`{"metadata":{"annotations":{"drydock.dev/holders":null}},"spec":{"taints":[]}}`)}, "uncordon"},
		{request{method: "POST", path: "/api/v1/namespaces/a/pods/b/eviction"}, "evict"},
		{request{method: "DELETE", path: "/api/v1/namespaces/a/pods/b"}, "delete"},
		{request{method: "POST", path: "/api/v1/namespaces/default/events"}, "event"},
	} {
		c.r.query = url.Values{}
		var got []string
		for _, s := range steps {
			if s.atRequest() && s.isRequest(&c.r) {
				got = append(got, s.name)
			}
		}
		if len(got) != 1 || got[0] != c.want {
			t.Errorf("%s is of %v, want %s", &c.r, got, c.want)
		}
	}
}
