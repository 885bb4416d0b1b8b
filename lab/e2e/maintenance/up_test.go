package maintenance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/deploy/kubernetes"
	"drydock.dev/drydock/lab/e2e/site"
)

// laptop is somebody's machine, with a kubeconfig and nothing else.
type laptop struct {
	*testing.T
	ctx     context.Context
	cluster *devstack.Cluster
	program string
	folder  string
	env     []string
	ports   []int
}

func newLaptop(t *testing.T) *laptop {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	t.Cleanup(cancel)
	l := &laptop{T: t, ctx: ctx, program: filepath.Join(dir, "up"), folder: filepath.Join(dir, "state")}
	build := exec.CommandContext(ctx, "go", "build", "-o", l.program, "drydock.dev/drydock/deploy/up")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var err error
	if l.cluster, err = devstack.StartCluster(ctx, filepath.Join(dir, "cluster"), 2); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { site.Stop(l.cluster.Process) })
	if l.ports, err = devstack.FreePorts(6); err != nil {
		t.Fatal(err)
	}
	l.env = append(os.Environ(), "KUBECONFIG="+l.cluster.Kubeconfig, "UP_DIR="+l.folder, "YES=1", "APPLY_RBAC=1",
		// What another Temporal is reached by must not lead this one astray.
		"TEMPORAL_ADDRESS=127.0.0.1:1", "TEMPORAL_API_KEY=theirs", "TEMPORAL_NAMESPACE=theirs", "DRYDOCK_CLUSTER=theirs",
		"DRYDOCK_TEMPORAL_API_KEY_FILE=/theirs", "DRYDOCK_CODEC_KEYS_FILE=/theirs")
	for i, name := range []string{"TEMPORAL_PORT", "TEMPORAL_UI_PORT", "DRYDOCK_PORT", "DRYDOCK_ADMIN_PORT", "DRYDOCK_BRIDGE_PORT", "DRYDOCK_BRIDGE_PROBES_PORT"} {
		l.env = append(l.env, name+"="+strconv.Itoa(l.ports[i]))
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, log := range []string{"temporal.log", "worker.log", "bridge.log"} {
				text, err := os.ReadFile(filepath.Join(l.folder, log))
				t.Logf("%s (%v)\n%s", log, err, text)
			}
		}
	})
	return l
}

// run runs a program to its end.
func (l *laptop) run(status int, cmd *exec.Cmd, says ...string) string {
	l.Helper()
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		l.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != status {
		l.Fatalf("%s: exit status %d, want %d\n%s", cmd, got, status, out)
	}
	for _, text := range says {
		if !bytes.Contains(out, []byte(text)) {
			l.Errorf("%s does not say %q but\n%s", cmd, text, out)
		}
	}
	return string(out)
}

func (l *laptop) up(says ...string) string {
	l.Helper()
	cmd := exec.CommandContext(l.ctx, l.program)
	cmd.Env = l.env
	return l.run(0, cmd, says...)
}

// refused is up where the variables or the files are wrong: what runs is left alone.
func (l *laptop) refused(variable string, says ...string) {
	l.Helper()
	temporal, worker := l.pid("temporal"), l.pid("worker")
	cmd := exec.CommandContext(l.ctx, l.program)
	cmd.Env = append(slices.Clone(l.env), variable)
	l.run(1, cmd, says...)
	if got := []int{l.pid("temporal"), l.pid("worker")}; !slices.Equal(got, []int{temporal, worker}) || errors.Is(syscall.Kill(worker, 0), syscall.ESRCH) {
		l.Errorf("processes are %v, were %d and %d", got, temporal, worker)
	}
}

func (l *laptop) down(says ...string) {
	l.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(l.ctx), l.program, "--down")
	cmd.Env = l.env
	l.run(0, cmd, says...)
}

// drydock runs the command line in the environment that up has written.
func (l *laptop) drydock(args ...string) string {
	l.Helper()
	path, err := devstack.Binary("drydock")
	if err != nil {
		l.Fatal(err)
	}
	script := fmt.Sprintf(". %s && exec %s \"$@\"", filepath.Join(l.folder, "env"), path)
	cmd := exec.CommandContext(l.ctx, "sh", append([]string{"-c", script, "drydock"}, args...)...)
	cmd.Env = append(slices.Clone(l.env), "DRYDOCK_REQUESTOR=ops")
	return l.run(0, cmd)
}

// pid is the process that up has started for a service.
func (l *laptop) pid(service string) int {
	l.Helper()
	var is struct{ PID int }
	data, err := os.ReadFile(filepath.Join(l.folder, service+".pid"))
	if err == nil {
		err = json.Unmarshal(data, &is)
	}
	if err != nil {
		l.Fatalf("%v: %q", err, data)
	}
	return is.PID
}

func (l *laptop) cordoned(node string) bool {
	l.Helper()
	n, err := l.cluster.Client.CoreV1().Nodes().Get(l.ctx, node, metav1.GetOptions{})
	if err != nil {
		l.Fatal(err)
	}
	return n.Spec.Unschedulable
}

// withBridge has a bridge started, which stays, and maintains a node by the command that up shows.
func (l *laptop) withBridge() {
	l.Helper()
	env := l.env
	l.env = append(slices.Clone(env), "BRIDGE=1")
	said := l.up("CustomResourceDefinition nodemaintenances.drydock.dev", "ServiceAccount drydock/drydock-bridge", "MutatingAdmissionPolicy drydock-objects",
		"Starting drydock-bridge", "/metrics, as "+kubernetes.BridgeAccount)
	l.env = env
	if again := l.up("bridge runs already", "Everything runs already; nothing was started"); strings.Contains(again, "CustomResourceDefinition") {
		l.Errorf("a second time it lists what is there:\n%s", again)
	}
	_, object, found := strings.Cut(said, "echo '")
	object, _, closed := strings.Cut(object, "' | kubectl --context")
	if !found || !closed {
		l.Fatalf("it shows no object to apply:\n%s", said)
	}
	text, err := yaml.YAMLToJSON([]byte(object))
	if err != nil {
		l.Fatal(err)
	}
	rest := l.cluster.Client.CoreV1().RESTClient()
	const path = "/apis/drydock.dev/v1alpha1/nodemaintenances"
	create := func() error {
		return rest.Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body(text).Do(l.ctx).Error()
	}
	if err := create(); err != nil {
		l.Fatal(err)
	}
	var is struct {
		Spec   struct{ RequestedBy string }
		Status struct{ Phase string }
	}
	get := func() error {
		got, err := rest.Get().AbsPath(path, "first").Do(l.ctx).Raw()
		if err == nil {
			err = json.Unmarshal(got, &is)
		}
		return err
	}
	l.eventually("the node is Ready for the object", func() error {
		if err := get(); err != nil || is.Status.Phase != "Ready" {
			return fmt.Errorf("%+v: %w", is, err)
		}
		return nil
	})
	if is.Spec.RequestedBy == "" || !l.cordoned("worker-01") {
		l.Errorf("it is asked for by %q; cordoned %v", is.Spec.RequestedBy, l.cordoned("worker-01"))
	}
	if err := rest.Delete().AbsPath(path, "first").Do(l.ctx).Error(); err != nil {
		l.Fatal(err)
	}
	l.eventually("the object is gone", func() error {
		if err := get(); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%+v: %w", is, err)
		}
		return nil
	})
	if l.cordoned("worker-01") {
		l.Error("worker-01 is not given back")
	}
}

// eventually waits until check says nothing is missing any more.
func (l *laptop) eventually(what string, check func() error) {
	l.Helper()
	for tick := time.NewTicker(100 * time.Millisecond); ; {
		err := check()
		if err == nil {
			tick.Stop()
			return
		}
		select {
		case <-tick.C:
		case <-l.ctx.Done():
			l.Fatalf("%s: %v", what, err)
		}
	}
}

func TestSlowUpFromAKubeconfigToAMaintenance(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	t.Cleanup(func() { l.down() })
	l.up("ClusterRole drydock-worker", "applies the manifests of permissions base: done", "raises the retention of the namespace: done",
		"Temporal UI    http://127.0.0.1:", "as "+site.AccountUser, "start worker-01")
	l.withBridge()
	l.drydock("start", "worker-01", "--reason", "a first look", "--wait")
	l.refused("TEMPORAL_UI_PORT="+strconv.Itoa(l.ports[2]), "TEMPORAL_UI_PORT", "make down first")
	l.refused("DRYDOCK_PORT="+strconv.Itoa(l.ports[0]), "DRYDOCK_PORT", "make down first")
	if out := l.up("Everything runs already; nothing was started", "nothing was changed"); strings.Contains(out, "Starting") || strings.Contains(out, "ClusterRole drydock-worker") {
		t.Errorf("a second time it starts something, or prints all that is there:\n%s", out)
	}

	// The machine loses power; later another process has the worker's number.
	for _, service := range []string{"worker", "temporal"} {
		if err := syscall.Kill(l.pid(service), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	another := exec.CommandContext(l.ctx, "sleep", "1000")
	if err := another.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = another.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = another.Process.Kill()
		<-ended
	})
	if err := os.WriteFile(filepath.Join(l.folder, "worker.pid"), fmt.Appendf(nil, `{"pid":%d}`, another.Process.Pid), 0o600); err != nil {
		t.Fatal(err)
	}
	l.up("temporal has died", "worker has died")
	if out := l.drydock("status", "worker-01"); !strings.Contains(out, "Ready") || !l.cordoned("worker-01") {
		t.Errorf("cordoned %v\n%s", l.cordoned("worker-01"), out)
	}
	l.drydock("start", "worker-02", "--drain-mode", "external")

	l.down("bridge is stopped", "worker is stopped", "temporal is stopped", "worker-01, worker-02")
	for _, port := range l.ports {
		if c, err := new(net.Dialer).DialContext(l.ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			c.Close()
			t.Errorf("something still listens on port %d", port)
		}
	}
	l.down("worker does not run", "temporal does not run")
	if !l.cordoned("worker-01") {
		t.Error("worker-01 is given back, and its maintenance has not ended")
	}

	// A configuration that is wrong stops nothing; one that has changed is taken, and the maintenances go on.
	config := filepath.Join(l.folder, "drydock.yaml")
	text, err := os.ReadFile(config)
	if err == nil {
		l.up("Starting drydock-worker")
		err = os.WriteFile(config, append(slices.Clone(text), "nonsense: 1\n"...), 0o600)
	}
	if err == nil {
		l.refused("", "nonsense: unknown field", "was left alone")
		l.down()
		err = os.WriteFile(config, append(text, "log: {level: warn}\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	l.up("Starting Temporal", "Starting drydock-worker")
	l.drydock("done", "worker-01", "--wait")
	if l.cordoned("worker-01") {
		t.Error("worker-01 is not given back")
	}
	l.drydock("cancel", "worker-02", "--wait")
	select {
	case <-ended:
		t.Error("somebody else's process was ended")
	default:
	}
}
