package validation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"drydock.dev/drydock/rules/bounds"
)

// maxText bounds a message and maxNamed the objects that it names: a report has to fit in a Temporal payload.
const (
	maxText  = 600
	maxNamed = 3
)

// Report is what one look says of each thing that must hold.
type Report struct {
	At      time.Time `json:"at"`
	Results []Result  `json:"results"`
	// AllGood: every result is OK.
	AllGood bool `json:"allGood"`
	// Refused says who declared the validation failed; empty if nobody did.
	Refused string `json:"refused,omitempty"`
}

// Result is one thing that must hold.
type Result struct {
	// Name is the field of the validation and, of a list, which entry: "conditions Ready", "checks smoke".
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Message says what was found and, where it is not OK, what is missing and what would heal it.
	Message string `json:"message,omitempty"`
}

// String is the result as a sentence.
func (r Result) String() string { return r.Name + ": " + r.Message }

// Missing are the results that are not OK.
func (r Report) Missing() []Result {
	return slices.DeleteFunc(slices.Clone(r.Results), func(one Result) bool { return one.OK })
}

// Summary names the first n results that are not OK and counts the others; it is empty if all are.
func (r Report) Summary(n int) string {
	missing := r.Missing()
	var texts []string
	for _, one := range missing[:min(n, len(missing))] {
		texts = append(texts, one.String())
	}
	text := strings.Join(texts, "; ")
	if more := len(missing) - len(texts); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// Decide returns which parts of a validation hold. The validation is valid; an empty one always holds.
func Decide(v Validation, facts Facts, now time.Time) Report {
	d := decision{facts: facts, now: now, report: Report{At: now, Results: []Result{}}}
	if facts.Node.Missing && !v.Empty() {
		d.bad("node", "node %s does not exist; it has to join the cluster again", facts.Node.Name)
	}
	if v.WantsReady() {
		d.condition(Condition{Type: readyCondition})
	}
	for _, c := range v.Conditions {
		d.condition(c)
	}
	if v.NewBootID {
		d.bootID()
	}
	if v.DaemonSets != "" {
		d.daemonSets(v.DaemonSets)
	}
	for _, r := range v.Allocatable {
		d.allocatable(r)
	}
	for _, name := range v.Checks {
		d.check(name)
	}
	if v.Signal {
		d.signal()
	}
	d.report.AllGood = len(d.report.Missing()) == 0
	return d.report
}

// decision is a report that comes into being.
type decision struct {
	facts  Facts
	now    time.Time
	report Report
}

func (d *decision) good(name, format string, args ...any) { d.result(name, true, format, args...) }

func (d *decision) bad(name, format string, args ...any) { d.result(name, false, format, args...) }

func (d *decision) result(name string, ok bool, format string, args ...any) {
	d.report.Results = append(d.report.Results, Result{Name: name, OK: ok, Message: cut(fmt.Sprintf(format, args...))})
}

func (d *decision) condition(c Condition) {
	name := "conditions " + c.Type
	i := slices.IndexFunc(d.facts.Node.Conditions, func(have NodeCondition) bool { return have.Type == c.Type })
	if i < 0 {
		d.bad(name, "the node does not report this condition; whoever sets it has to run on the node")
		return
	}
	have := d.facts.Node.Conditions[i]
	// The clock that set the transition may be ahead of ours.
	held := max(0, d.now.Sub(have.Since))
	switch {
	case have.Status != c.wanted():
		text := fmt.Sprintf("is %s, want %s", have.Status, c.wanted())
		if have.Message != "" {
			text += ": " + have.Message
		}
		d.bad(name, "%s", text)
	case held < c.ForAtLeast.Std():
		d.bad(name, "is %s since %s, want it for %s: %s to go", have.Status, have.Since.UTC().Format(time.RFC3339),
			c.ForAtLeast, (c.ForAtLeast.Std() - held).Round(time.Second))
	default:
		d.good(name, "is %s", have.Status)
	}
}

func (d *decision) bootID() {
	const name = "newBootID"
	switch before, is := d.facts.BootIDBefore, d.facts.Node.BootID; {
	case before == "":
		d.bad(name, "the boot ID at the cordon is not known, so a restart cannot be told; validate by signal, or without newBootID")
	case is == "":
		d.bad(name, "the node reports no boot ID; its kubelet has to register")
	case is == before:
		d.bad(name, "the node was not restarted since it was cordoned (boot ID %s); restart it", is)
	default:
		d.good(name, "the node was restarted (boot ID %s)", is)
	}
}

func (d *decision) daemonSets(selector string) {
	const name = "daemonSets"
	found := d.facts.DaemonSets
	switch {
	case found.Selected == 0 && selector != AllDaemonSets:
		d.bad(name, "no DaemonSet has labels that match %q; correct the selector or deploy the DaemonSet", selector)
	case len(found.Lacking) > 0:
		d.bad(name, "%d of %d without a Ready pod on the node: %s", len(found.Lacking), found.Wanted, listed(found.Lacking))
	default:
		d.good(name, "all %d have a Ready pod on the node", found.Wanted)
	}
}

func listed(lacking []Lacking) string {
	sorted := slices.SortedFunc(slices.Values(lacking), func(a, b Lacking) int { return cmp.Compare(a.DaemonSet, b.DaemonSet) })
	var texts []string
	for _, l := range sorted[:min(maxNamed, len(sorted))] {
		texts = append(texts, l.DaemonSet+" "+l.Why)
	}
	text := strings.Join(texts, "; ")
	if more := len(sorted) - len(texts); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

func (d *decision) allocatable(r Resource) {
	name := "allocatable " + r.String()
	wanted, err := resource.ParseQuantity(r.AtLeast)
	if err != nil {
		d.bad(name, "%q is not a quantity", r.AtLeast)
		return
	}
	matching, short := 0, []string{}
	for _, offered := range d.facts.Node.Allocatable {
		if !r.Matches(offered.Resource) {
			continue
		}
		matching++
		if amount, err := resource.ParseQuantity(offered.Quantity); err != nil || amount.Cmp(wanted) < 0 {
			short = append(short, offered.Resource+" "+offered.Quantity)
		}
	}
	switch {
	case matching == 0:
		d.bad(name, "the node offers none, want at least %s; its device plugin has to register", r.AtLeast)
	case len(short) > 0:
		d.bad(name, "the node offers %s, want at least %s", strings.Join(short, ", "), r.AtLeast)
	default:
		d.good(name, "the node offers at least %s", r.AtLeast)
	}
}

func (d *decision) check(check string) {
	name := "checks " + check
	i := slices.IndexFunc(d.facts.Checks, func(a Answer) bool { return a.Check == check })
	switch {
	case i < 0:
		d.bad(name, "has not answered yet")
	case d.facts.Checks[i].OK:
		d.good(name, "%s", d.facts.Checks[i].Message)
	default:
		d.bad(name, "%s", d.facts.Checks[i].Message)
	}
}

func (d *decision) signal() {
	const name = "signal"
	s := d.facts.Signal
	if s == nil {
		d.bad(name, `nobody has validated the node yet; send "validated" or "validation-failed"`)
		return
	}
	said := "validated"
	if !s.Validated {
		said = "declared failed"
	}
	if s.By != "" {
		said += " by " + s.By
	}
	if s.Comment != "" {
		said += ": " + s.Comment
	}
	if !s.Validated {
		d.report.Refused = cut(said)
	}
	d.result(name, s.Validated, "%s", said)
}

func cut(text string) string {
	return bounds.Cut(strings.ToValidUTF8(text, "�"), maxText)
}
