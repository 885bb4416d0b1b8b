package schedule

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGrouperKeys(t *testing.T) {
	grouper, err := NewGrouper([]Group{
		{Name: "zone", GroupBy: []string{"topology.kubernetes.io/zone"}},
		{Name: "gpu", NodeSelector: "pool=gpu"},
		{Name: "rack", NodeSelector: "pool in (gpu, cpu)", GroupBy: []string{"row", "rack"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	const zone = "topology.kubernetes.io/zone"
	for _, c := range []struct {
		name   string
		labels map[string]string
		want   []string
	}{
		{"all groups, in their order", map[string]string{zone: "a", "pool": "gpu", "row": "1", "rack": "7"},
			[]string{"zone[topology.kubernetes.io/zone=a]", "gpu", "rack[row=1,rack=7]"}},
		{"nodes without the label form a group of their own", nil,
			[]string{"zone[topology.kubernetes.io/zone=<none>]"}},
		{"an empty label is like none", map[string]string{zone: ""},
			[]string{"zone[topology.kubernetes.io/zone=<none>]"}},
		{"one of two labels", map[string]string{zone: "b", "pool": "cpu", "rack": "7"},
			[]string{"zone[topology.kubernetes.io/zone=b]", "rack[row=<none>,rack=7]"}},
	} {
		if diff := cmp.Diff(c.want, grouper.Keys(c.labels)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	if keys := (Grouper{}).Keys(map[string]string{"pool": "gpu"}); keys != nil {
		t.Errorf("no groups give the keys %v", keys)
	}
}

func TestNewGrouperNamesTheGroup(t *testing.T) {
	_, err := NewGrouper([]Group{{Name: "a"}, {Name: "b", NodeSelector: "pool=("}})
	if err == nil || !strings.HasPrefix(err.Error(), `groups[1].nodeSelector: "pool=("`) {
		t.Errorf("error %v", err)
	}
}

func TestGroupName(t *testing.T) {
	for key, want := range map[string]string{"gpu": "gpu", "zone[zone=a]": "zone", "rack[row=1,rack=<none>]": "rack"} {
		if got := GroupName(key); got != want {
			t.Errorf("GroupName(%q) = %q, want %q", key, got, want)
		}
	}
}
