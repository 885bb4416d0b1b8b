package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/lab/world"
)

const namespace = "shop"

// createWorkloads runs what nodes usually run: a Deployment under a disruption budget, a DaemonSet, and a pod that
// nobody would re-create.
func (d *demo) createWorkloads(ctx context.Context) error {
	d.say("creating a Deployment of 6 with a budget of 1 unavailable, a DaemonSet and a bare pod")
	in := world.Namespace{Kube: d.cluster.Client, Name: namespace}
	if err := in.Create(ctx); err != nil {
		return err
	}
	one := intstr.FromInt32(1)
	bare := world.Pods("bare")
	_, err := d.cluster.Client.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bare"}, Spec: bare.Spec}, metav1.CreateOptions{})
	if err := errors.Join(err, in.Deployment(ctx, world.Pods("web"), 6), in.DaemonSet(ctx, world.Pods("agent")),
		in.Budget(ctx, "web", "web", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one})); err != nil {
		return err
	}
	return in.Runs(ctx, time.Minute, 13)
}

// everyNodeIsBack is what the demo is judged by: the API server's word, not the program's own.
func (d *demo) everyNodeIsBack(ctx context.Context) error {
	return world.Eventually(ctx, time.Minute, "every node is back in service", func() error {
		nodes, err := d.cluster.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, n := range nodes.Items {
			mark, err := k8s.MarkOf(&n)
			if err != nil {
				return err
			}
			if n.Spec.Unschedulable || len(mark.Holders) > 0 {
				return fmt.Errorf("node %s is still out of service", n.Name)
			}
		}
		return nil
	})
}
