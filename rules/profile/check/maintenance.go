package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/rules/profile/conf"
	"drydock.dev/drydock/rules/profile/state"
)

const profileLabel = state.ProfileLabel

func readMaxMaintenance(o *conf.Object, _ Environment) Check {
	m := maxMaintenance{
		max: o.RequiredInt("max", "how many nodes may be in maintenance"), profile: o.Text("profile"),
		skipAfter: o.Duration("skipAfter", 0), groupBy: o.Texts("groupBy"),
	}
	if label := o.Text("groupLabel"); label != "" {
		m.groupBy = append(m.groupBy, label)
	}
	return m
}

// maxMaintenance wants fewer nodes in maintenance than max, counted within the node's group.
type maxMaintenance struct {
	max int
	// profile counts only nodes with that profile in their label, whichever profile has them in maintenance.
	profile string
	// skipAfter leaves out nodes whose last transition is as long ago, 0 none.
	skipAfter time.Duration
	// groupBy are labels that counted nodes have in common with the node. One that the node lacks makes no group.
	groupBy []string
}

// Hold is part of Check.
func (m maxMaintenance) Hold(c Case) Result {
	var counted []string
	for _, other := range c.View.indexed().maintained {
		if m.counts(c, other) {
			counted = append(counted, other.Name)
		}
	}
	r := Result{Holds: len(counted) < m.max}
	if !r.Holds {
		r.Reason = fmt.Sprintf("%d in maintenance: %s", len(counted), few(counted))
	}
	return r.info("scope", m.scope(c)).info("maintained", len(counted)).info("max", m.max)
}

func (m maxMaintenance) counts(c Case, other *Member) bool {
	if m.profile != "" && !slices.Contains(labelled(other), m.profile) {
		return false
	}
	for _, key := range m.groupBy {
		if own := c.Node.Labels[key]; own != "" && other.Labels[key] != own {
			return false
		}
	}
	if m.skipAfter != 0 && len(other.entering) == 0 {
		// A node whose last transition is not known counts.
		if at, known := other.lastTransition(m.profile); known && c.Now.Sub(at) >= m.skipAfter {
			return false
		}
	}
	return true
}

// labelled are the profiles that a node's label names.
func labelled(m *Member) []string {
	if m.Labels[profileLabel] == "" {
		return nil
	}
	return m.Profiles
}

func (m maxMaintenance) scope(c Case) string {
	var parts []string
	if m.profile != "" {
		parts = append(parts, "profile "+m.profile)
	}
	for _, key := range m.groupBy {
		if own := c.Node.Labels[key]; own != "" {
			parts = append(parts, key+"="+own)
		}
	}
	if len(parts) == 0 {
		return "cluster"
	}
	return strings.Join(parts, ", ")
}

// few names some of many.
func few(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
