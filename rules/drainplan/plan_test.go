package drainplan

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// kepEntries is the drainPlan of the example in KEP-4212, "PodTypes and Label Selectors Progression".
func kepEntries() []Entry {
	return []Entry{
		{PodType: Default, PodPriority: 1000},
		{PodType: Default, PodPriority: 2000, PodSelector: "app=postgres"},
		{PodType: Default, PodPriority: 2147483647},
		{PodType: DaemonSet, PodPriority: 1000},
		{PodType: DaemonSet, PodPriority: 2147483647},
		{PodType: Static, PodPriority: 2147483647},
	}
}

// kepTargets are the drainTargets of the example, step by step.
func kepTargets() [][]Entry {
	return [][]Entry{
		{
			{PodType: Default, PodPriority: 1000},
			{PodType: Default, PodPriority: 1000, PodSelector: "app=postgres"},
		},
		{
			{PodType: Default, PodPriority: 1000},
			{PodType: Default, PodPriority: 2000, PodSelector: "app=postgres"},
		},
		{
			{PodType: Default, PodPriority: 2147483647},
			{PodType: Default, PodPriority: 2147483647, PodSelector: "app=postgres"},
		},
		{
			{PodType: Default, PodPriority: 2147483647},
			{PodType: Default, PodPriority: 2147483647, PodSelector: "app=postgres"},
			{PodType: DaemonSet, PodPriority: 1000},
		},
		{
			{PodType: Default, PodPriority: 2147483647},
			{PodType: Default, PodPriority: 2147483647, PodSelector: "app=postgres"},
			{PodType: DaemonSet, PodPriority: 2147483647},
		},
		{
			{PodType: Default, PodPriority: 2147483647},
			{PodType: Default, PodPriority: 2147483647, PodSelector: "app=postgres"},
			{PodType: DaemonSet, PodPriority: 2147483647},
			{PodType: Static, PodPriority: 2147483647},
		},
	}
}

func mustNew(t *testing.T, entries []Entry, include ...PodType) Plan {
	t.Helper()
	p, err := New(entries, include)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestTargetsOfTheKEPExample(t *testing.T) {
	p := mustNew(t, kepEntries())
	equal(t, "entries", p.Entries(), kepEntries())
	for tier, want := range kepTargets() {
		equal(t, "targets of "+name(p.Entry(tier)), p.Targets(tier), want)
	}
	if got := p.Targets(-1); len(got) != 0 {
		t.Errorf("targets before the drain: %v", got)
	}
	last := kepTargets()[p.Len()-1]
	equal(t, "targets after the drain", p.Targets(p.Len()), last)
	equal(t, "targets for a tier that is not there", p.Targets(math.MaxInt32), last)
}

func TestTargetsOfTheKEPExampleAmongStandardEntries(t *testing.T) {
	p := mustNew(t, kepEntries(), Types()...)
	if want := len(kepEntries()) + 12 - 3; p.Len() != want {
		t.Errorf("%d tiers, want %d", p.Len(), want)
	}
	step := 0
	for tier, e := range p.Entries() {
		if step < len(kepEntries()) && e == kepEntries()[step] {
			equal(t, "targets of "+name(e), p.Targets(tier), kepTargets()[step])
			step++
		}
	}
	if step != len(kepEntries()) {
		t.Errorf("found %d of the example's entries", step)
	}
}

func TestTargetsOfOneTypeLeaveOtherSelectorsOut(t *testing.T) {
	p := mustNew(t, []Entry{
		{PodType: Default, PodPriority: 1, PodSelector: "app=web"},
		{PodType: Default, PodPriority: 2, PodSelector: "app=db"},
		{PodType: Static, PodPriority: 3, PodSelector: "app=db"},
	})
	for tier, want := range [][]Entry{
		{{PodType: Default, PodPriority: 1, PodSelector: "app=web"}},
		{{PodType: Default, PodPriority: 1, PodSelector: "app=web"}, {PodType: Default, PodPriority: 2, PodSelector: "app=db"}},
		{
			{PodType: Default, PodPriority: 1, PodSelector: "app=web"},
			{PodType: Default, PodPriority: 2, PodSelector: "app=db"},
			{PodType: Static, PodPriority: 3, PodSelector: "app=db"},
		},
	} {
		equal(t, "targets of "+name(p.Entry(tier)), p.Targets(tier), want)
	}
}

func TestOrder(t *testing.T) {
	standard := func(podType PodType) []Entry {
		return []Entry{
			{PodType: podType, PodPriority: 1000000000},
			{PodType: podType, PodPriority: 2000000000},
			{PodType: podType, PodPriority: 2000001000},
			{PodType: podType, PodPriority: 2147483647},
		}
	}
	for _, test := range []struct {
		name    string
		entries []Entry
		include []PodType
		want    []Entry
	}{
		{name: "nothing", want: []Entry{}},
		{
			name:    "types before priorities",
			entries: []Entry{{PodType: Static, PodPriority: 1}, {PodType: DaemonSet, PodPriority: 2}, {PodType: Default, PodPriority: 3}},
			want:    []Entry{{PodType: Default, PodPriority: 3}, {PodType: DaemonSet, PodPriority: 2}, {PodType: Static, PodPriority: 1}},
		},
		{
			name:    "priorities before selectors",
			entries: []Entry{{PodType: Default, PodPriority: 7, PodSelector: "a=b"}, {PodType: Default, PodPriority: 0}, {PodType: Default, PodPriority: -5}},
			want:    []Entry{{PodType: Default, PodPriority: -5}, {PodType: Default, PodPriority: 0}, {PodType: Default, PodPriority: 7, PodSelector: "a=b"}},
		},
		{
			name:    "concrete selectors first, by their text",
			entries: []Entry{{PodType: Default}, {PodType: Default, PodSelector: "z"}, {PodType: Default, PodSelector: "a"}},
			want:    []Entry{{PodType: Default, PodSelector: "a"}, {PodType: Default, PodSelector: "z"}, {PodType: Default}},
		},
		{
			name:    "selectors in canonical form",
			entries: []Entry{{PodType: Default, PodSelector: " "}, {PodType: Default, PodSelector: "z = 1, a in (y,x)"}},
			want:    []Entry{{PodType: Default, PodSelector: "a in (x,y),z=1"}, {PodType: Default}},
		},
		{
			name:    "standard entries of all types, however included",
			include: []PodType{Static, Default, DaemonSet, Static},
			want:    append(append(standard(Default), standard(DaemonSet)...), standard(Static)...),
		},
		{
			name:    "standard entries of one type, one of them given",
			entries: []Entry{{PodType: Default, PodPriority: 2}, {PodType: DaemonSet, PodPriority: 2000000000}},
			include: []PodType{DaemonSet},
			want:    append([]Entry{{PodType: Default, PodPriority: 2}}, standard(DaemonSet)...),
		},
		{
			name:    "a selector is not the standard entry",
			entries: []Entry{{PodType: Static, PodPriority: 1000000000, PodSelector: "a"}},
			include: []PodType{Static},
			want:    append([]Entry{{PodType: Static, PodPriority: 1000000000, PodSelector: "a"}}, standard(Static)...),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := mustNew(t, test.entries, test.include...)
			equal(t, "entries", p.Entries(), test.want)
			for tier, want := range test.want {
				equal(t, "entry", p.Entry(tier), want)
			}
			if p.Len() != len(test.want) {
				t.Errorf("%d tiers, want %d", p.Len(), len(test.want))
			}
		})
	}
}

func TestEntriesIsACopy(t *testing.T) {
	p := mustNew(t, kepEntries())
	p.Entries()[0].PodPriority = 5
	equal(t, "entries", p.Entries(), kepEntries())
}

func TestNewRefuses(t *testing.T) {
	for _, test := range []struct {
		name    string
		entries []Entry
		include []PodType
		// want are the beginnings of the error's lines.
		want []string
	}{
		{
			name:    "an entry given twice",
			entries: []Entry{{PodType: Default, PodPriority: 1}, {PodType: Static, PodPriority: 1}, {PodType: Default, PodPriority: 1}},
			want:    []string{"tiers[2]: the same entry as tiers[0]"},
		},
		{
			name:    "a standard entry given twice",
			entries: []Entry{{PodType: Default, PodPriority: 1000000000}, {PodType: Default, PodPriority: 1000000000}},
			include: []PodType{Default},
			want:    []string{"tiers[1]: the same entry as tiers[0]"},
		},
		{
			name: "a selector written in two ways",
			entries: []Entry{
				{PodType: Default, PodSelector: "app in (a,b),tier=db"},
				{PodType: Default, PodSelector: "tier = db, app in (b, a)"},
			},
			want: []string{"tiers[1]: the same entry as tiers[0]"},
		},
		{
			name:    "an unknown pod type",
			entries: []Entry{{PodType: Default}, {PodType: "static"}, {}},
			want:    []string{`tiers[1].podType: unknown pod type "static"`, `tiers[2].podType: unknown pod type ""`},
		},
		{
			name:    "an unknown pod type to include",
			include: []PodType{Static, "Job"},
			want:    []string{`include[1]: unknown pod type "Job", want one of ["Default" "DaemonSet" "Static"]`},
		},
		{
			name:    "a bad selector",
			entries: []Entry{{PodType: Default}, {PodType: Default, PodPriority: 1}, {PodType: Static, PodSelector: "app in (a"}},
			want:    []string{"tiers[2].podSelector: "},
		},
		{
			name:    "all at once",
			entries: []Entry{{PodType: "x", PodSelector: "=="}, {PodType: Default}, {PodType: Default}, {PodType: Default, PodSelector: "a=-"}},
			include: []PodType{"y"},
			want: []string{
				"tiers[0].podType: ", "tiers[0].podSelector: ", "tiers[2]: the same entry as tiers[1]",
				"tiers[3].podSelector: ", "include[0]: ",
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := New(test.entries, test.include)
			if err == nil {
				t.Fatal("accepted")
			}
			if p.Len() != 0 {
				t.Errorf("a plan of %d tiers beside the error", p.Len())
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(test.want) {
				t.Fatalf("error %q, want %d lines", err, len(test.want))
			}
			for i, want := range test.want {
				if !strings.HasPrefix(lines[i], want) {
					t.Errorf("line %d is %q, want %q", i, lines[i], want)
				}
			}
		})
	}
}
