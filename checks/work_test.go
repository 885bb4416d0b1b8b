package checks_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/checks/checkstest"
	"drydock.dev/drydock/checks/job"
	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/validation"
)

const goodWork = `
work:
  reboot: {job: {templateFile: /etc/job.yaml, namespace: drydock-work}, success: newBootID, deadline: 20m}
  flash: {http: {url: "https://firmware/{{.Node}}"}}
  swap-disk: {signal: {}, deadline: 8h}
checks: {burn-in: {job: {templateFile: /etc/job.yaml, namespace: drydock-jobs}}}
`

const workManifest = `
apiVersion: batch/v1
kind: Job
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}
`

func TestWorksAndTheirPlans(t *testing.T) {
	c := decode(t, goodWork)
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if got := c.Namespaces(); !slices.Equal(got, []string{"drydock-jobs", "drydock-work"}) {
		t.Errorf("namespaces %v", got)
	}
	manifest := checkstest.File(t, workManifest)
	c.Work["reboot"].Actions[0].Config.(*job.Config).TemplateFile = manifest
	c.Checks["burn-in"].Actions[0].Config.(*job.Config).TemplateFile = manifest
	r, err := checks.New(c, k8stest.NewFake(), "test")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]validation.Work{
		"reboot":    {Kind: validation.KindJob, Deadline: period.Duration(20 * time.Minute), NewBootID: true},
		"flash":     {Kind: validation.KindHTTP, Deadline: validation.DefaultWorkDeadline},
		"swap-disk": {Kind: validation.KindSignal, Deadline: period.Duration(8 * time.Hour)},
	} {
		want.Name = name
		got, err := r.Work(name)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	if _, err := r.Work("rebot"); err == nil || !strings.Contains(err.Error(), `work: there is no "rebot"; the worker knows flash, reboot, swap-disk`) {
		t.Error(err)
	}
	if _, err := r.AwaitWork(t.Context(), checks.WorkCall{Work: "swap-disk", Key: "key", Subject: checkstest.Subject}); err == nil || !strings.Contains(err.Error(), "is a signal") {
		t.Error(err)
	}
}

func TestWrongWorkNamesTheField(t *testing.T) {
	for text, want := range map[string]string{
		`work: {a: {}}`:                                               "work.a: has 0 of http, job and signal",
		`work: {A_b: {signal: {}}}`:                                   `work.A_b: "A_b" is not a name`,
		`work: {a: {signal: {}, success: newBootID}}`:                 "work.a.success: \"newBootID\" has no meaning with signal",
		`work: {a: {http: {url: "http://a"}, success: always}}`:       `work.a.success: "always" is not one of own, newBootID`,
		`work: {a: {job: {namespace: jobs}}}`:                         "work.a.job.templateFile: required",
		`work: {a: {http: {url: "http://a", bearerToken: {env: A}}}}`: "work.a.http",
		`work: {a: {http: {url: "http://a", capture: "(a)"}}}`:        "work.a.http.capture: has no meaning in a work",
	} {
		if err := decode(t, text).Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		`{"work": {"a": {"signal": {}, "blocking": true}}}`: "work.a.blocking: unknown field",
		`{"work": {"a": {"deadline": 5}}}`:                  "work.a.deadline: 5 is not a duration",
	} {
		if _, err := decodeJSON([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
