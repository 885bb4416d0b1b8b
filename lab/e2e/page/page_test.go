package page

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
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

// newBrowser has a worker serve its page, with further settings of it.
func newBrowser(t *testing.T, settings string) browser {
	t.Helper()
	ports, err := devstack.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	return browser{site.New(t, fmt.Sprintf("page: {listen: %q%s}", address, settings)), address}
}

// asks sends a request, and returns its answer.
func (b browser) asks(ctx context.Context, path string, change func(*http.Request)) *http.Response {
	b.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.address+path, http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	change(r)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { answer.Body.Close() })
	return answer
}

func asIs(*http.Request) {}

// reads is the text of a page.
func (b browser) reads(path string, status int) string {
	b.Helper()
	answer := b.asks(b.Ctx, path, asIs)
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != status {
		b.Fatalf("%s: %s, %v\n%s", path, answer.Status, err, text)
	}
	if dir := os.Getenv("DRYDOCK_PAGES"); dir != "" {
		name := b.Name() + strings.ReplaceAll(path, "/", "_") + ".html"
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	return string(text)
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
	b := newBrowser(t, `, temporalUI: "https://temporal.example.com/"`)
	b.shows("/", "zone-a", "7 in service", `<a href="/nodes/worker-01">worker-01</a>`, "Nothing needs attention")
	events := bufio.NewScanner(b.asks(b.Ctx, "/live", asIs).Body)
	changed := make(chan string, 100)
	go func() {
		for events.Scan() {
			if digest, is := strings.CutPrefix(events.Text(), "data: "); is {
				changed <- digest
			}
		}
	}()
	<-changed // how it is
	run := b.Start("worker-01", "ops", `{"node":"worker-01","requestor":"ops","reason":"<b>BIOS</b> \u202e2.4"}`)
	b.Until(run, api.Ready)
	select {
	case <-changed:
	case <-b.Ctx.Done():
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
	b := newBrowser(t, "")
	b.MustDrydock("plan", "create", "kernel", "worker-01", "worker-02", "--reason", "6.12", "--yes")
	b.shows("/", `<a href="/plans/kernel">`)
	b.shows("/plans/kernel", "0 of 2 nodes done", `<a href="/nodes/worker-01">`, "Running")
	b.MustDrydock("plan", "cancel", "kernel", "--yes")
	b.shows("/plans/kernel", "Cancelled")
}

// Who is to be refused learns nothing: other names of the server, pages of other origins, and who would change something.
func TestThePageRefusesStrangers(t *testing.T) {
	b := newBrowser(t, ", names: [drydock.example.com]")
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
			ctx, cancel := context.WithCancel(b.Ctx)
			answer := b.asks(ctx, path, strange.change)
			if answer.StatusCode != strange.status {
				t.Errorf("%s asks for %s: %s, want %d", name, path, answer.Status, strange.status)
			}
			if policy := answer.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") && answer.StatusCode < 400 {
				t.Errorf("%s asks for %s: policy %q", name, path, policy)
			}
			cancel()
		}
	}
}

func TestThePageIsForThoseWhomAProxyNames(t *testing.T) {
	b := newBrowser(t, ", authentication: proxy, header: X-Forwarded-User")
	if answer := b.asks(b.Ctx, "/", asIs); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("nobody gets %s", answer.Status)
	}
	named := func(r *http.Request) { r.Header.Set("X-Forwarded-User", "jane") }
	if answer := b.asks(b.Ctx, "/", named); answer.StatusCode != http.StatusOK {
		t.Errorf("jane gets %s", answer.Status)
	}
}

func TestThePageIsForThoseWithAToken(t *testing.T) {
	b := newBrowser(t, ", authentication: token")
	mayReview(b)
	for header, status := range map[string]int{"": http.StatusUnauthorized, "Bearer made.up.token": http.StatusUnauthorized} {
		if answer := b.asks(b.Ctx, "/", func(r *http.Request) { r.Header.Set("Authorization", header) }); answer.StatusCode != status {
			t.Errorf("%q gets %s", header, answer.Status)
		}
	}
	for permitted, status := range map[bool]int{false: http.StatusForbidden, true: http.StatusOK} {
		token := tokenOf(b, permitted)
		b.Eventually(fmt.Sprintf("an account with the permission %v gets %d", permitted, status), func() error {
			answer := b.asks(b.Ctx, "/", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) })
			if answer.StatusCode != status {
				return errors.New(answer.Status)
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
