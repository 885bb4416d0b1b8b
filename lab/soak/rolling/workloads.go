package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/lab/world"
)

const (
	namespace = "shop"
	apps      = 20
)

// populate puts about two pods on each node, whose disruption budgets let a fifth be missing.
func populate(ctx context.Context, kube kubernetes.Interface, nodes int) error {
	in := world.Namespace{Kube: kube, Name: namespace}
	if err := in.Create(ctx); err != nil {
		return err
	}
	replicas := int32(2 * nodes / apps)
	for i := range apps {
		name := fmt.Sprintf("app-%02d", i)
		fifth := policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromString("20%"))}
		if err := errors.Join(in.Budget(ctx, name, name, fifth), in.Deployment(ctx, world.Pods(name), replicas)); err != nil {
			return err
		}
	}
	for running := 0; running < apps*int(replicas); {
		if world.Sleep(ctx, time.Second) != nil {
			return fmt.Errorf("%d of %d pods run: %w", running, apps*int(replicas), ctx.Err())
		}
		pods, err := kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running"})
		if err != nil {
			return err
		}
		running = len(pods.Items)
	}
	return nil
}
