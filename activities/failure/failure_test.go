package failure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"go.temporal.io/sdk/temporal"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
)

func TestTranslateMarksWhatIsWorthARetry(t *testing.T) {
	nodes := schema.GroupResource{Resource: "nodes"}
	server := k8stest.New()
	server.Deny("patch", "nodes")
	client := server.Client(t)
	denied := apierrors.NewForbidden(nodes, "n1", errors.New(`User "drydock" cannot patch resource "nodes" in API group "" at the cluster scope`))
	for name, c := range map[string]struct {
		err  error
		kind string // empty: retried
	}{
		"no node":            {fmt.Errorf("marking: %w", k8s.ErrNodeGone), api.ErrorNodeGone},
		"another node":       {fmt.Errorf("marking: %w", k8s.ErrNodeReplaced), api.ErrorNodeReplaced},
		"no mark":            {fmt.Errorf("fence: %w", k8s.ErrNotHolder), api.ErrorNotHolder},
		"no permission":      {fmt.Errorf("marking: %w", denied), api.ErrorMissingPermission},
		"a policy":           {fmt.Errorf("marking: %w", apierrors.NewForbidden(nodes, "n1", errors.New("not now"))), ""},
		"token expired":      {fmt.Errorf("marking: %w", apierrors.NewUnauthorized("expired")), ""},
		"throttled":          {apierrors.NewTooManyRequests("slow down", 1), ""},
		"conflict":           {apierrors.NewConflict(nodes, "n1", errors.New("changed")), ""},
		"server error":       {apierrors.NewInternalError(errors.New("etcd")), ""},
		"server away":        {apierrors.NewServiceUnavailable("starting"), ""},
		"timeout":            {apierrors.NewTimeoutError("slow", 1), ""},
		"invalid":            {apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "patch", nodes, "n1", "", 0, false), ""},
		"connection refused": {errors.New("dial tcp: connection refused"), ""},
		"cancelled":          {context.Canceled, ""},
		"worker stops":       {WorkerStopping(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := Translate(t.Context(), client, c.err)
			var application *temporal.ApplicationError
			permanent := errors.As(err, &application) && application.NonRetryable()
			if permanent != (c.kind != "") || permanent && application.Type() != c.kind {
				t.Errorf("translated to %v", err)
			}
			if again := Translate(t.Context(), client, err); again != err {
				t.Errorf("translated twice: %v", again)
			}
		})
	}
	if Translate(t.Context(), client, nil) != nil {
		t.Error("no error became one")
	}
}

// A person reads the error: it names the command that grants what is missing, for each part of the manifests.
func TestAMissingPermissionNamesWhatGrantsIt(t *testing.T) {
	for request, want := range map[string]string{
		`patch resource "nodes" in API group ""`:                                                      "`kubectl apply -f deploy/kubernetes/rbac.yaml`",
		`delete resource "pods" in API group "" in the namespace "shop"`:                              "`kubectl apply -f deploy/kubernetes/rbac-delete-pods.yaml`, or delete-pods in the chart's rbac.features",
		`patch resource "nodes/status" in API group ""`:                                               "rbac-node-conditions.yaml`",
		`list resource "leases" in API group "coordination.k8s.io" in the namespace "medik8s-leases"`: "rbac-health.yaml`, or health in the chart's rbac.features",
		`get resource "leases" in API group "coordination.k8s.io" in the namespace "shop"`:            "rbac-profiles.yaml`",
		`list resource "daemonsets" in API group "apps"`:                                              "rbac-daemonsets.yaml`",
		`list resource "volumeattachments" in API group "storage.k8s.io"`:                             "rbac-volumes.yaml`",
		`create resource "evictionrequests" in API group "lifecycle.k8s.io" in the namespace "shop"`:  "rbac-eviction-requests.yaml`",
		`patch resource "machines" in API group "cluster.x-k8s.io" in the namespace "fleet"`:          "rbac-cluster-api.yaml`",
		`create resource "jobs" in API group "batch" in the namespace "drydock-work"`:                 "rbac-work.yaml`",
		`create resource "jobs" in API group "batch" in the namespace "burn-in"`:                      "a Role like that of deploy/kubernetes/rbac-jobs.yaml in namespace burn-in",
		`create resource "reboots" in API group "remediators.example" in the namespace "rack"`:        "rbac.ext-remediation/aggregate-to-ext-remediation",
	} {
		t.Run(request, func(t *testing.T) {
			server := k8stest.New()
			server.Deny("*", "*")
			err := fmt.Errorf("doing it: %w", apierrors.NewForbidden(schema.GroupResource{}, "", errors.New(`User "drydock" cannot `+request)))
			if got := Translate(t.Context(), server.Client(t), err); !strings.Contains(got.Error(), want) {
				t.Errorf("%v\ndoes not name %s", got, want)
			}
		})
	}
}
