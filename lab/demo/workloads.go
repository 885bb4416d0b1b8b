package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"drydock.dev/drydock/k8s"
)

const namespace = "shop"

// createWorkloads runs what nodes usually run: a Deployment under a disruption budget, a DaemonSet, and a pod that
// nobody would re-create.
func (d *demo) createWorkloads(ctx context.Context) error {
	d.say("creating a Deployment of 6 with a budget of 1 unavailable, a DaemonSet and a bare pod")
	web, agent := map[string]string{"app": "web"}, map[string]string{"app": "agent"}
	client := d.cluster.Client
	_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if _, err = client.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(6)), Selector: &metav1.LabelSelector{MatchLabels: web}, Template: template(web),
		},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	one := intstr.FromInt32(1)
	if _, err = client.PolicyV1().PodDisruptionBudgets(namespace).Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one, Selector: &metav1.LabelSelector{MatchLabels: web}},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err = client.AppsV1().DaemonSets(namespace).Create(ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: agent}, Template: template(agent)},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	bare := template(map[string]string{"app": "bare"})
	if _, err = client.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "bare"}, Spec: bare.Spec,
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	return d.eventually(ctx, "13 pods to run", func() error {
		pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running"})
		if err == nil && len(pods.Items) != 13 {
			err = fmt.Errorf("%d run", len(pods.Items))
		}
		return err
	})
}

func template(labels map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/app:1"}}},
	}
}

// everyNodeIsBack is what the demo is judged by: the API server's word, not the program's own.
func (d *demo) everyNodeIsBack(ctx context.Context) error {
	return d.eventually(ctx, "every node to be back in service", func() error {
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

func (d *demo) eventually(ctx context.Context, what string, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, errors.Join(ctx.Err(), err))
		}
	}
}
