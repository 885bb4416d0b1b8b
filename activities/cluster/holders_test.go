package cluster

import (
	"slices"
	"testing"
	"time"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/activities/execution"
)

// What a maintenance has taken its mark tells; of the others nothing is left but their slot.
func TestDeletedHoldersThatMarkNoNodeAreReported(t *testing.T) {
	c := &Activities{Temporal: activitytest.Statuses(nil), Home: execution.Namespace{Retention: time.Hour}}
	d := &holderPoll{activities: c, found: make(chan struct{}, 1), holders: []WatchedHolder{
		{RequestID: "young/1", Since: time.Now(), Unmarked: true},
		{RequestID: "old/1", Since: time.Now().Add(-2 * time.Minute), Unmarked: true},
		{RequestID: "marked/1", Since: time.Now().Add(-2 * time.Minute)},
	}}
	if err := d.round(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range d.take() {
		got = append(got, h.RequestID+" "+h.Status)
	}
	if !slices.Equal(got, []string{"old/1 not found"}) {
		t.Errorf("reported %q", got)
	}
}
