package main

import (
	"bytes"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// said is what settle says of a cluster without marks, to a make up with an ID.
func (c *cluster) said(t *testing.T, id string, remembered state) string {
	t.Helper()
	c.others = others(t.Context(), c.client, id)
	var out bytes.Buffer
	if err := c.settle(options{out: &out, yes: true}, remembered); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestASecondMakeUpSeesAFirstThatHoldsNoNode asks two of them for one cluster.
func TestASecondMakeUpSeesAFirstThatHoldsNoNode(t *testing.T) {
	c := &cluster{client: fake.NewClientset(), id: "here", context: "prod"}
	first, second := newID(), newID()
	if said := c.said(t, first, state{}); strings.Contains(said, "Warning") {
		t.Errorf("the first is warned: %s", said)
	}
	if err := announce(t.Context(), c.client, first, "/home/amy/up"); err != nil {
		t.Fatal(err)
	}
	for name, one := range map[string]struct {
		id         string
		remembered state
		warned     bool
	}{
		"the first, again":            {first, state{Cluster: "here"}, false},
		"a second":                    {second, state{}, true},
		"one that was up before that": {second, state{Cluster: "here"}, true},
	} {
		said := c.said(t, one.id, one.remembered)
		if warned := strings.Contains(said, "Warning") && strings.Contains(said, "/home/amy/up"); warned != one.warned {
			t.Errorf("%s: warned %v, want %v: %s", name, warned, one.warned, said)
		}
	}
	// The one that was confirmed last stays.
	if err := announce(t.Context(), c.client, second, "/home/ben/up"); err != nil {
		t.Fatal(err)
	}
	if said := c.said(t, first, state{Cluster: "here"}); !strings.Contains(said, "/home/ben/up") {
		t.Errorf("the first does not see the second: %s", said)
	}
}

func TestMakeUpSeesAnInstalledDrydock(t *testing.T) {
	c := &cluster{client: fake.NewClientset(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ops", Name: "drydock-worker", Labels: map[string]string{"app.kubernetes.io/name": "drydock"},
	}}), id: "here", context: "prod"}
	if said := c.said(t, newID(), state{}); !strings.Contains(said, "Deployment ops/drydock-worker") {
		t.Errorf("it is not seen: %s", said)
	}
	var out bytes.Buffer
	c.others = others(t.Context(), c.client, newID())
	if err := c.settle(options{out: &out}, state{}); err == nil {
		t.Errorf("nobody was asked, and it goes on: %v", err)
	}
}
