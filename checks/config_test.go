package checks_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/checks/checkstest"
	"drydock.dev/drydock/checks/job"
	"drydock.dev/drydock/checks/kinds"
	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/rules/validation"
)

// decode reads a configuration as the worker does.
func decode(t *testing.T, text string) checks.Config {
	t.Helper()
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	c, err := decodeJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func decodeJSON(data []byte) (c checks.Config, err error) {
	if err := spec.DecodeStrict(data, &c); err != nil {
		return c, err
	}
	return c, c.Decode(kinds.All())
}

const good = `
prometheus: {url: "https://prometheus.example/base", bearerToken: {file: /run/token}, timeout: 5s}
checks:
  gpu: {prometheus: {query: 'up{node="{{.Node}}"}', expect: ">= 1"}}
  probe:
    http:
      url: "http://{{.InternalIP}}:9100/healthz?reason={{.Reason}}"
      headers: {X-Ticket: "{{.Ticket}}"}
      secretHeaders: {X-Api-Key: {env: API_KEY}}
      allowPlaintext: true
      expectStatus: [200, 204]
      expectBody: ^ok
  burn-in: {job: {templateFile: /etc/job.yaml, namespace: drydock-jobs}}
hooks:
  silence:
    http:
      url: http://alertmanager/api/v2/silences
      body: '{"comment":"{{.Reason}}","endsAt":"{{after "4h"}}"}'
      capture: '"silenceID":"([^"]+)"'
    closing: {http: {url: "http://alertmanager/api/v2/silence/{{.Captured}}", method: DELETE}}
  tell: {http: {url: "http://cmdb/{{.Node}}"}, blocking: false}
  approve: {signal: {}, deadline: 24h, onFailure: continue}
  firmware: {job: {templateFile: /etc/job.yaml, namespace: drydock-jobs}, deadline: 1h}
`

func TestAGoodConfigurationAndItsPlans(t *testing.T) {
	c := decode(t, good)
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	manifest := checkstest.File(t, `
apiVersion: batch/v1
kind: Job
spec: {template: {spec: {containers: [{name: burn, image: burn}]}}}
`)
	c.Checks["burn-in"].Actions[0].Config.(*job.Config).TemplateFile = manifest
	c.Hooks["firmware"].Actions[0].Config.(*job.Config).TemplateFile = manifest
	r, err := checks.New(c, k8stest.NewFake(), "test")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]validation.Hook{
		"silence":  {Kind: validation.KindHTTP, Blocking: true, Deadline: validation.DefaultHookDeadline, HasCleanup: true, OnFailure: validation.FailMaintenance},
		"tell":     {Kind: validation.KindHTTP, Deadline: validation.DefaultHookDeadline, OnFailure: validation.ContinueAnyway},
		"approve":  {Kind: validation.KindSignal, Blocking: true, Deadline: period.Duration(24 * time.Hour), OnFailure: validation.ContinueAnyway},
		"firmware": {Kind: validation.KindJob, Blocking: true, Deadline: period.Duration(time.Hour), OnFailure: validation.FailMaintenance},
	}
	for name, plan := range want {
		plan.Name = name
		got, err := r.Plan(name)
		if diff := cmp.Diff(plan, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	if err := r.Known([]string{"gpu", "probe", "burn-in"}, validation.Hooks{AfterDrain: []string{"silence"}}); err != nil {
		t.Error(err)
	}
	err = r.Known([]string{"gpus"}, validation.Hooks{BeforeCordon: []string{"burn"}})
	for _, part := range []string{`checks: there is no "gpus"; the worker knows burn-in, gpu, probe`, `hooks: there is no "burn"; the worker knows approve, firmware`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got %v, want %q", err, part)
		}
	}
}

func TestDecodingNamesTheField(t *testing.T) {
	for text, want := range map[string]string{
		`{"checks": {"a": {"http": {"timeout": "soon"}}}}`:             `checks.a.http.timeout: "soon" is not a duration`,
		`{"checks": {"a": {"http": {"expectStatus": ["200"]}}}}`:       "checks.a.http.expectStatus",
		`{"hooks": {"a": {"closing": {"http": {"rul": "http://a"}}}}}`: "hooks.a.closing.http.rul: unknown field",
		`{"hooks": {"a": {"deadline": 5}}}`:                            "hooks.a.deadline: 5 is not a duration",
		`{"hooks": ["a"]}`:                                             "hooks: want an object",
		`{"prometheus": {"url": "http://p", "timeout": "-1s"}}`:        `prometheus.timeout: "-1s" is negative`,
		`{"prometheus": {"url": "http://p", "bearerToken": null}}`:     "prometheus.bearerToken: null is not a value",
	} {
		if _, err := decodeJSON([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestValidateNamesTheField(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"name":                 {`checks: {A_b: {http: {url: "http://a"}}}`, `checks.A_b: "A_b" is not a name`},
		"nothing":              {`checks: {a: {}}`, "checks.a: has 0 of http, prometheus and job"},
		"two":                  {`checks: {a: {http: {url: "http://a"}, job: {templateFile: /x, namespace: drydock-jobs}}}`, "checks.a: has 2 of"},
		"no server":            {`checks: {a: {prometheus: {query: up, expect: empty}}}`, "checks.a.prometheus: there is no server to query"},
		"scheme":               {`checks: {a: {http: {url: "file:///etc/passwd"}}}`, `checks.a.http.url: has the scheme "file"`},
		"no host":              {`checks: {a: {http: {url: "http:///x"}}}`, "checks.a.http.url: has no host"},
		"credentials in URL":   {`checks: {a: {http: {url: "http://u:canary@a"}}}`, "checks.a.http.url: holds credentials"},
		"host from text":       {`checks: {a: {http: {url: "http://{{.Reason}}/"}}}`, "checks.a.http.url: its scheme or host depends on the maintenance"},
		"port from text":       {`checks: {a: {http: {url: "http://a:{{len .Ticket}}/"}}}`, "checks.a.http.url: its scheme or host depends"},
		"unknown value":        {`checks: {a: {http: {url: "http://a/{{.Secret}}"}}}`, "checks.a.http.url: "},
		"broken template":      {`hooks: {a: {http: {url: "http://a", body: "{{"}}}`, "hooks.a.http.body: "},
		"method":               {`hooks: {a: {http: {url: "http://a", method: get}}}`, `hooks.a.http.method: "get" is not one of`},
		"credential header":    {`checks: {a: {http: {url: "http://a", headers: {authorization: x}}}}`, "checks.a.http.headers.authorization: is a credential"},
		"header name":          {`checks: {a: {http: {url: "http://a", headers: {"a b": x}}}}`, "checks.a.http.headers.a b: is not the name of a header"},
		"secret without place": {`checks: {a: {http: {url: "https://a", secretHeaders: {X: {}}}}}`, "checks.a.http.secretHeaders.X: want {file: <path>} or {env: <name>}"},
		"secret twice":         {`checks: {a: {http: {url: "https://a", bearerToken: {file: a, env: b}}}}`, "checks.a.http.bearerToken: want {file: <path>}"},
		"status":               {`checks: {a: {http: {url: "http://a", expectStatus: [200, 20]}}}`, "checks.a.http.expectStatus[1]: 20 is not a status"},
		"body":                 {`checks: {a: {http: {url: "http://a", expectBody: "("}}}`, "checks.a.http.expectBody: "},
		"capture in a check":   {`checks: {a: {http: {url: "http://a", capture: "(.)"}}}`, "checks.a.http.capture: has no meaning in a check"},
		"capture groups":       {`hooks: {a: {http: {url: "http://a", capture: "."}}}`, "hooks.a.http.capture: has 0 groups"},
		"capture in a closing": {`hooks: {a: {http: {url: "http://a"}, closing: {http: {url: "http://a", capture: "(.)"}}}}`, "hooks.a.closing.http.capture: has no meaning"},
		"empty query":          {`{prometheus: {url: "http://p"}, checks: {a: {prometheus: {query: " ", expect: empty}}}}`, "checks.a.prometheus.query: required"},
		"expectation":          {`{prometheus: {url: "http://p"}, checks: {a: {prometheus: {query: up, expect: "=> 1"}}}}`, `checks.a.prometheus.expect: "=> 1" is not one of`},
		"not a number":         {`{prometheus: {url: "http://p"}, checks: {a: {prometheus: {query: up, expect: ">= NaN"}}}}`, "checks.a.prometheus.expect: "},
		"prometheus":           {`prometheus: {url: "ftp://canary:canary@p"}`, `prometheus.url: has the scheme "ftp"`},
		"prometheus token":     {`prometheus: {url: "http://p", bearerToken: {}}`, "prometheus.bearerToken: want {file: <path>}"},
		"job":                  {`checks: {a: {job: {namespace: Not_One}}}`, "checks.a.job.templateFile: required"},
		"job namespace":        {`checks: {a: {job: {namespace: Not_One}}}`, `checks.a.job.namespace: "Not_One" is not a namespace`},
		"hook of nothing":      {`hooks: {a: {}}`, "hooks.a: has 0 of http, job and signal"},
		"closing of nothing":   {`hooks: {a: {signal: {}, closing: {}}}`, "hooks.a.closing: has 0 of http and job"},
		"signal not waited":    {`hooks: {a: {signal: {}, blocking: false}}`, "hooks.a.blocking: a signal that nobody waits for"},
		"failure not waited":   {`hooks: {a: {http: {url: "http://a"}, blocking: false, onFailure: fail}}`, `hooks.a.onFailure: "fail" needs blocking`},
		"on failure":           {`hooks: {a: {signal: {}, onFailure: panic}}`, `hooks.a.onFailure: "panic" is not one of fail, continue`},
	} {
		t.Run(name, func(t *testing.T) {
			err := decode(t, c.text).Validate()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if strings.Contains(err.Error(), "canary") {
				t.Fatalf("shows credentials: %v", err)
			}
		})
	}
}
