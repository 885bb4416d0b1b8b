package config_test

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"drydock.dev/drydock/config"
	"drydock.dev/drydock/rules/policy"
	"drydock.dev/drydock/rules/spec"
)

// example is a configuration that the documentation shows, with the rows of the table that follows it.
type example struct {
	yaml string
	rows [][]string
}

// examplesOf are the blocks of a page that begin with policy or quotas.
func examplesOf(page string) (all []example) {
	var block strings.Builder
	inside := false
	for line := range strings.Lines(page + "\n") {
		if strings.HasPrefix(line, "```") {
			inside = !inside
			continue
		}
		if inside {
			block.WriteString(line)
			continue
		}
		if text := block.String(); strings.HasPrefix(text, "policy:") || strings.HasPrefix(text, "quotas:") {
			all = append(all, example{yaml: text})
		}
		block.Reset()
		if !strings.HasPrefix(line, "| `{") || len(all) == 0 {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		for i, cell := range cells {
			cells[i] = strings.Trim(cell, " `")
		}
		all[len(all)-1].rows = append(all[len(all)-1].rows, cells)
	}
	return all
}

// What the documentation of policies shows is a configuration, and its tables say what its rules decide.
func TestThePolicyPageIsTrue(t *testing.T) {
	page, err := os.ReadFile("../docs/tasks/approval-and-policy.md")
	if err != nil {
		t.Fatal(err)
	}
	rules, rows := 0, 0
	for _, e := range examplesOf(string(page)) {
		c := config.Default()
		if err := config.Parse([]byte(e.yaml), &c, kinds); err != nil {
			t.Fatalf("%s\n%v", e.yaml, err)
		}
		if err := c.Validate(); err != nil {
			t.Fatalf("%s\n%v", e.yaml, err)
		}
		compiled, err := policy.Compile(c.Policy)
		if err != nil {
			t.Fatal(err)
		}
		rules += len(c.Policy)
		for _, rule := range c.Policy {
			if strings.Contains(rule.Require, "approval.by") {
				t.Errorf("%s decides by who the approver claims to be: want approval.principal", rule.Name)
			}
		}
		for _, row := range e.rows {
			rows++
			if got := verdict(t, compiled, row); got != row[3] {
				t.Errorf("%s: %s, and the page says %s", strings.Join(row[:3], " | "), got, row[3])
			}
		}
	}
	if rules < 10 || rows < 15 {
		t.Errorf("the page has %d rules and %d rows", rules, rows)
	}
}

// verdict is what rules say of a row: maintenance, labels and approval.
func verdict(t *testing.T, p *policy.Policy, row []string) string {
	t.Helper()
	m, err := spec.Decode([]byte(row[0]), nil)
	if err != nil {
		t.Fatalf("%s: %v", row[0], err)
	}
	c := policy.Case{Maintenance: m, Node: &policy.Node{Name: m.Node}}
	if err := json.Unmarshal([]byte(row[1]), &c.Node.Labels); err != nil {
		t.Fatalf("%s: %v", row[1], err)
	}
	c.Starter.Principal = new("jwt:ops@example.com")
	cases := []policy.Case{c}
	if row[2] != "" {
		c.Approval = &policy.Approval{}
		if err := json.Unmarshal([]byte(row[2]), c.Approval); err != nil {
			t.Fatalf("%s: %v", row[2], err)
		}
		cases = append(cases, c)
	}
	var names []string
	for _, c := range cases {
		var refused policy.Refused
		if err := p.Judge(t.Context(), c); err != nil && !errors.As(err, &refused) {
			t.Fatal(err)
		}
		for _, r := range refused {
			names = append(names, r.Rule)
		}
	}
	if len(names) == 0 {
		return "allowed"
	}
	return strings.Join(names, ", ")
}

// The scheduler begins with the quotas among its limits.
func TestQuotasAreLimitsOfTheScheduler(t *testing.T) {
	c, err := config.Load("testdata/policy.good.yml", func(string) string { return "" }, kinds)
	if err != nil {
		t.Fatal(err)
	}
	limits := c.Limits()
	if limits.MaxParallel.String() != "1" || *limits.Quotas.Of("ci").Held != 2 || *limits.Quotas.Of("intern").Held != 5 || *limits.Quotas.Of("intern").Pending != 0 {
		t.Errorf("%+v", limits)
	}
	names := []string{}
	for _, rule := range c.Policy {
		names = append(names, rule.Name)
	}
	if want := []string{"production-needs-approval", "two-pairs-of-eyes", "no-force"}; !slices.Equal(names, want) {
		t.Errorf("rules %v", names)
	}
}
