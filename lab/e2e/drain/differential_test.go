package drain

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/rules/preflight"
)

// workload is one that is put on two nodes, in a namespace for each: what kubectl makes of the one, Drydock has to make of
// the other.
type workload struct {
	name string
	put  func(s *site.Site, ns, name, node string)
	// wishes not to be disrupted: Drydock respects that for a while, kubectl knows nothing of it.
	wishes bool
}

// kindsOfPods are the ways for a pod to be on a node.
var kindsOfPods = []struct {
	kind string
	put  func(s *site.Site, ns, name, node string, options ...site.Option)
}{
	{"replicated", func(s *site.Site, ns, name, node string, options ...site.Option) {
		s.Deployment(ns, name, 1, append(options, site.On(node))...)
	}},
	{"bare", func(s *site.Site, ns, name, node string, options ...site.Option) { s.Pod(ns, name, node, options...) }},
	{"static", func(s *site.Site, ns, name, node string, options ...site.Option) {
		s.Pod(ns, name, node, append(options, site.Annotated(corev1.MirrorPodAnnotationKey, "x"))...)
	}},
	{"daemon", func(s *site.Site, ns, name, node string, options ...site.Option) {
		s.DaemonSet(ns, name, append(options, site.On(node))...)
	}},
	{"job", func(s *site.Site, ns, name, node string, _ ...site.Option) { s.Job(ns, name, node, "10m") }},
	{"finished", func(s *site.Site, ns, name, node string, options ...site.Option) {
		s.Pod(ns, name, node, append(options, never)...)
		_, err := s.Kube.CoreV1().Pods(ns).Patch(s.Ctx, name, types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
		if err != nil {
			s.Fatal(err)
		}
	}},
	{"guarded", func(s *site.Site, ns, name, node string, options ...site.Option) {
		s.Guarded(ns, name, node, options...)
	}},
}

func never(t *corev1.PodTemplateSpec) { t.Spec.RestartPolicy = corev1.RestartPolicyNever }

// traits are what pods of any kind may have besides.
var traits = []struct {
	name   string
	option site.Option
	wishes bool
}{
	{"plain", func(*corev1.PodTemplateSpec) {}, false},
	{"stores", site.WithEmptyDir, false},
	{"shy", site.Annotated("karpenter.sh/do-not-disrupt", "true"), true},
}

// randomWorkloads has each kind once, and some of them again, with traits by chance.
func randomWorkloads(random *rand.Rand) []workload {
	var all []workload
	for i := range len(kindsOfPods) + 3 {
		kind := kindsOfPods[i%len(kindsOfPods)]
		if i >= len(kindsOfPods) {
			kind = kindsOfPods[random.IntN(len(kindsOfPods))]
		}
		trait := traits[random.IntN(len(traits))]
		all = append(all, workload{
			name: fmt.Sprintf("%s-%s-%d", kind.kind, trait.name, i),
			put:  func(s *site.Site, ns, name, node string) { kind.put(s, ns, name, node, trait.option) },
			// A Job has no traits here, and nobody waits for the wish of one that stays or has ended.
			wishes: trait.wishes && kind.kind != "job" && kind.kind != "static" && kind.kind != "daemon" && kind.kind != "finished",
		})
	}
	return all
}

// TestSlowDrainAgreesWithKubectl puts the same pods on two nodes: their preflight and drain by Drydock differ from kubectl's in
// nothing but what the reference says.
func TestSlowDrainAgreesWithKubectl(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 2}")
	seed := uint64(time.Now().UnixNano()) //nolint:gosec // any seed will do
	t.Logf("seed %d", seed)
	workloads := randomWorkloads(rand.New(rand.NewPCG(seed, 0))) //nolint:gosec // no secret
	mine, theirs := s.Namespace(), s.Namespace()
	for _, w := range workloads {
		w.put(s, mine, w.name, "worker-01")
		w.put(s, theirs, w.name, "worker-02")
	}
	for _, flags := range [][]string{nil, {"--force"}, {"--delete-emptydir-data"}, {"--force", "--delete-emptydir-data"}} {
		comparePreflight(s, mine, workloads, flags)
	}

	// kubectl never goes on where a budget refuses; what it leaves in its time is what Drydock is blocked by.
	kubectlDrain(s, "worker-02", "--force", "--delete-emptydir-data", "--timeout=20s")
	left := appsOn(s, theirs, "worker-02")
	for _, w := range workloads {
		if w.wishes && !slices.Contains(left, w.name) {
			left = append(left, w.name)
		}
	}
	slices.Sort(left)
	run := s.BeginWith("worker-01", `"drain":{"force":true,"deleteEmptyDir":true}`)
	s.Eventually("Drydock leaves what kubectl leaves, and what asks not to be disrupted", func() error {
		if got := appsOn(s, mine, "worker-01"); !slices.Equal(got, left) {
			return fmt.Errorf("Drydock leaves %v, and kubectl %v (seed %d)", got, left, seed)
		}
		return nil
	})
	s.Always("it goes no further", 2*time.Second, func() error {
		if got := appsOn(s, mine, "worker-01"); !slices.Equal(got, left) {
			return fmt.Errorf("Drydock leaves %v, and kubectl %v (seed %d)", got, left, seed)
		}
		return nil
	})
	if status := s.MustStatus(run); status.Phase != api.Draining && status.Phase != api.Ready {
		t.Errorf("it is %s", status.Phase)
	}
}

// comparePreflight compares a preflight with kubectl's dry run of the same node, for the same consents.
func comparePreflight(s *site.Site, ns string, workloads []workload, flags []string) {
	s.Helper()
	r := s.Drydock(append([]string{"preflight", "worker-01", "-o", "json"}, flags...)...)
	var reports []preflight.Report
	if err := json.Unmarshal([]byte(r.Stdout), &reports); err != nil || len(reports) != 1 {
		s.Fatalf("%v\n%s", err, r.Out())
	}
	dry := kubectlDrain(s, "worker-01", append([]string{"--dry-run=server", "--timeout=8s"}, flags...)...)
	refuses, evicts := refusedByKubectl(dry), evictedByKubectl(dry)
	for _, pod := range reports[0].Pods {
		name, ours := strings.CutPrefix(pod.Pod, ns+"/")
		if !ours {
			continue
		}
		i := slices.IndexFunc(workloads, func(w workload) bool { return strings.HasPrefix(name, w.name) })
		if i < 0 {
			s.Errorf("a pod of nobody: %s", pod.Pod)
			continue
		}
		if got, want := pod.Action == preflight.Refuse, refuses[pod.Pod]; got != want {
			s.Errorf("%v: %s: preflight says %s (%s), kubectl refuses it: %v\n%s", flags, pod.Pod, pod.Action, pod.Reason, want, dry.Out())
		}
		// Where kubectl refuses one pod, it says nothing of the others.
		if got, want := pod.Action == preflight.Evict, evicts[name]; len(refuses) == 0 && got != want {
			s.Errorf("%v: %s: preflight says %s (%s), kubectl evicts it: %v\n%s", flags, pod.Pod, pod.Action, pod.Reason, want, dry.Out())
		}
	}
}

// kubectlDrain runs kubectl drain, whatever its end.
func kubectlDrain(s *site.Site, node string, flags ...string) site.Ran {
	s.Helper()
	cmd := s.Command("devcluster", append([]string{"kubectl", "drain", node, "--ignore-daemonsets"}, flags...)...)
	cmd.Env = append(cmd.Env, "HOME="+s.TempDir())
	return s.Execute(cmd)
}

var (
	evictions = regexp.MustCompile(`(?m)^evicting pod [^/\s]+/(\S+)`)
	podNames  = regexp.MustCompile(`[a-z0-9-]+/[a-z0-9.-]+`)
)

func refusedByKubectl(r site.Ran) map[string]bool {
	names := map[string]bool{}
	for line := range strings.Lines(r.Stderr) {
		if !strings.Contains(line, "cannot delete") {
			continue
		}
		for _, name := range podNames.FindAllString(line, -1) {
			names[name] = true
		}
	}
	return names
}

func evictedByKubectl(r site.Ran) map[string]bool {
	names := map[string]bool{}
	for _, found := range evictions.FindAllStringSubmatch(r.Out(), -1) {
		names[found[1]] = true
	}
	return names
}

// appsOn are the workloads that have a pod on a node which does not leave.
func appsOn(s *site.Site, ns, node string) []string {
	s.Helper()
	apps := map[string]bool{}
	for _, pod := range s.PodsOn(ns, node) {
		if pod.DeletionTimestamp == nil {
			apps[pod.Labels["app"]] = true
		}
	}
	return slices.Sorted(maps.Keys(apps))
}
