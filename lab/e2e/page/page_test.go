package page

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/lab/e2e/site"
)

// browser asks a worker's page.
type browser struct {
	*site.Site
	address string
}

// newBrowser has a worker serve its page, with further settings of it, and of the worker.
func newBrowser(t *testing.T, settings, config string) browser {
	t.Helper()
	b := prepareBrowser(t, settings, config)
	b.StartWorker()
	return b
}

func prepareBrowser(t *testing.T, settings, config string) browser {
	t.Helper()
	ports, err := devstack.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	return browser{site.Prepare(t, fmt.Sprintf("page: {listen: %q%s}\n%s", address, settings, config)), address}
}

// answer is what came of a request. Text is empty of a stream.
type answer struct {
	status int
	header http.Header
	text   string
}

// asks sends a request.
func (b browser) asks(path string, change func(*http.Request)) answer {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Ctx)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.address+path, http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	change(r)
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer got.Body.Close()
	a := answer{status: got.StatusCode, header: got.Header}
	if got.Header.Get("Content-Type") != "text/event-stream" {
		text, err := io.ReadAll(got.Body)
		if err != nil {
			b.Fatal(err)
		}
		a.text = string(text)
	}
	return a
}

func asIs(*http.Request) {}

// reads is the text of a page.
func (b browser) reads(path string, status int) string {
	b.Helper()
	a := b.asks(path, asIs)
	if a.status != status {
		b.Fatalf("%s: %d\n%s", path, a.status, a.text)
	}
	return a.text
}

// changes says whenever the page has changed, and first how it is.
func (b browser) changes() <-chan string {
	b.Helper()
	changed := make(chan string, 100)
	r, err := http.NewRequestWithContext(b.Ctx, http.MethodGet, "http://"+b.address+"/live", http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		defer close(changed)
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			return
		}
		defer got.Body.Close()
		for events := bufio.NewScanner(got.Body); events.Scan(); {
			if digest, is := strings.CutPrefix(events.Text(), "data: "); is {
				changed <- digest
			}
		}
	}()
	return changed
}

// shows waits until a page has all of some texts.
func (b browser) shows(path string, texts ...string) {
	b.Helper()
	b.Eventually(fmt.Sprintf("%s shows %q", path, texts), func() error {
		page := b.reads(path, http.StatusOK)
		for _, text := range texts {
			if !strings.Contains(page, text) {
				return fmt.Errorf("not %q in\n%s", text, page)
			}
		}
		return nil
	})
}

func TestThePageFollowsAMaintenance(t *testing.T) {
	b := newBrowser(t, `, temporalUI: "https://temporal.example.com/"`, "")
	b.shows("/", "zone-a", "7 in service", `<a href="/nodes/worker-01">worker-01</a>`, "Nothing needs attention")
	changed := b.changes()
	before := <-changed
	run := b.Start("worker-01", "ops", `{"node":"worker-01","requestor":"ops","reason":"<b>BIOS</b> \u202e2.4"}`)
	b.Until(run, api.Ready)
	if now, told := <-changed; !told || now == before {
		t.Fatal("nobody says that something has changed")
	}
	b.shows("/", "1 Ready for work", `<a href="/nodes/worker-01">worker-01</a> <bdi>Ready</bdi>`)
	b.shows("/nodes/worker-01", "It is Ready for work.", "&lt;b&gt;BIOS&lt;/b&gt;", "Maintenance of worker-01 by ops",
		"https://temporal.example.com/namespaces/default/workflows/")
	if page := b.reads("/nodes/worker-01", http.StatusOK); strings.Contains(page, "<b>BIOS") || strings.Contains(page, "\u202e") {
		t.Errorf("the page has what somebody wrote as it is:\n%s", page)
	}
	b.MustDrydock("done", "worker-01", "--requestor", "ops", "--wait")
	b.shows("/nodes/worker-01", "It is in service.", "Earlier maintenances", "Completed", "How long their phases took", "<rect class=")
	for path, problem := range map[string]string{
		"/nodes/worker-99": "There is no node of this name.", "/nodes/a%20b": "That is not the name of a node.",
		"/plans/none": "There is no plan none.", "/plans/a%2fb": "That is not the name of a plan.", "/elsewhere": "There is no such page.",
	} {
		if page := b.reads(path, http.StatusNotFound); !strings.Contains(page, problem) {
			t.Errorf("%s says\n%s", path, page)
		}
	}
}

func TestThePageShowsAPlan(t *testing.T) {
	b := newBrowser(t, "", "")
	b.MustDrydock("plan", "create", "kernel", "worker-01", "worker-02", "--reason", "6.12", "--yes")
	b.shows("/", `<a href="/plans/kernel">`)
	b.shows("/plans/kernel", "0 of 2 nodes done", `<a href="/nodes/worker-01">`, "Running")
	b.MustDrydock("plan", "cancel", "kernel", "--yes")
	b.shows("/plans/kernel", "Cancelled")
}

// Who is to be refused learns nothing: other names of the server, pages of other origins, and who would change something.
func TestThePageRefusesStrangers(t *testing.T) {
	b := newBrowser(t, ", names: [drydock.example.com]", "")
	for name, strange := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"another name":   {func(r *http.Request) { r.Host = "rebound.example.com" }, http.StatusForbidden},
		"another origin": {func(r *http.Request) { r.Header.Set("Origin", "https://evil.example.com") }, http.StatusForbidden},
		"another site":   {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		"a form":         {func(r *http.Request) { r.Method = http.MethodPost }, http.StatusUnsupportedMediaType},
		"a change":       {func(r *http.Request) { r.Method = http.MethodDelete; r.Header.Set("Content-Type", "application/json") }, http.StatusMethodNotAllowed},
		"its own name":   {func(r *http.Request) { r.Host = "drydock.example.com:443" }, http.StatusOK},
	} {
		for _, path := range []string{"/", "/live", "/nodes/worker-01"} {
			got := b.asks(path, strange.change)
			if got.status != strange.status {
				t.Errorf("%s asks for %s: %d, want %d", name, path, got.status, strange.status)
			}
			if policy := got.header.Get("Content-Security-Policy"); got.status < 400 && !strings.Contains(policy, "default-src 'none'") {
				t.Errorf("%s asks for %s: policy %q", name, path, policy)
			}
		}
	}
}

func TestThePageIsForThoseWhomAProxyNames(t *testing.T) {
	b := newBrowser(t, ", authentication: proxy, header: X-Forwarded-User", "")
	if got := b.asks("/", asIs); got.status != http.StatusUnauthorized {
		t.Errorf("nobody gets %d", got.status)
	}
	named := func(r *http.Request) { r.Header.Set("X-Forwarded-User", "jane") }
	if got := b.asks("/", named); got.status != http.StatusOK {
		t.Errorf("jane gets %d", got.status)
	}
}

func TestThePageIsForThoseWithAToken(t *testing.T) {
	b := newBrowser(t, ", authentication: token", "")
	mayReview(b)
	for header, status := range map[string]int{"": http.StatusUnauthorized, "Bearer made.up.token": http.StatusUnauthorized} {
		if got := b.asks("/", func(r *http.Request) { r.Header.Set("Authorization", header) }); got.status != status {
			t.Errorf("%q gets %d", header, got.status)
		}
	}
	for permitted, status := range map[bool]int{false: http.StatusForbidden, true: http.StatusOK} {
		token := tokenOf(b, permitted)
		b.Eventually(fmt.Sprintf("an account with the permission %v gets %d", permitted, status), func() error {
			if got := b.asks("/", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }); got.status != status {
				return fmt.Errorf("it gets %d", got.status)
			}
			return nil
		})
	}
}

// mayReview gives the worker the permissions to ask whose a token is.
func mayReview(b browser) {
	b.Helper()
	objects, err := site.ObjectsOf("../../../deploy/kubernetes/rbac-metrics.yaml")
	if err != nil {
		b.Fatal(err)
	}
	rbac := b.Kube.RbacV1()
	for _, object := range objects {
		switch object := object.(type) {
		case *rbacv1.ClusterRole:
			_, err = rbac.ClusterRoles().Create(b.Ctx, object, metav1.CreateOptions{})
		case *rbacv1.ClusterRoleBinding:
			_, err = rbac.ClusterRoleBindings().Create(b.Ctx, object, metav1.CreateOptions{})
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			b.Fatal(err)
		}
	}
}

// tokenOf is the token of an account that may read the page, or may not.
func tokenOf(b browser, permitted bool) string {
	b.Helper()
	rule := site.Rule("", "configmaps", "get")
	if permitted {
		rule = rbacv1.PolicyRule{NonResourceURLs: []string{"/drydock"}, Verbs: []string{"get"}}
	}
	config, err := clientcmd.LoadFromFile(b.Account(rule))
	if err != nil {
		b.Fatal(err)
	}
	return config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo].Token
}
