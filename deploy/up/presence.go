package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
)

// presence is the ConfigMap by which one make up knows of another that serves the same cluster, when no node has a mark yet.
const presence = "drydock-up"

// byLabel chooses the workers' Deployments of the chart and of deploy/kubernetes/base.
const byLabel = "app.kubernetes.io/name=drydock,app.kubernetes.io/component!=bridge"

// What the ConfigMap says.
const (
	presenceID     = "id"
	presenceHost   = "host"
	presenceFolder = "folder"
)

// newID tells one folder of make up from another, on whichever machine.
func newID() string { return rand.Text() }

// others are the Drydocks that serve the cluster besides the one with an ID, as far as they may be looked for.
func others(ctx context.Context, client kubernetes.Interface, id string) []string {
	var all []string
	if one, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, presence, metav1.GetOptions{}); err == nil && one.Data[presenceID] != id {
		all = append(all, fmt.Sprintf("make up on %.64q, which keeps it in %.256q (ConfigMap %s/%s, to be deleted where that one is gone for good)",
			one.Data[presenceHost], one.Data[presenceFolder], metav1.NamespaceSystem, presence))
	}
	workers, err := client.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: byLabel, Limit: shownHeld})
	if err != nil {
		return all
	}
	for _, worker := range workers.Items {
		all = append(all, "Deployment "+worker.Namespace+"/"+worker.Name)
	}
	return all
}

// announce says in the cluster that this Drydock serves it. Where somebody else has said so, the one that was confirmed last stays.
func announce(ctx context.Context, client kubernetes.Interface, id string, f folder) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	said := applycorev1.ConfigMap(presence, metav1.NamespaceSystem).
		WithData(map[string]string{presenceID: id, presenceHost: host, presenceFolder: string(f)})
	_, err = client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Apply(ctx, said, metav1.ApplyOptions{FieldManager: "drydock-up", Force: true})
	return err
}

// present has other make ups know of this one, or says that they do not.
func (s *site) present(ctx context.Context, id string) {
	switch err := announce(ctx, s.cluster.client, id, s.folder); {
	case apierrors.IsForbidden(err):
		s.say("You may not write ConfigMaps in %s: another make up for this cluster does not see this one until it holds a node.", metav1.NamespaceSystem)
	case err != nil:
		s.say("Another make up for this cluster does not see this one until it holds a node: %v.", err)
	}
}
