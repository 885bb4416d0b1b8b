package profile

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/deploy/devstack/pkitest"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/lab/world"
	"drydock.dev/drydock/notify/notifytest"
	"drydock.dev/drydock/rules/profile/state"
)

// noticed is a profile that tells by every kind of notification, and by two webhooks that do not take what they get.
const noticed = `
intervals: {requeue: 2s}
instances:
  check:
  - {type: hasAnnotation, name: needed, config: {key: cloud.sap/needed, value: "true"}}
  - {type: hasAnnotation, name: approved, config: {key: cloud.sap/approved, value: "true"}}
  notify:
  - {type: slack, name: refused, config: {hook: "${HOOKS}/refused", channel: ops, message: "{{ .Node.Name }}"}, schedule: {type: oneshot, config: {delay: 0s}}}
  - {type: slack, name: late, config: {hook: "${HOOKS}/late", channel: ops, message: "{{ .Node.Name }} is {{ .State }}"}, schedule: {type: oneshot, config: {delay: 0s}}}
  - {type: slack, name: slack, config: {hook: "${HOOKS}/taken", channel: ops, message: "{{ .Node.Name }}: {{ .Profile.Last }} to {{ .Profile.Current }}"}, schedule: {type: periodic, config: {}}}
  - {type: mail, name: mail, config: {auth: yes, address: "${MAIL}", from: drydock@example.com, to: "a@example.com", user: drydock, password: "${PASSWORD}",
      subject: "{{ .State }}", message: "{{ .Node.Name }} is {{ .State }}, by {{ .Profile }}"}, schedule: {type: oneshot, config: {delay: 0s}}}
  - {type: slackThread, name: thread, config: {token: "${TOKEN}", channel: C1, title: "Updates", message: "{{ .Node.Name }} is {{ .State }}",
      leaseName: thread, leaseNamespace: %s, period: 1h}, schedule: {type: oneshot, config: {delay: 0s}}}
profiles:
- name: told
  operational: {transitions: [{check: needed, next: maintenance-required}]}
  maintenance-required: {notify: refused && late && slack && mail && thread, transitions: [{check: approved, next: in-maintenance}]}
  in-maintenance: {transitions: [{check: "!needed", next: operational}]}
`

// audience is who is told: webhooks, a mail server, and Slack itself, which the worker reaches by a proxy.
type audience struct {
	hooks, slack, proxy *httptest.Server
	post                *notifytest.MailServer
	// down lets the webhook late answer 503.
	down atomic.Bool

	mu sync.Mutex
	// said are the bodies by webhook, posted the texts in the channel, each after the thread that it answers.
	said   map[string][]string
	posted []string
}

const (
	hookSecret   = "canary-of-a-hook"
	hookToken    = "xoxb-canary-of-a-token"
	mailPassword = "canary-of-a-password"
)

func (m *machines) audience() *audience {
	m.Helper()
	a := &audience{said: map[string][]string{}, post: notifytest.StartMailServer(m.T, "", mailPassword)}
	a.hooks = httptest.NewServer(http.HandlerFunc(a.hear))
	m.Cleanup(a.hooks.Close)
	authority := pkitest.NewAuthority(m.T)
	cert, key := authority.Issue(m.T, time.Now().Add(time.Hour), "slack.com")
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		m.Fatal(err)
	}
	a.slack = httptest.NewUnstartedServer(http.HandlerFunc(a.chat))
	a.slack.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	a.slack.StartTLS()
	m.Cleanup(a.slack.Close)
	a.proxy = httptest.NewServer(http.HandlerFunc(a.connect))
	m.Cleanup(a.proxy.Close)
	mail, err := os.ReadFile(a.post.CA)
	if err != nil {
		m.Fatal(err)
	}
	trusted := filepath.Join(m.TempDir(), "trusted.pem")
	if err := os.WriteFile(trusted, append(mail, authority.PEM...), 0o600); err != nil {
		m.Fatal(err)
	}
	m.Options.Environment = append(m.Options.Environment, "SSL_CERT_FILE="+trusted, "HTTPS_PROXY="+a.proxy.URL,
		"HOOKS="+a.hooks.URL+"/"+hookSecret, "MAIL="+net.JoinHostPort(a.post.Host, a.post.Port), "PASSWORD="+mailPassword, "TOKEN="+hookToken)
	return a
}

// noticedMachines are those of the profile noticed, whose audience is there but for one.
func noticedMachines(t *testing.T) (*machines, *audience) {
	t.Helper()
	t.Parallel()
	m := prepareMachines(t, site.Shared.Lanes.Take(t), "", "")
	m.granted()
	m.write(t, fmt.Sprintf(noticed, m.Namespace()))
	a := m.audience()
	a.down.Store(true)
	m.StartWorker()
	return m, a
}

// hear is the webhooks.
func (a *audience) hear(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/"+hookSecret)
	if path == "/late" && a.down.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	a.said[path] = append(a.said[path], string(body))
	if path == "/refused" {
		w.WriteHeader(http.StatusNotFound)
	}
	_, _ = io.WriteString(w, "ok") // whoever asks sees if it does not come
}

// chat is Slack's API.
func (a *audience) chat(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	form, parsed := url.ParseQuery(string(body))
	if err := errors.Join(err, parsed); err != nil || r.Host != "slack.com" || r.URL.Path != "/api/chat.postMessage" {
		http.Error(w, fmt.Sprintf("%s%s: %v", r.Host, r.URL.Path, err), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if form.Get("token") != hookToken && r.Header.Get("Authorization") != "Bearer "+hookToken {
		_, _ = io.WriteString(w, `{"ok":false,"error":"not_allowed_token_type"}`)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.posted = append(a.posted, strings.TrimPrefix(form.Get("thread_ts")+" ", " ")+form.Get("text"))
	_, _ = fmt.Fprintf(w, `{"ok":true,"channel":"C1","ts":"%d.1"}`, len(a.posted))
}

// connect is the proxy: whatever host is asked for, it leads to Slack's stand-in.
func (a *audience) connect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect || r.Host != "slack.com:443" {
		http.Error(w, "this is only a way to Slack", http.StatusForbidden)
		return
	}
	to, err := new(net.Dialer).DialContext(r.Context(), "tcp", a.slack.Listener.Addr().String())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer to.Close()
	w.WriteHeader(http.StatusOK)
	from, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer from.Close()
	go func() {
		_, _ = io.Copy(to, buffered)
		_ = to.Close()
	}()
	_, _ = io.Copy(from, to) // it ends with either side
}

// told is what everybody has got.
func (a *audience) told() (said map[string][]string, posted []string, mails int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	said = map[string][]string{}
	for path, bodies := range a.said {
		said[path] = slices.Clone(bodies)
	}
	a.post.Mu.Lock()
	defer a.post.Mu.Unlock()
	return said, slices.Clone(a.posted), len(a.post.Mails)
}

// count is how many notifications arrived, wherever.
func (a *audience) count() int {
	said, posted, n := a.told()
	for _, bodies := range said {
		n += len(bodies)
	}
	return n + len(posted)
}

// TestNotificationsOfProfilesArrive has each kind of notification sent by a worker, one refused for good, and one that is taken only
// after the node has gone on, by another worker.
func TestNotificationsOfProfilesArrive(t *testing.T) {
	m, a := noticedMachines(t)
	const node, other = "worker-01", "worker-02"
	m.label(node, "told")
	m.comes(node, "told", state.Operational)
	m.annotate(node, "cloud.sap/needed", "true")
	m.comes(node, "told", state.Required)
	m.Eventually("everybody who listens is told once", func() error {
		said, posted, mails := a.told()
		if got := said["/taken"]; len(got) != 1 || !strings.Contains(got[0], "worker-01: operational to maintenance-required") || !strings.Contains(got[0], `"channel":"ops"`) {
			return fmt.Errorf("the webhook got %q", got)
		}
		if !slices.Equal(posted, []string{"Updates", "1.1 worker-01 is maintenance-required"}) {
			return fmt.Errorf("the channel shows %q", posted)
		}
		if mails != 1 || len(said["/refused"]) != 1 {
			return fmt.Errorf("%d mails, refused %q", mails, said["/refused"])
		}
		return nil
	})
	if mail, parsed, body := a.post.Mail(t, 1); body != "worker-01 is maintenance-required, by told\n" || parsed.Header.Get("Subject") != "{{ .State }}" ||
		!slices.Equal(mail.To, []string{"a@example.com"}) || a.post.Plaintext {
		t.Errorf("mail to %v: %v %q", mail.To, parsed.Header, body)
	}

	// Those that do not arrive keep nobody, and what another node has to say goes into the same thread.
	m.annotate(node, "cloud.sap/approved", "true")
	m.comes(node, "told", state.Maintenance)
	m.label(other, "told")
	m.annotate(other, "cloud.sap/needed", "true")
	m.comes(other, "told", state.Required)
	m.Eventually("the thread goes on", func() error {
		if _, posted, _ := a.told(); !slices.Equal(posted[1:], []string{"1.1 worker-01 is maintenance-required", "1.1 worker-02 is maintenance-required"}) {
			return fmt.Errorf("the channel shows %q", posted)
		}
		return nil
	})
	m.Eventually("it is said which was not taken, and how many are on their way", func() error {
		s, err := m.profiles()
		given := slices.ContainsFunc(s.Notes, func(n api.RecordedDecision) bool {
			return n.What == "notification refused about worker-01 was not sent"
		})
		if err == nil && (s.Sending != 2 || !given) {
			err = fmt.Errorf("%+v", s)
		}
		return err
	})
	for name, notified := range m.data(node).Notifications {
		if notified.IsZero() {
			t.Errorf("%s was never due", name)
		}
	}

	// The one that is tried outlives its worker.
	m.StopWorker(m.Worker)
	m.StartWorker()
	a.down.Store(false)
	m.Eventually("what was late has arrived", func() error {
		said, _, _ := a.told()
		late := slices.Sorted(slices.Values(said["/late"]))
		if len(late) != 2 || !strings.Contains(late[0], "worker-01 is maintenance-required") || !strings.Contains(late[1], "worker-02 is maintenance-required") {
			return fmt.Errorf("%q", late)
		}
		return nil
	})
	m.annotate(node, "cloud.sap/needed", "")
	m.comes(node, "told", state.Operational)
	m.settled(a, 2*5+1) // five of each node, and the title of the thread
	m.MustNotLeak(m.Written(2), map[string]string{
		"a webhook": hookSecret, "the token of a thread": hookToken, "the password of a mail server": mailPassword,
	})
}

// settled checks that nothing is being sent any more, and that no more than so many notifications have arrived.
func (m *machines) settled(a *audience, most int) {
	m.Helper()
	m.Eventually("nothing is being sent", func() error {
		s, err := m.profiles()
		if err == nil && s.Sending > 0 {
			err = fmt.Errorf("%d are", s.Sending)
		}
		return err
	})
	before := a.count()
	if before > most {
		said, posted, mails := a.told()
		m.Errorf("%d notifications arrived, want %d at most: %q, %q, %d mails", before, most, said, posted, mails)
	}
	m.Always("nobody is told again", 3*time.Second, func() error {
		if n := a.count(); n != before {
			return fmt.Errorf("%d arrived after %d", n-before, before)
		}
		return nil
	})
}

// TestSlowAResetOfProfilesSendsNothingForEver resets the workflow that sends to a moment at which nothing was sent yet, and while
// one is not taken.
func TestSlowAResetOfProfilesSendsNothingForEver(t *testing.T) {
	m, a := noticedMachines(t)
	const node = "worker-01"
	m.label(node, "told")
	m.comes(node, "told", state.Operational)
	m.annotate(node, "cloud.sap/needed", "true")
	m.comes(node, "told", state.Required)
	m.Eventually("all but one are told", func() error {
		if n := a.count(); n != 5 { // a mail, two webhooks, the title and the reply of a thread
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	resets := []int{100, 50, 10}
	for _, percent := range resets {
		m.ResetWorkflow(api.ProfilesID(m.Cluster), percent)
		// It decides on as before, and tells of each time anew.
		m.annotate(node, "cloud.sap/approved", "true")
		m.comes(node, "told", state.Maintenance)
		m.annotate(node, "cloud.sap/approved", "")
		m.annotate(node, "cloud.sap/needed", "")
		m.comes(node, "told", state.Operational)
		m.annotate(node, "cloud.sap/needed", "true")
		m.comes(node, "told", state.Required)
	}
	a.down.Store(false)
	m.annotate(node, "cloud.sap/approved", "true")
	m.comes(node, "told", state.Maintenance)
	const each = 6 // with the title of the thread
	m.settled(a, 2*each*(1+len(resets)))
}

// triggered are profiles that run a Job on a node on its way into maintenance: one that does, one whose Job fails, and one whose Job
// does not end.
const triggered = `
intervals: {requeue: 2s}
instances:
  check:
  - {type: hasAnnotation, name: needed, config: {key: cloud.sap/needed, value: "true"}}
  - {type: prometheusInstant, name: load, config: {url: "http://127.0.0.1:1", query: up, expr: value < 1}}
  trigger:
  - {type: alterAnnotation, name: begin, config: {key: cloud.sap/begun, value: "true"}}
  - {type: alterAnnotation, name: go, config: {key: cloud.sap/go, value: "true"}}
  - {type: alterAnnotation, name: stop, config: {key: cloud.sap/go, remove: true}}
  - {type: job, name: flash, config: {templateFile: %[1]q, namespace: %[4]s, deadline: 10m}}
  - {type: job, name: broken, config: {templateFile: %[2]q, namespace: %[4]s, deadline: 2m}}
  - {type: job, name: endless, config: {templateFile: %[3]q, namespace: %[4]s, deadline: 1h}}
profiles:
- name: flash
  operational: {transitions: [{check: needed, next: in-maintenance, trigger: begin && flash && go}]}
  in-maintenance: {transitions: [{check: load, next: maintenance-required}, {check: "!needed", next: operational, trigger: stop}]}
- name: broken
  operational: {transitions: [{check: needed, next: in-maintenance, trigger: begin && broken && go}]}
- name: endless
  operational: {transitions: [{check: needed, next: maintenance-required}]}
  maintenance-required: {enter: endless}
`

// TestAProfileRunsJobs has transitions wait for Jobs on their nodes, over a restart of the worker; and shows checks that fail.
func TestAProfileRunsJobs(t *testing.T) {
	t.Parallel()
	m := prepareMachines(t, site.Shared.Lanes.Take(t), "", "")
	ns := m.WorkNamespace()
	job := func(name string, annotations map[string]string) string {
		return m.Site.File(name+".yaml", fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, spec: {backoffLimit: 0, template: {
			metadata: {annotations: {%s}}, spec: {restartPolicy: Never, containers: [{name: c, image: registry.example/c:1}]}}}}`, pairs(annotations)))
	}
	m.write(t, fmt.Sprintf(triggered, job("flash", map[string]string{world.CompletionDelay: "1h"}),
		job("broken", map[string]string{world.CompletionDelay: "200ms", "devcluster.drydock.dev/failure": "no such firmware"}), job("endless", map[string]string{world.CompletionDelay: "1h"}), ns))
	m.StartWorker()
	nodes := map[string]string{"flash": "worker-01", "broken": "worker-02", "endless": "worker-03"}
	for profile, node := range nodes {
		m.label(node, profile)
		m.comes(node, profile, state.Operational)
		m.annotate(node, "cloud.sap/needed", "true")
	}
	flashes, breaks, ends := nodes["flash"], nodes["broken"], nodes["endless"]

	// What comes before the Job is done, and what comes after it is not, as long as it runs.
	m.Eventually("the Job runs on its node", func() error {
		if n := len(m.PodsOn(ns, flashes)); n != 1 {
			return fmt.Errorf("%d pods", n)
		}
		return nil
	})
	if n, data := m.Node(flashes), m.data(flashes); n.Annotations["cloud.sap/begun"] != "true" || n.Annotations["cloud.sap/go"] != "" || data.Profiles["flash"].Current != state.Operational {
		t.Errorf("while its Job runs: %v", n.Annotations)
	}
	m.Exits(m.Drydock("profile", "explain", flashes), 0, "on its way to in-maintenance")
	m.StopWorker(m.Worker)
	m.StartWorker()
	m.Completes(ns, flashes)
	m.comes(flashes, "flash", state.Maintenance)
	if m.Node(flashes).Annotations["cloud.sap/go"] != "true" {
		t.Error("what comes after the Job was not done")
	}

	// One that fails says why, and ends its transition.
	m.Eventually("it is said why the transition was not carried out", func() error {
		if r := m.Drydock("profile", "list", "broken"); !strings.Contains(r.Out(), "no such firmware") {
			return errors.New(r.Out())
		}
		if events := m.NodeEvents(breaks, "ChangeMaintenanceStateFailed"); len(events) == 0 || !strings.Contains(events[0].Message, "no such firmware") {
			return fmt.Errorf("events: %v", events)
		}
		return nil
	})
	if n, data := m.Node(breaks), m.data(breaks); n.Annotations["cloud.sap/begun"] != "true" || n.Annotations["cloud.sap/go"] != "" || data.Profiles["broken"].Current != state.Operational {
		t.Errorf("after its Job has failed: %v", n.Annotations)
	}
	m.measures(`drydock_profile_transition_failures_total{profile="broken"}`)

	// One whose profile is taken from the label ends with its transition.
	m.Eventually("it runs on entering", func() error {
		if n := len(m.PodsOn(ns, ends)); n != 1 {
			return fmt.Errorf("%d pods", n)
		}
		return nil
	})
	for _, node := range nodes {
		if node != flashes {
			m.label(node)
		}
	}
	m.Eventually("no Job is left", func() error {
		var left []string
		for _, j := range m.JobsIn(ns) {
			left = append(left, j.Name)
		}
		if len(left) > 0 {
			return errors.New(strings.Join(left, ", "))
		}
		return nil
	})
	if created := m.WorksOf(ns); len(created) < 3 || len(slices.Compact(slices.Sorted(slices.Values(created)))) != len(created) {
		t.Errorf("created %v", created)
	}

	// A check that fails is shown, and holds up no transition but its own.
	m.Eventually("the list shows which check fails", func() error {
		if r := m.Drydock("profile", "list", "flash"); !strings.Contains(r.Out(), "failing: load") {
			return errors.New(r.Out())
		}
		if events := m.NodeEvents(flashes, "ChangeMaintenanceStateFailed"); len(events) != 1 || !strings.Contains(events[0].Message, "load") {
			return fmt.Errorf("events: %v", events)
		}
		return nil
	})
	m.measures(`drydock_profile_failing_nodes{profile="flash"} 1`)
	m.Exits(m.Drydock("profile", "explain", flashes), 0, "?   load (prometheusInstant)", "Prometheus did not answer")
	m.PatchNode(flashes, `{"metadata":{"labels":{"`+state.LogDetailsLabel+`":"true"}}}`)
	m.Eventually("the log has the details that the label asks for", func() error {
		if !strings.Contains(m.LogOf(m.Worker), "load (prometheusInstant)") {
			return errors.New(m.Worker.Tail())
		}
		return nil
	})
	m.annotate(flashes, "cloud.sap/needed", "")
	m.comes(flashes, "flash", state.Operational)
}

// pairs are annotations in YAML.
func pairs(annotations map[string]string) string {
	var all []string
	for key, value := range annotations {
		all = append(all, fmt.Sprintf("%s: %q", key, value))
	}
	return strings.Join(all, ", ")
}

// measures waits for a line of the worker's metrics.
func (m *machines) measures(line string) {
	m.Helper()
	m.Eventually("it measures "+line, func() error {
		if _, body := m.HTTP(http.MethodGet, m.Worker.URL+"/metrics", ""); !strings.Contains(body, line) {
			return errors.New("it does not")
		}
		return nil
	})
}
