package chart_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/validation"
)

// feature is one that needs a part of the permissions: a maintenance that uses it, and what shows that it did.
type feature struct {
	part string
	// input are fields of the maintenance, as JSON.
	input string
	// ready looks at the node when the maintenance is Ready; nil is no look.
	ready func(r *release, run client.WorkflowRun, node string) error
}

var allFeatures = []feature{
	{part: "daemonsets", input: `"validation":{"daemonSets":"all","deadline":"20s"}`},
	{part: "delete-pods", input: `"drain":{"escalation":[{"after":"1s","do":"bypassBudget"}]}`},
	{part: "eviction-requests", input: `"drain":{"via":"evictionRequest"}`},
	{part: "jobs", input: `"hooks":{"beforeCordon":["probe"]}`},
	{part: "node-conditions", input: `"reason":"to be seen in the node's conditions"`, ready: showsConditions},
	{part: "volumes", input: `"drain":{"waitForVolumeDetach":true}`},
	{part: "work", input: `"work":"fix"`},
}

// showsConditions looks until the node shows them or the worker was refused: a maintenance does not wait for what it shows.
func showsConditions(r *release, run client.WorkflowRun, name string) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		node, err := r.cluster.Client.CoreV1().Nodes().Get(r.ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == "MaintenanceInProgress" && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
		if err := r.lacksPermission(run); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return errors.New("its conditions do not show the maintenance")
		}
	}
}

// lacksPermission is why an activity of a workflow was refused; nil if none was.
func (r *release) lacksPermission(run client.WorkflowRun) error {
	events := r.temporal.Client.GetWorkflowHistory(r.ctx, run.GetID(), run.GetRunID(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return err
		}
		failure := event.GetActivityTaskFailedEventAttributes().GetFailure()
		if failure.GetApplicationFailureInfo().GetType() == api.ErrorMissingPermission {
			return errors.New(failure.GetMessage())
		}
	}
	return nil
}

const featureValues = `
config:
  scheduler: {maxParallel: unlimited, maxUnavailable: 100%}
  kubernetes: {nodeConditions: true}
  hooks: {probe: {job: {templateFile: /etc/drydock/probe.yaml, namespace: drydock-jobs}, deadline: 20s}}
  work: {fix: {job: {templateFile: /etc/drydock/fix.yaml, namespace: drydock-work}, deadline: 20s}}
files:
  probe.yaml: |
    apiVersion: batch/v1
    kind: Job
    spec:
      template:
        spec:
          restartPolicy: Never
          securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
          containers:
          - name: probe
            image: registry.example/probe:v1
            securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
  fix.yaml: |
    apiVersion: batch/v1
    kind: Job
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: fix, image: "registry.example/fix:v1", securityContext: {privileged: true}}]
`

// Each part of the permissions lets its feature work, and no other.
func TestEachPartLetsItsFeatureWork(t *testing.T) {
	var parts []string
	for _, f := range allFeatures {
		parts = append(parts, f.part)
	}
	// No maintenance needs the parts of health checks and of profiles, whose end-to-end tests run under them, and none here has a machine
	// of Cluster API's, or an object that asks for it.
	want := slices.DeleteFunc(features(t), func(part string) bool {
		return part == "health" || part == "profiles" || part == "cluster-api" || part == "metrics" || part == "objects"
	})
	if !slices.Equal(parts, want) {
		t.Fatalf("tried are %v, and there are %v", parts, want)
	}
	r := newRelease(t, "parts")
	r.makeNamespace(r.workload(), nil)
	r.install(loadChart(t), r.values(featureValues))
	t.Cleanup(r.forgetJobs)
	nodes := r.reserveNodes()
	guarded := nodes[slices.Index(parts, "delete-pods")]
	r.deployment("db", guarded, 1)
	r.guard("db")
	for _, part := range append([]string{""}, parts...) {
		// Other pods, so that no worker has anything from before.
		with := values(t, fmt.Sprintf("rbac: {features: [%s]}\npodAnnotations: {round: with-%s}", part, part))
		if err := r.upgrade(loadChart(t), with, patience); err != nil {
			t.Fatalf("with %q: %v\n%s", part, err, r.kubelet.logs())
		}
		r.inForce(part)
		var under sync.WaitGroup
		results := make([]error, len(allFeatures))
		for i, f := range allFeatures {
			under.Go(func() { results[i] = r.try(f, nodes[i]) })
		}
		under.Wait()
		for i, f := range allFeatures {
			if works := results[i] == nil; works != (f.part == part) {
				t.Errorf("with %q %s: %v", part, f.part, results[i])
			}
		}
		t.Logf("with %q: %v", part, results)
		r.deploymentReady("db", 1)
	}
}

// reserveNodes keeps the workers on two nodes, and gives the others.
func (r *release) reserveNodes() (free []string) {
	r.Helper()
	nodes, err := r.cluster.Client.CoreV1().Nodes().List(r.ctx, metav1.ListOptions{})
	if err != nil {
		r.Fatal(err)
	}
	var keep []any
	for _, node := range nodes.Items {
		if len(free) < len(allFeatures) {
			free = append(free, node.Name)
		} else {
			keep = append(keep, node.Name)
		}
	}
	if len(keep) < 2 {
		r.Fatalf("%d nodes are too few", len(nodes.Items))
	}
	affinity := map[string]any{"nodeAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{
		"nodeSelectorTerms": []any{map[string]any{"matchExpressions": []any{
			map[string]any{"key": corev1.LabelHostname, "operator": "In", "values": keep},
		}}},
	}}}
	if err := r.upgrade(loadChart(r), map[string]any{"affinity": affinity}, patience); err != nil {
		r.Fatal(err)
	}
	return free
}

// inForce waits until the API server lets the account do what the part grants, and nothing of the others.
func (r *release) inForce(part string) {
	r.Helper()
	user := fmt.Sprintf("system:serviceaccount:%s:%s-drydock-worker", namespace, r.name)
	for _, f := range allFeatures {
		for _, attributes := range needs(r.T, f.part) {
			r.eventually(fmt.Sprintf("with %q %s %s is decided", part, attributes.Verb, attributes.Resource), func() error {
				answer, err := r.cluster.Client.AuthorizationV1().SubjectAccessReviews().Create(r.ctx, &authorizationv1.SubjectAccessReview{
					Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &attributes},
				}, metav1.CreateOptions{})
				if err == nil && answer.Status.Allowed != (f.part == part) {
					err = fmt.Errorf("allowed %v", answer.Status.Allowed)
				}
				return err
			})
		}
	}
}

// needs are the permissions of a part that no worker has in any case.
func needs(t *testing.T, part string) []authorizationv1.ResourceAttributes {
	t.Helper()
	always := permissions(t, "rbac.yaml")
	all := slices.DeleteFunc(permissions(t, "rbac-"+part+".yaml"), func(a authorizationv1.ResourceAttributes) bool {
		a.Namespace = ""
		return slices.ContainsFunc(always, func(b authorizationv1.ResourceAttributes) bool { return reflect.DeepEqual(a, b) })
	})
	if len(all) == 0 {
		t.Fatalf("part %s grants nothing", part)
	}
	return all
}

// permissions are what a file grants.
func permissions(t *testing.T, file string) (all []authorizationv1.ResourceAttributes) {
	t.Helper()
	for _, d := range documentsOf(t, kubernetesDir+"/"+file) {
		var rules []rbacv1.PolicyRule
		in := ""
		switch o := decode(t, d).(type) {
		case *rbacv1.ClusterRole:
			rules = o.Rules
		case *rbacv1.Role:
			rules, in = o.Rules, o.Namespace
		}
		for _, rule := range rules {
			for _, verb := range rule.Verbs {
				name, sub, _ := strings.Cut(rule.Resources[0], "/")
				all = append(all, authorizationv1.ResourceAttributes{Namespace: in, Group: rule.APIGroups[0], Resource: name, Subresource: sub, Verb: verb})
			}
		}
	}
	return all
}

// try does a maintenance that uses a feature, to its end; the error is why the feature does not work.
func (r *release) try(f feature, node string) error {
	run, err := r.temporal.Client.ExecuteWorkflow(r.ctx, client.StartWorkflowOptions{
		ID: api.MaintenanceID(r.name, node, "ops"), TaskQueue: api.TaskQueue(r.name, "drydock"),
	}, api.NodeMaintenanceType, json.RawMessage(fmt.Sprintf(`{"node":%q,"requestor":"ops",%s}`, node, f.input)))
	if err != nil {
		return err
	}
	var failed error
	told := false
	tell := func(name string, payload any) error {
		told = true
		return r.temporal.Client.SignalWorkflow(r.ctx, run.GetID(), run.GetRunID(), name, payload)
	}
	var unanswered error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		var status api.Status
		value, err := r.temporal.Client.QueryWorkflow(r.ctx, run.GetID(), run.GetRunID(), api.QueryStatus)
		if err == nil {
			err = value.Get(&status)
		}
		if unanswered = err; err != nil { // as where the worker that was asked has just gone
			continue
		}
		validating := status.Phase == api.Validating && status.Validation != nil && status.Validation.State == validation.Failed
		switch {
		case status.Phase == api.Completed:
			return failed
		case status.Phase.Ended():
			return errors.Join(failed, fmt.Errorf("%s: %s", status.Phase, status.Failure))
		case told:
		case status.Phase == api.RequestorFailed || validating:
			failed = fmt.Errorf("%s: %s", status.Phase, status.WaitingFor)
			err = tell(api.MsgCancel, map[string]any{"release": true})
		case status.Phase == api.Ready && !strings.Contains(f.input, `"work"`):
			if f.ready != nil {
				failed = f.ready(r, run, node)
			}
			err = tell(api.MsgDone, nil)
			told = !strings.Contains(f.input, `"validation"`) // it may fail yet
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(failed, unanswered, errors.New("the maintenance did not end"))
}

// forgetJobs removes what the chart leaves: the namespaces of Jobs.
func (r *release) forgetJobs() {
	r.Helper()
	for _, name := range []string{"drydock-jobs", "drydock-work"} {
		if err := r.cluster.Client.CoreV1().Namespaces().Delete(r.ctx, name, metav1.DeleteOptions{}); err != nil {
			r.Errorf("namespace %s did not stay: %v", name, err)
		}
	}
}
