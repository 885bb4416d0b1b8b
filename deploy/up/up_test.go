package main

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"drydock.dev/drydock/deploy/devstack"
)

func TestAServiceRunsAsLongAsItsFileIsLocked(t *testing.T) {
	s := folder(t.TempDir()).service("worker")
	now, file, stale, err := s.look()
	if now != nil || file == nil || stale || err != nil {
		t.Fatalf("at first: %v, %v, %v", now, stale, err)
	}
	if err := s.started(file, running{PID: os.Getpid(), Made: "a"}); err != nil {
		t.Fatal(err)
	}
	if now, _, _, err := s.look(); err != nil || now == nil || now.PID != os.Getpid() || now.Made != "a" {
		t.Fatalf("while it runs: %+v, %v", now, err)
	}
	// It has died, and its number is somebody's: this test's.
	file.Close()
	stopped, stale, err := s.stop(t.Context())
	if stopped || !stale || err != nil {
		t.Fatalf("once it has died: stopped %v, stale %v, %v", stopped, stale, err)
	}
	if stopped, stale, err := s.stop(t.Context()); stopped || stale || err != nil {
		t.Errorf("once more: %v, %v, %v", stopped, stale, err)
	}
}

func TestALockThatAChildHasInheritedIsNotTheService(t *testing.T) {
	s := folder(t.TempDir()).service("worker")
	_, file, _, err := s.look()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	gone := 1 << 22 // more than there are
	if err := s.started(file, running{PID: gone}); err != nil || !errors.Is(syscall.Kill(gone, 0), syscall.ESRCH) {
		t.Skipf("process %d exists: %v", gone, err)
	}
	now, next, stale, err := s.look()
	if err != nil || now != nil || !stale {
		t.Fatalf("%v, %v, %v", now, stale, err)
	}
	next.Close()
}

func TestPorts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().(*net.TCPAddr).Port
	if _, err := choose(taken, 0, 1, nil); err == nil || !strings.Contains(err.Error(), "without the variable") {
		t.Errorf("a port that is asked for and taken: %v", err)
	}
	for _, c := range []struct{ remembered, usual int }{{0, taken}, {taken, 1}} {
		if got, err := choose(0, c.remembered, c.usual, nil); err != nil || got <= taken {
			t.Errorf("%+v: %d, %v", c, got, err)
		}
	}
	next, err := choose(0, 0, taken, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := choose(0, 0, taken, []int{next}); err != nil || got == next {
		t.Errorf("a port that is spoken for: %d, %v", got, err)
	}
}

func TestWhatRunsKeepsItsPort(t *testing.T) {
	if err := errors.Join(keeps(uiPort, 0, 8233), keeps(uiPort, 8233, 8233)); err != nil {
		t.Error(err)
	}
	if err := keeps(uiPort, 9000, 8233); err == nil || !strings.Contains(err.Error(), "TEMPORAL_UI_PORT=9000: it runs on port 8233: make down first") {
		t.Error(err)
	}
}

func TestAFolderBelongsToOneCluster(t *testing.T) {
	there := &cluster{context: "prod", id: "1", server: "https://prod"}
	var out bytes.Buffer
	o := options{folder: "/state", out: &out}
	for name, c := range map[string]struct {
		remembered state
		yes, asks  bool
		answer     string
		want       string
	}{
		"the same":            {remembered: state{Cluster: "1"}},
		"another one":         {remembered: state{Cluster: "2", Context: "dev"}, yes: true, want: "CONTEXT=dev"},
		"YES=1":               {yes: true},
		"nobody to ask":       {want: "YES=1"},
		"somebody says yes":   {asks: true, answer: "y\n"},
		"somebody says no":    {asks: true, answer: "\n", want: "nothing was done"},
		"somebody goes away ": {asks: true, want: "nothing was done"},
	} {
		o.yes, o.asks, o.input = c.yes, c.asks, strings.NewReader(c.answer)
		err := there.settle(o, c.remembered)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if strings.Contains(out.String(), "another Drydock") {
		t.Errorf("it warns where no node is held: %s", out.String())
	}
	there.held = []string{"worker-01"}
	if err := there.settle(options{yes: true, out: &out}, state{}); err != nil || !strings.Contains(out.String(), "another Drydock works on it, and holds worker-01") {
		t.Errorf("%v, %s", err, out.String())
	}
	if !strings.Contains(out.String(), "context prod (https://prod") {
		t.Errorf("it does not say which cluster it is: %s", out.String())
	}
}

func TestACluster(t *testing.T) {
	dir := t.TempDir()
	two := filepath.Join(dir, "two")
	kubeconfig := "{apiVersion: v1, kind: Config, contexts: [{name: prod, context: {cluster: c}}, {name: dev, context: {cluster: c}}]}"
	if err := os.WriteFile(two, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ file, context, want string }{
		"no kubeconfig":               {file: filepath.Join(dir, "none"), want: "there is no kubeconfig"},
		"no current context":          {file: two, want: "has no current context: CONTEXT=name takes one of its contexts dev, prod"},
		"a context that is not there": {file: two, context: "stage", want: "context stage: " + two + " has the contexts dev, prod"},
	} {
		t.Setenv(clientcmd.RecommendedConfigPathEnvVar, c.file)
		err := reachable(t.Context(), options{folder: filepath.Join(dir, "state"), context: c.context})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestTheWorkersKubeconfig(t *testing.T) {
	c := &cluster{context: "prod", whole: clientcmdapi.Config{
		CurrentContext: "prod",
		Contexts:       map[string]*clientcmdapi.Context{"prod": {Cluster: "c", AuthInfo: "ann"}},
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: "https://prod", CertificateAuthority: "/etc/ca.pem"}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"ann": {TokenFile: "/run/token"}},
	}}
	for _, account := range []string{"", "system:serviceaccount:drydock:drydock-worker"} {
		data, err := c.kubeconfig(account)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "kubeconfig")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := clientcmd.LoadFromFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if user := got.AuthInfos["ann"]; user.Impersonate != account || user.TokenFile != "/run/token" || got.Clusters["c"].CertificateAuthority != "/etc/ca.pem" {
			t.Errorf("%q: %+v", account, user)
		}
	}
	if c.whole.AuthInfos["ann"].Impersonate != "" {
		t.Error("the user's own credentials are changed")
	}
}

func TestVariables(t *testing.T) {
	home := func(more map[string]string) func(string) string {
		return func(name string) string { return more[name] }
	}
	o, err := optionsFrom(home(map[string]string{"XDG_STATE_HOME": "/s", "CONTEXT": "prod", "YES": "1", "APPLY_RBAC": "0", "BRIDGE": "1", "TEMPORAL_PORT": "7000"}), os.Stdin, &bytes.Buffer{})
	if err != nil || o.wantsBridge == nil || !*o.wantsBridge || o.folder != "/s/drydock/up" || o.context != "prod" || !o.yes || o.applyRBAC == nil || *o.applyRBAC || o.ports.Temporal != 7000 {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := optionsFrom(home(map[string]string{"UP_DIR": "/my state"}), os.Stdin, &bytes.Buffer{}); err != nil || o.again != " UP_DIR='/my state'" {
		t.Errorf("%+v, %v", o, err)
	}
	for name, value := range map[string]string{"YES": "please", "APPLY_RBAC": "x", "BRIDGE": "yes", "DRYDOCK_BRIDGE_PORT": "0", "TEMPORAL_UI_PORT": "99999", "DRYDOCK_PORT": "http"} {
		if _, err := optionsFrom(home(map[string]string{name: value}), os.Stdin, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
}

func TestTheBridgeServesTheWorkersCluster(t *testing.T) {
	s := &site{folder: folder(t.TempDir())}
	for _, c := range []struct {
		config string
		bridge bridge
		want   []string
	}{
		{"scheduler: {maxParallel: 1}\n", bridge{}, []string{"--leader-election=false"}},
		{"cluster: blue\ntaskQueue: nodes\n", bridge{account: "a", approvals: true}, []string{"--cluster=blue", "--task-queue=nodes", "--lease-namespace=drydock", "--approvals"}},
	} {
		if err := s.folder.write(configFile, []byte(c.config)); err != nil {
			t.Fatal(err)
		}
		if got, err := s.bridgeArgs(c.bridge); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, %v; want %q", c.config, got, err, c.want)
		}
	}
}

func TestABridgeIsShownWhereThereIsOne(t *testing.T) {
	var out bytes.Buffer
	s := &site{options: options{out: &out}, folder: folder(t.TempDir()), cluster: &cluster{context: "prod", nodes: []string{"worker-01"}}, temporal: &devstack.Temporal{}}
	for _, r := range []state{{}, {Bridge: true, Ports: ports{Bridge: 8082}}} {
		out.Reset()
		if err := s.tell(r, ""); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"bridge         http://127.0.0.1:8082/metrics, as you", "| kubectl --context prod apply -f -", "spec: {node: worker-01,"} {
			if strings.Contains(out.String(), text) != r.Bridge {
				t.Errorf("bridge %t: %q is in it or not:\n%s", r.Bridge, text, out.String())
			}
		}
	}
}
