package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const fillerName = "filler"

// fillNodes creates a Deployment that puts pods on all workers and waits until
// they run. One that exists already is left as the earlier run made it.
func fillNodes(ctx context.Context, client kubernetes.Interface, pods int32) error {
	deployments := client.AppsV1().Deployments(metav1.NamespaceDefault)
	_, err := deployments.Create(ctx, fillerDeployment(pods), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create deployment %s: %w", fillerName, err)
	}
	return poll(ctx, "pods of deployment "+fillerName, 100*time.Millisecond, func(ctx context.Context) error {
		deployment, err := deployments.Get(ctx, fillerName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if ready := deployment.Status.ReadyReplicas; ready < pods {
			return fmt.Errorf("%d of %d pods are ready", ready, pods)
		}
		return nil
	})
}

func fillerDeployment(pods int32) *appsv1.Deployment {
	labels := map[string]string{"app": fillerName}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: fillerName, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &pods,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{
						Name:  fillerName,
						Image: "registry.example/devcluster/filler:v1",
						Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
							corev1.ResourceCPU:    resource.MustParse("10m"),
							corev1.ResourceMemory: resource.MustParse("16Mi"),
						}},
					}},
					// Evenly, but never at the price of a pod that cannot start:
					// a cordoned node counts as an empty one here.
					TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
						MaxSkew:           1,
						TopologyKey:       corev1.LabelHostname,
						WhenUnsatisfiable: corev1.ScheduleAnyway,
						LabelSelector:     &metav1.LabelSelector{MatchLabels: labels},
					}},
				},
			},
		},
	}
}
