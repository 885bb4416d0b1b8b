package config

import (
	"errors"
	"strings"
	"testing"
)

func TestNamesOfNexusEndpointsAreChecked(t *testing.T) {
	for _, c := range []struct {
		nexus Nexus
		want  string
	}{
		{Nexus{}, ""},
		{Nexus{Endpoint: "drydock"}, ""},
		{Nexus{Endpoint: "drydock", Work: []string{"firmware", "bios-2"}}, ""},
		{Nexus{Endpoint: "dry_dock"}, "nexus.endpoint"},
		{Nexus{Endpoint: "-"}, "nexus.endpoint"},
		{Nexus{Work: []string{"firmware"}}, "nexus.work: is of nexus.endpoint"},
		{Nexus{Endpoint: "drydock", Work: []string{"firmware", ""}}, "nexus.work[1]"},
		{Nexus{Endpoint: "drydock", Work: make([]string, maxNexusWork+1)}, "at most 50"},
	} {
		err := errors.Join(c.nexus.validate()...)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, and not %q", c.nexus, err, c.want)
		}
	}
	if n := (Nexus{Work: []string{"firmware"}}); !n.MayWork("firmware") || n.MayWork("") {
		t.Error("only what is named may work")
	}
}
