package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
)

const (
	namespace = "shop"
	apps      = 20
)

// populate puts about two pods on each node, whose disruption budgets let a fifth be missing.
func populate(ctx context.Context, kube kubernetes.Interface, nodes int) error {
	_, err := kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	replicas := int32(2 * nodes / apps)
	for i := range apps {
		meta := metav1.ObjectMeta{Name: fmt.Sprintf("app-%02d", i)}
		labels := map[string]string{"app": meta.Name}
		selector := &metav1.LabelSelector{MatchLabels: labels}
		_, err := kube.PolicyV1().PodDisruptionBudgets(namespace).Create(ctx, &policyv1.PodDisruptionBudget{
			ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromString("20%")), Selector: selector},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		_, err = kube.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{
			ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector, Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "main", Image: "registry.example/shop:v1"}}, AutomountServiceAccountToken: new(false),
				},
			}},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
	}
	for running := 0; running < apps*int(replicas); {
		if pause(ctx, time.Second); ctx.Err() != nil {
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
