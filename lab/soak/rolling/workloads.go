package main

import (
	"context"
	"errors"
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/lab/world"
)

const (
	namespace = "shop"
	apps      = 20
)

// populate puts about two pods on each node, whose disruption budgets let a fifth be missing.
func populate(ctx context.Context, kube kubernetes.Interface, o options) error {
	in := world.Namespace{Kube: kube, Name: namespace}
	if err := in.Create(ctx); err != nil {
		return err
	}
	replicas := int32(2 * o.nodes / apps)
	for i := range apps {
		name := fmt.Sprintf("app-%02d", i)
		fifth := policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromString("20%"))}
		if err := errors.Join(in.Budget(ctx, name, name, fifth), in.Deployment(ctx, world.Pods(name), replicas)); err != nil {
			return err
		}
	}
	return in.Runs(ctx, o.within, apps*int(replicas))
}
