package site

import (
	"encoding/json"
	"strings"

	"drydock.dev/drydock/rules/doctor"
)

// Doctored runs the command line's doctor, and checks that its exit status fits its report.
func (s *Site) Doctored(flags ...string) doctor.Report {
	s.Helper()
	r := s.Drydock(append([]string{"doctor", "-o", "json", "--pause", "1s"}, flags...)...)
	var report doctor.Report
	if err := json.Unmarshal([]byte(r.Stdout), &report); err != nil {
		s.Fatalf("%v, exit status %d\n%s", err, r.Status, r.Out())
	}
	if want := min(report.Count(), 1); r.Status != want {
		s.Errorf("exit status %d, want %d\n%s", r.Status, want, r.Out())
	}
	return report
}

// Found are the kinds and nodes of a report's findings.
func Found(report doctor.Report) []string {
	texts := []string{}
	for _, f := range report.Findings {
		texts = append(texts, strings.TrimSpace(string(f.Kind)+" "+f.Node))
	}
	return texts
}
