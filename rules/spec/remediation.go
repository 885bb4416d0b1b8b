package spec

import (
	"errors"
	"fmt"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Remediation says that a maintenance repairs a node that a health check found ill. It takes a slot of its own: see
// schedule.Limits.Remediations, which bounds also those that somebody starts by hand.
type Remediation struct {
	// Check is the name of the health check.
	Check string `json:"check" jsonschema:"required"`
}

const (
	// remediationPrefix begins the requestor of every remediation, and maxCheck bounds the name of a check, in bytes.
	remediationPrefix = "health-"
	maxCheck          = 40
)

// RemediationRequestor is the requestor of the maintenances that a health check starts.
func RemediationRequestor(check string) string { return remediationPrefix + check }

// IsRemediationRequestor reports whether a requestor may be that of a health check.
func IsRemediationRequestor(requestor string) bool {
	check, is := strings.CutPrefix(requestor, remediationPrefix)
	return is && CheckName(check) == nil
}

// CheckName checks the name of a health check: a DNS label of at most 40 characters.
func CheckName(name string) error {
	if name == "" {
		return errors.New("required: the name of the health check")
	}
	if len(name) > maxCheck {
		return fmt.Errorf("%q has %d characters: want at most %d", name, len(name), maxCheck)
	}
	if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
		return fmt.Errorf("%q is not the name of a health check: %s", name, wrong[0])
	}
	return nil
}

// validateRemediation refuses what a remediation cannot be: it is for one node, one check requests it, and it starts at
// once.
func (m Maintenance) validateRemediation(p *problems) {
	check := m.Remediation.Check
	if err := CheckName(check); err != nil {
		p.check("remediation.check", err)
		return
	}
	refuse := func(given bool, field, why string) {
		if given {
			p.add(field, why)
		}
	}
	of := RemediationRequestor(check)
	refuse(m.Requestor != of, "requestor", fmt.Sprintf("%q: a remediation of check %s has the requestor %q; leave it out", m.Requestor, check, of))
	refuse(m.Type != Unplanned, "type", m.Type+": a remediation is unplanned; leave it out")
	refuse(m.Lockstep, "lockstep", "a remediation is of one node alone, and no plans share it")
	refuse(len(m.Windows) > 0, "windows", "a remediation waits for no window: leave it out")
}

// validateOutOfService refuses to call a node dead that nothing has proven to be off.
func (m Maintenance) validateOutOfService(p *problems) {
	if m.Work == "" {
		p.add("outOfService", "work is required: its success is what proves that the node is off")
	}
	if m.Drain.Mode == ModeExternal {
		p.add("outOfService", "drain.mode external: on a node that is off nobody drains; use evict, wait or none")
	}
}

// remediationDefaults are over the worker's defaults what a remediation needs to be: its node may be dead.
func remediationDefaults(defaults []byte, check string) ([]byte, error) {
	own := fmt.Sprintf(`{"type":%q,"requestor":%q,"drain":{"onNodeNotReady":%q},"windows":null,"approval":null,"preflight":%q}`,
		Unplanned, RemediationRequestor(check), IgnoreStuck, PreflightOff)
	return jsonpatch.MergePatch(defaults, []byte(own))
}
