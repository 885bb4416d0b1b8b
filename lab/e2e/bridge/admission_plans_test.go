package bridge

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/lab/e2e/site"
)

// forbidden wants a refusal that says something.
func forbidden(err error, says string) error {
	if err == nil || !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), says) {
		return fmt.Errorf("%w, want a refusal that says %q", err, says)
	}
	return nil
}

// users gives the users of the tests of plans and checks their rights: paula those on two nodes, theo those on all, and nina none.
func (b *bridged) users() {
	b.Helper()
	write := site.Rule("drydock.dev", "maintenanceplans", "create", "get", "patch", "delete")
	write.Resources = append(write.Resources, "healthchecks")
	onTwo := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"maintain"}, ResourceNames: []string{"worker-05", "worker-06"}}
	b.may("paula", write, onTwo)
	b.may("theo", write, site.Rule("", "nodes", "maintain"))
	b.may("nina", write, site.Rule("drydock.dev", "maintenanceplans/pause", "update"))
}

func TestWhoMayAskForPlansAndChecks(t *testing.T) {
	b := newBridged(t, "")
	b.install(manifests + "bridge/admission.yaml")
	b.users()
	paula, theo, nina := b.as("paula"), b.as("theo"), b.as("nina")
	two := map[string]any{"nodes": []string{"worker-05", "worker-06"}}
	check := map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"ward": "b"}}, "maintenance": map[string]any{}}
	try := func(k kind, who kubernetes.Interface, spec map[string]any) (string, string, error) {
		got, warned, err := b.createOf(k, who, "tried", spec, "dry")
		return string(got), warned, err
	}
	// The API server follows policies and roles by watches of its own.
	b.Eventually("the policies are in force", func() error {
		_, _, err := try(plans, nina, two)
		if err := forbidden(err, "nina may not maintain nodes worker-05, worker-06"); err != nil {
			return err
		}
		_, _, err = try(checks, nina, check)
		if err := forbidden(err, "nina may not maintain all nodes"); err != nil {
			return err
		}
		got, warned, err := try(plans, paula, two)
		if err == nil && (!strings.Contains(got, `"requestedBy":"paula"`) || warned != "") {
			err = fmt.Errorf("warnings %q: %s", warned, got)
		}
		if err != nil {
			return err
		}
		_, warned, err = try(plans, theo, map[string]any{"all": true})
		if err == nil && !strings.Contains(warned, "takes in all nodes") {
			err = fmt.Errorf("warnings %q", warned)
		}
		return err
	})
	nine := []string{"worker-05", "worker-06", "worker-07", "worker-08", "worker-09", "worker-10", "worker-11", "worker-12", "worker-13"}
	labelled := map[string]any{"nodeSelector": map[string]any{"nodeSelectorTerms": []any{
		map[string]any{"matchExpressions": []any{map[string]any{"key": "kubernetes.io/hostname", "operator": "Exists"}}},
	}}}
	for _, c := range []struct {
		k          kind
		who        kubernetes.Interface
		spec       map[string]any
		says, warn string
	}{
		{plans, paula, map[string]any{"nodes": []string{"worker-05", "worker-06", "worker-07"}}, "paula may not maintain nodes worker-05, worker-06, worker-07", ""},
		{plans, paula, map[string]any{"all": true}, "paula may not maintain all nodes", ""},
		{plans, paula, map[string]any{"selector": "ward=b"}, "paula may not maintain all nodes", ""},
		{plans, paula, map[string]any{"nodes": nine}, "paula may not maintain all nodes", ""},
		{plans, paula, map[string]any{"nodes": []string{"worker-05"}, "requestedBy": "theo"}, "spec.requestedBy is theo", ""},
		{checks, paula, check, "paula may not maintain all nodes", ""},
		{plans, theo, map[string]any{"nodes": nine[:8]}, "", ""},
		{plans, theo, map[string]any{"nodes": nine}, "", ""},
		{plans, theo, map[string]any{"selector": "ward=b"}, "", ""},
		{plans, theo, labelled, "", "takes in all nodes"},
		{plans, theo, map[string]any{"selector": "kubernetes.io/os"}, "", "takes in all nodes"},
		{checks, theo, check, "", ""},
	} {
		_, warned, err := try(c.k, c.who, c.spec)
		if c.says != "" {
			err = forbidden(err, c.says)
		}
		if err != nil || !strings.Contains(warned, c.warn) || c.says == "" && c.warn == "" && warned != "" {
			t.Errorf("%s %v: %v, warnings %q", c.k.name, c.spec, err, warned)
		}
	}
	b.onlyWhoMay(paula, theo, nina)
}

// owned has an object go with an owner that there is not: the garbage collector would delete it.
var owned = map[string]any{"metadata": map[string]any{"ownerReferences": []any{
	map[string]any{"apiVersion": "v1", "kind": "Node", "name": "nobody", "uid": "00000000-0000-0000-0000-000000000000"},
}}}

// onlyWhoMay has paula ask for a plan, which the others try to change.
func (b *bridged) onlyWhoMay(paula, theo, nina kubernetes.Interface) {
	b.Helper()
	spec := map[string]any{"nodes": []string{"worker-05"}, "strategy": map[string]any{"maxParallel": 1}, "maintenance": map[string]any{"readyTimeout": "4h"}}
	if _, _, err := b.createOf(plans, paula, "paulas", spec); err != nil {
		b.Fatal(err)
	}
	p := b.untilPlan("paulas", "works on its node", func(p v1alpha1.MaintenancePlan) bool { return p.Status.Counts != nil && p.Status.Counts.Running == 1 })
	status, err := b.planStatus(p)
	if err != nil || status.Plan.Object == nil || status.Plan.Object.RequestedBy != "paula" {
		b.Errorf("%v: the plan was asked for by %+v", err, status.Plan.Object)
	}
	pace := map[string]any{"spec": map[string]any{"strategy": map[string]any{"maxParallel": 2}}}
	said := func(message string) map[string]any {
		return map[string]any{"metadata": map[string]any{"annotations": map[string]any{"maintenance.drydock.dev/" + message: "why not"}}}
	}
	if err := b.patchAs(plans, paula, "paulas", owned, "dry"); err != nil {
		b.Errorf("paula gives her object an owner: %v", err)
	}
	remove := func(as kubernetes.Interface, dryRun ...string) error {
		return as.CoreV1().RESTClient().Delete().AbsPath("/apis", v1alpha1.GroupVersion.String(), plans.plural, "paulas").
			Body(&metav1.DeleteOptions{DryRun: dryRun}).Do(b.Ctx).Error()
	}
	for says, try := range map[string]func() error{
		"nina may not maintain node worker-05":    func() error { return b.patchAs(plans, nina, "paulas", pace, "dry") },
		"nina may not say cancel of paulas":       func() error { return b.patchAs(plans, nina, "paulas", said("cancel"), "dry") },
		"theo may not say pause of paulas":        func() error { return b.patchAs(plans, theo, "paulas", said("pause"), "dry") },
		"must be your own name: nina":             func() error { return b.patchAs(plans, nina, "paulas", said("pause-by"), "dry") },
		"nina may not delete paulas, which ends":  func() error { return remove(nina, metav1.DryRunAll) },
		"update maintenanceplans/cancel granted":  func() error { return remove(theo, metav1.DryRunAll) },
		"nina may not change the owner of paulas": func() error { return b.patchAs(plans, nina, "paulas", owned, "dry") },
		"of paulas is the bridge's": func() error {
			return b.patchAs(plans, theo, "paulas", map[string]any{"metadata": map[string]any{"finalizers": nil}}, "dry")
		},
		"may not say set-stage of paulas: have t": func() error { return b.patchAs(plans, theo, "paulas", said("set-stage"), "dry") },
	} {
		b.Eventually(says, func() error { return forbidden(try(), says) })
	}
	b.Eventually("nina pauses it", func() error { return b.patchAs(plans, nina, "paulas", said("pause")) })
	p = b.planIs("paulas", v1alpha1.Stalled, string(api.PlanPaused))
	if !strings.Contains(p.Status.Message, "kubernetes: nina") {
		b.Errorf("it shows %+v", p.Status)
	}
	if err := remove(paula); err != nil {
		b.Fatalf("paula deletes her object: %v", err)
	}
	b.MustDrydock("done", "worker-05", "--requestor", "plan-paulas", "--yes")
	b.wasRemoved(plans, "paulas")
}
