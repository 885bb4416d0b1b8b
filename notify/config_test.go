package notify_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/notify/kinds"
	"drydock.dev/drydock/notify/notifytest"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/spec"
)

// wrongChannels are refused, with what the error begins with.
var wrongChannels = map[string]string{
	`{}`:                     "channels.oncall: has none: want exactly one of slack, email",
	`[]`:                     "channels.oncall: want a JSON object, got a list",
	`{"slak": {}}`:           "channels.oncall.slak: unknown field",
	`{"slack": {"tokn": 1}}`: "channels.oncall.slack.tokn: unknown field",
	`{"slack": {"token": {"env": "T"}, "channel": "C"}, "kubernetes": {}}`:               "channels.oncall: has slack and kubernetes: want exactly one",
	`{"slack": {"token": "xoxb-canary", "channel": "C"}}`:                                "channels.oncall.slack.token: want {file: <path>}",
	`{"slack": {"token": {"fil": "x"}, "channel": "C"}}`:                                 "channels.oncall.slack.token: want {file: <path>}",
	`{"slack": {"token": {"file": "x", "env": "y"}, "channel": "C"}}`:                    "channels.oncall.slack.token: want {file: <path>}",
	`{"slack": {"token": {}, "channel": "C"}}`:                                           "channels.oncall.slack.token: want {file: <path>}",
	`{"slack": {"token": {"env": "T"}}}`:                                                 "channels.oncall.slack.channel: is missing",
	`{"slack": {"token": {"env": "T"}, "channel": 3}}`:                                   "channels.oncall.slack.channel: want a string, got number",
	`{"slack": {"webhook": {"env": "T"}, "channel": "C"}}`:                               "channels.oncall.slack.webhook: has no meaning beside token",
	`{"slack": {"webhook": "https://hooks.slack.com/canary"}}`:                           "channels.oncall.slack.webhook: want {file: <path>}",
	`{"slack": {"token": {"env": "T"}, "channel": "C", "apiURL": "slack"}}`:              "channels.oncall.slack.apiURL: is not an http",
	`{"slack": {"webhook": {"env": "T"}}, "thread": "maintenance"}`:                      "channels.oncall.thread: only e-mail and a Slack bot",
	`{"email": {"host": "smtp:25", "from": "a@b.c", "to": ["b@b.c"]}}`:                   `channels.oncall.email.host: "smtp:25": want the name`,
	`{"email": {"host": "::1", "from": "a@b.c", "to": ["b@b.c"]}}`:                       "",
	`{"email": {"host": "smtp.example.com/x", "from": "a@b.c", "to": ["b@b.c"]}}`:        "channels.oncall.email.host: ",
	`{"email": {"host": "smtp", "port": 70000, "from": "a@b.c", "to": ["b@b.c"]}}`:       "channels.oncall.email.port: 70000",
	`{"email": {"host": "smtp", "startTLS": "maybe", "from": "a@b.c", "to": ["b@b.c"]}}`: `channels.oncall.email.startTLS: "maybe" is not one of required, implicit, none`,
	`{"email": {"host": "smtp", "username": "u", "from": "a@b.c", "to": ["b@b.c"]}}`:     "channels.oncall.email.password: username and password go together",
	`{"email": {"host": "smtp", "from": "a", "to": ["b@b.c"]}}`:                          `channels.oncall.email.from: "a" is not a mail address`,
	`{"email": {"host": "smtp", "from": "a@b.c", "to": []}}`:                             "channels.oncall.email.to: is empty",
	`{"email": {"host": "smtp", "from": "a@b.c", "to": ["b@b.c", "x\r\nBcc: c@b.c"]}}`:   "channels.oncall.email.to[1]: ",
	`{"email": {"host": "smtp", "from": "a@b.c", "to": "b@b.c"}}`:                        "channels.oncall.email.to: want a list, got string",
	`{"webhook": {}}`:                                                                                                           "channels.oncall.webhook.url: is missing",
	`{"webhook": {"url": 3}}`:                                                                                                   "channels.oncall.webhook.url: want {file: <path>}",
	`{"webhook": {"url": "ftp://h"}}`:                                                                                           "channels.oncall.webhook.url: is not an http or https URL",
	`{"webhook": {"url": "https://u:canary@h"}}`:                                                                                "channels.oncall.webhook.url: has a user, a query",
	`{"webhook": {"url": "https://h?k=canary"}}`:                                                                                "channels.oncall.webhook.url: has a user, a query",
	`{"webhook": {"url": "https://h", "secret": "whsec_canary"}}`:                                                               "channels.oncall.webhook.secret: want {file: <path>}",
	`{"webhook": {"url": "https://h", "headers": {"X Y": {"env": "T"}}}}`:                                                       `channels.oncall.webhook.headers: "X Y" is not the name of a header`,
	`{"webhook": {"url": "https://h", "headers": {"webhook-id": {"env": "T"}}}}`:                                                "channels.oncall.webhook.headers.webhook-id: is set by Drydock",
	`{"webhook": {"url": "https://h", "headers": {"X-A": "canary"}}}`:                                                           "channels.oncall.webhook.headers.X-A: want {file: <path>}",
	`{"webhook": {"url": "https://h"}, "template": {"text": "x"}}`:                                                              "channels.oncall.template: a webhook gets the events",
	`{"sns": {"topicARN": "maintenance"}}`:                                                                                      `channels.oncall.sns.topicARN: "maintenance" is not the ARN`,
	`{"sns": {"topicARN": "arn:aws:sns:eu-central-1:1:t", "region": "Frankfurt"}}`:                                              `channels.oncall.sns.region: "Frankfurt"`,
	`{"sns": {"topicARN": "arn:aws:sns:eu-central-1:1:t", "endpoint": "localhost"}}`:                                            "channels.oncall.sns.endpoint: ",
	`{"sns": {"topicARN": "arn:aws:sns:eu-central-1:1:t", "accessKeyID": {"env": "T"}}}`:                                        "channels.oncall.sns.secretAccessKey: accessKeyID and",
	`{"url": "discord://canary@1"}`:                                                                                             "channels.oncall.url: want {file: <path>}",
	`{"kubernetes": null}`:                                                                                                      "channels.oncall.kubernetes: null is not a value",
	`{"kubernetes": {"namespace": "x"}}`:                                                                                        "channels.oncall.kubernetes.namespace: unknown field",
	`{"kubernetes": {}, "template": {"subject": "x"}}`:                                                                          "channels.oncall.template.subject: a Kubernetes Event",
	`{"kubernetes": {}, "filter": {"events": ["Started"]}}`:                                                                     `channels.oncall.filter.events[0]: "Started"`,
	`{"kubernetes": {}, "schedule": {"periodic": {"interval": "soon"}}}`:                                                        `channels.oncall.schedule.periodic.interval: "soon" is not a duration`,
	`{"kubernetes": {}, "schedule": {"periodic": {}}}`:                                                                          "channels.oncall.schedule.periodic.interval: 0s: want at least",
	`{"kubernetes": {}, "digest": "5m", "schedule": {"oneshot": {}}}`:                                                           "channels.oncall.schedule: has no meaning beside digest",
	`{"kubernetes": {}, "digest": 5}`:                                                                                           "channels.oncall.digest: 5 is not a duration",
	`{"kubernetes": {}, "retryFor": "-1h"}`:                                                                                     `channels.oncall.retryFor: "-1h" is negative`,
	`{"kubernetes": {}, "template": {"text": "{{.Reason"}}`:                                                                     "channels.oncall.template.text: line 1: unclosed action",
	`{"kubernetes": {}, "template": {"text": "{{.Raeson}}"}}`:                                                                   "channels.oncall.template.text: line 1, {{.Raeson}}: there is no field Raeson",
	`{"kubernetes": {}, "template": {"text": "{{index .Blockers 0}}"}}`:                                                         "channels.oncall.template.text: ",
	`{"kubernetes": {}, "template": {"text": "{{env \"HOME\"}}"}}`:                                                              "channels.oncall.template.text: line 1: function \"env\" not defined",
	`{"email": {"host": "s", "from": "a@b.c", "to": ["b@b.c"]}, "thread": "period"}`:                                            "channels.oncall.threadPeriod: is missing",
	`{"email": {"host": "s", "from": "a@b.c", "to": ["b@b.c"], "startTLS": "none", "username": "u", "password": {"env": "P"}}}`: "channels.oncall.email.password: would be sent unencrypted",
}

func TestWrongChannels(t *testing.T) {
	for text, want := range wrongChannels {
		_, err := notifytest.Parse(t, kinds.All(), `{"oncall": %s}`, text)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s:\n%v\nwant %s", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%s shows a secret: %v", text, err)
		}
	}
	for name, want := range map[string]string{"On Call": "channels: \"On Call\": want a name", "a-b-1": ""} {
		_, err := notifytest.Parse(t, kinds.All(), `{%q: {"kubernetes": {}}}`, name)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := notifytest.Parse(t, kinds.All(), `[]`); err == nil {
		t.Error("a list of channels is accepted")
	}
}

func TestEveryWrongFieldIsNamed(t *testing.T) {
	_, err := notifytest.Parse(t, kinds.All(), `{"b": {"slack": {}, "retryFor": "1h"}, "a": {"email": {"host": "", "from": "", "to": []}, "thread": "x"}}`)
	if err == nil {
		t.Fatal("accepted")
	}
	var fields []string
	for line := range strings.Lines(err.Error()) {
		field, _, _ := strings.Cut(line, ": ")
		fields = append(fields, field)
	}
	want := []string{"channels.a.email.host", "channels.a.email.from", "channels.a.email.to", "channels.a.thread", "channels.b.slack.token"}
	if !slices.Equal(fields, want) {
		t.Errorf("%v", err)
	}
}

func TestPlans(t *testing.T) {
	cfg, err := notifytest.Parse(t, kinds.All(), `{
		"oncall": {"slack": {"token": {"env": "T"}, "channel": "C"}, "default": true, "thread": "period", "threadPeriod": "12h", "digest": "5m",
			"filter": {"events": ["SLAExpired"]}, "retryFor": "1h",
			"template": {"subject": "{{.Node | upper}} {{date \"2006\" .At}}", "text": "{{range .Events}}{{join \", \" .Groups}}{{end}}"}},
		"audit": {"webhook": {"url": "https://audit.example.com/events"}, "default": true, "schedule": {"periodic": {"interval": "6h"}}},
		"nodes": {"kubernetes": {}}}`)
	if err != nil {
		t.Fatal(err)
	}
	want := []notices.Channel{
		{Name: "audit", RetryFor: spec.Duration(24 * time.Hour),
			Schedule: notices.Schedule{Periodic: &notices.Periodic{Interval: spec.Duration(6 * time.Hour)}}},
		{Name: "nodes", RetryFor: spec.Duration(24 * time.Hour)},
		{Name: "oncall", RetryFor: spec.Duration(time.Hour), Thread: "period", ThreadPeriod: spec.Duration(12 * time.Hour),
			Digest: spec.Duration(5 * time.Minute), Filter: notices.Filter{Events: []notices.State{notices.SLAExpired}}},
	}
	if diff := cmp.Diff(want, cfg.Plans()); diff != "" {
		t.Error(diff)
	}
	if got := cfg.Defaults(); !slices.Equal(got, []string{"audit", "oncall"}) {
		t.Errorf("%v", got)
	}
	var none notify.Config
	if none.Validate() != nil || none.Plans() != nil || none.Defaults() != nil {
		t.Error("no channels are not nothing")
	}
}
