package chart_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/deploy/devstack"
)

// patience is how long a test waits for anything; it is a bound for a broken program, not a measure.
const patience = time.Minute

// stack is what the tests that need servers share: each has its nodes to itself, as they run one after the other.
type stack struct {
	dir      string
	cluster  *devstack.Cluster
	temporal *devstack.Temporal
	// audit is the API server's own record of every request.
	audit string
}

var start = sync.OnceValues(func() (*stack, error) {
	dir, err := os.MkdirTemp("", "drydock-chart-")
	if err != nil {
		return nil, err
	}
	s := &stack{dir: dir, audit: filepath.Join(dir, "audit.log")}
	running = s
	ctx := context.Background()
	if s.cluster, err = devstack.StartCluster(ctx, filepath.Join(dir, "cluster"), 9, "--audit-log", s.audit); err != nil {
		return nil, err
	}
	s.temporal, err = devstack.StartTemporal(ctx, devstack.TemporalOptions{Dir: filepath.Join(dir, "temporal"), Attributes: true, InMemory: true})
	return s, err
})

// running is what there is to stop after the last test.
var running *stack

func TestMain(m *testing.M) {
	status := m.Run()
	if s := running; s != nil {
		for _, process := range []*devstack.Process{processOf(s.cluster), serverOf(s.temporal)} {
			if process == nil {
				continue
			}
			if err := process.Stop(20 * time.Second); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
		os.RemoveAll(s.dir)
	}
	os.Exit(status)
}

func processOf(c *devstack.Cluster) *devstack.Process {
	if c == nil {
		return nil
	}
	return c.Process
}

func serverOf(t *devstack.Temporal) *devstack.Process {
	if t == nil {
		return nil
	}
	return t.Process
}

// release is one installation of the chart, and the kubelets that run its workers.
type release struct {
	*testing.T
	*stack
	ctx context.Context
	// name is the release's, and the name in front of its workflow IDs.
	name    string
	kubelet *kubelet
	// own is a Temporal that no other release has; nil for the shared one.
	own *devstack.Temporal
}

func (r *release) server() *devstack.Temporal { return cmp.Or(r.own, r.temporal) }

const namespace = "drydock"

// newRelease prepares an installation in a namespace that takes nothing but restricted pods.
func newRelease(t *testing.T, name string) *release {
	t.Helper()
	s, err := start()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	t.Cleanup(cancel)
	r := &release{T: t, stack: s, ctx: ctx, name: name}
	r.makeNamespace(namespace, map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
	r.kubelet = newKubelet(r)
	return r
}

// makeNamespace makes a namespace for as long as the test runs.
func (r *release) makeNamespace(name string, labels map[string]string) {
	r.Helper()
	namespaces := r.cluster.Client.CoreV1().Namespaces()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if _, err := namespaces.Create(r.ctx, object, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		r.ctx = ctx
		if err := namespaces.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			r.Error(err)
		}
		r.eventually("namespace "+name+" is gone", func() error {
			if _, err := namespaces.Get(ctx, name, metav1.GetOptions{}); err == nil {
				return errors.New("it is there")
			}
			return nil
		})
	})
}

// played is what every release here has: a Temporal to work with, pods that our kubelet starts, and a short farewell.
func (r *release) played() string {
	return fmt.Sprintf(`
temporal: {address: %q}
config: {cluster: %s}
preStopSeconds: 1
podLabels: {devcluster.drydock.dev/never-start: "true"}
podAnnotations: {devcluster.drydock.dev/termination-delay: 4s}
`, r.server().Address, r.name)
}

// values are played and others over them.
func (r *release) values(over string) map[string]any {
	r.Helper()
	return merged(values(r, r.played()), values(r, over))
}

func merged(a, b map[string]any) map[string]any {
	for key, value := range b {
		before, ok1 := a[key].(map[string]any)
		after, ok2 := value.(map[string]any)
		if ok1 && ok2 {
			value = merged(before, after)
		}
		a[key] = value
	}
	return a
}

func (r *release) configuration() *action.Configuration {
	r.Helper()
	settings := cli.New()
	settings.KubeConfig = r.cluster.Kubeconfig
	settings.SetNamespace(namespace)
	c := action.NewConfiguration()
	if err := c.Init(settings.RESTClientGetter(), namespace, "secret"); err != nil {
		r.Fatal(err)
	}
	return c
}

// install installs a chart as `helm install --wait` does; the release goes with the test.
func (r *release) install(c *chart.Chart, values map[string]any) {
	r.Helper()
	install := action.NewInstall(r.configuration())
	install.ReleaseName, install.Namespace, install.Timeout, install.WaitStrategy = r.name, namespace, patience, kube.StatusWatcherStrategy
	r.Cleanup(r.uninstall)
	if _, err := install.RunWithContext(r.ctx, c, values); err != nil {
		r.Fatalf("installing: %v", err)
	}
}

// upgrade upgrades as `helm upgrade --wait --reset-then-reuse-values` does.
func (r *release) upgrade(c *chart.Chart, values map[string]any, within time.Duration) error {
	r.Helper()
	upgrade := action.NewUpgrade(r.configuration())
	upgrade.Namespace, upgrade.Timeout, upgrade.WaitStrategy, upgrade.ResetThenReuseValues = namespace, within, kube.StatusWatcherStrategy, true
	_, err := upgrade.RunWithContext(r.ctx, r.name, c, values)
	return err
}

func (r *release) uninstall() {
	r.Helper()
	uninstall := action.NewUninstall(r.configuration())
	uninstall.Timeout, uninstall.WaitStrategy, uninstall.IgnoreNotFound = patience, kube.StatusWatcherStrategy, true
	if _, err := uninstall.Run(r.name); err != nil {
		r.Errorf("uninstalling: %v", err)
	}
}

// drydock runs the command line, and expects success.
func (r *release) drydock(args ...string) string {
	r.Helper()
	output, err := r.tryDrydock(args...)
	if err != nil {
		r.Fatalf("%v\n%s", err, r.kubelet.logs())
	}
	return output
}

func (r *release) tryDrydock(args ...string) (string, error) {
	path, err := devstack.Binary("drydock")
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(r.ctx, 2*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, path, args...)
	command.Env = append(append(os.Environ(), r.server().Environment()...), "DRYDOCK_CLUSTER="+r.name, "DRYDOCK_REQUESTOR=ops")
	output, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("drydock %s: %w\n%s", strings.Join(args, " "), err, output)
	}
	return string(output), err
}

// eventually waits until check says nothing is missing any more.
func (r *release) eventually(what string, check func() error) {
	r.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) || r.ctx.Err() != nil {
			r.Fatalf("%s: not within %s: %v\n%s", what, patience, err, r.kubelet.logs())
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-r.ctx.Done():
		}
	}
}

// accepted counts the evictions that the API server accepted in a namespace, by pod.
func (r *release) accepted(ns string) map[string]int {
	r.Helper()
	counts := map[string]int{}
	if err := devstack.ReadAudit(r.audit, 0, func(a devstack.Audited) {
		if a.Answered() && a.Object.Subresource == "eviction" && a.Object.Namespace == ns && a.Status.Code < 300 {
			counts[a.Object.Name]++
		}
	}, `"subresource":"eviction"`); err != nil {
		r.Fatal(err)
	}
	return counts
}
