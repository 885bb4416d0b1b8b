package objects

import (
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
)

func TestACopyIsOfItsOwn(t *testing.T) {
	entry := api.KEPEntry{PodPriority: 1, PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}
	s := Status{StageStatuses: []StageStatus{{Name: api.StageIdle, StartTimestamp: &metav1.Time{Time: time.Unix(1, 0)}}}, NodeStatuses: []api.KEPNode{{DrainTargets: []api.KEPEntry{entry}}}}
	copied := s.DeepCopy()
	if !reflect.DeepEqual(s, copied) {
		t.Errorf("%+v is not %+v", copied, s)
	}
	copied.NodeStatuses[0].DrainTargets[0].PodSelector.MatchLabels["a"] = "c"
	copied.StageStatuses[0].Name = api.StageDrain
	copied.StageStatuses[0].StartTimestamp.Time = time.Unix(2, 0)
	if entry.PodSelector.MatchLabels["a"] != "b" || s.StageStatuses[0].Name != api.StageIdle || s.StageStatuses[0].StartTimestamp.Unix() != 1 {
		t.Error("a copy shares what it has")
	}
}
