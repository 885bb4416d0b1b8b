// Package clusterapi annotates Machines so that Cluster API's health checks leave them alone, and takes that back.
package clusterapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/kube"
)

// The annotations of Cluster API: those of a node say which Machine it is of, that of a Machine that it is not to be
// remediated, whatever its value.
const (
	MachineAnnotation   = "cluster.x-k8s.io/machine"
	NamespaceAnnotation = "cluster.x-k8s.io/cluster-namespace"
	SkipAnnotation      = "cluster.x-k8s.io/skip-remediation"
)

const (
	group = "cluster.x-k8s.io"
	// ours begins the value of SkipAnnotation that Drydock sets; the first run of the maintenance follows.
	ours = "drydock/"
	// pageOf bounds a page of a list.
	pageOf = 500
)

// MachineOf is the Machine that a node is of, "namespace/name"; empty if the node does not say.
func MachineOf(node *corev1.Node) string {
	namespace, name := node.Annotations[NamespaceAnnotation], node.Annotations[MachineAnnotation]
	if namespace == "" || name == "" || strings.ContainsAny(namespace+name, "/?#%") {
		return ""
	}
	return namespace + "/" + name
}

// Machines are those of a cluster.
type Machines struct{ Client kube.Interface }

// NodeOf is what a Machine says of its node. Its controller writes it, which trusts no kubelet.
type NodeOf struct{ UID, Name, ProviderID string }

// Is reports whether the Machine names the node: by its UID, or by its name and the ID that the cloud gave its machine. The annotations
// of a node prove nothing, since a kubelet may write those of its own node.
func (n NodeOf) Is(node *corev1.Node) bool {
	if n.UID != "" && n.UID == string(node.UID) {
		return true
	}
	return n.Name == node.Name && n.ProviderID != "" && n.ProviderID == node.Spec.ProviderID
}

// IsAnother reports whether the Machine names another node that has the node's name, as Machines of another cluster may. Where only
// the name is known, it counts as the same node.
func (n NodeOf) IsAnother(node *corev1.Node) bool {
	return !n.Is(node) && (n.UID != "" || n.ProviderID != "" && node.Spec.ProviderID != "")
}

// Skip has the Machine of a node left alone while the maintenance holds the node whose first run is runID. A Machine that somebody else
// has left alone already stays as it is, and so does one that is not there. A Machine that does not name the node is an error.
func (m Machines) Skip(ctx context.Context, machine string, node *corev1.Node, runID string) error {
	foreign := false
	err := m.change(ctx, machine, func(found object) *string {
		value, there := found.Metadata.Annotations[SkipAnnotation]
		foreign = !found.nodeOf().Is(node)
		switch {
		case foreign && !there:
			return nil
		case foreign, there && !strings.HasPrefix(value, ours):
			return &value
		}
		// It changes with each maintenance, so that a Resume that comes late meets a conflict.
		return new(ours + runID)
	})
	if err == nil && foreign {
		err = fmt.Errorf("it does not name node %s, neither by UID nor by name and providerID: correct the annotations of the node", node.Name)
	}
	if err != nil {
		return fmt.Errorf("annotating machine %s: %w", machine, err)
	}
	return nil
}

// Resume takes back what Skip has set for a maintenance of a node, once nothing holds that, nor the node that the Machine names.
func (m Machines) Resume(ctx context.Context, machine, node string) (resumed bool, err error) {
	var unread error
	err = m.change(ctx, machine, func(found object) *string {
		resumed = false
		value, there := found.Metadata.Annotations[SkipAnnotation]
		if !there {
			return nil
		}
		if !strings.HasPrefix(value, ours) {
			return &value
		}
		// This comes after the Machine was read: a maintenance that holds the node later changes the Machine, so that the write below
		// conflicts.
		for _, of := range []string{node, found.Status.NodeRef.Name} {
			var held bool
			if held, unread = m.isHeld(ctx, of); held || unread != nil {
				return &value
			}
		}
		resumed = true
		return nil
	})
	if err == nil {
		err = unread
	}
	if err != nil {
		return false, fmt.Errorf("taking the annotation off machine %s: %w", machine, err)
	}
	return resumed, nil
}

func (m Machines) isHeld(ctx context.Context, name string) (bool, error) {
	if name == "" {
		return false, nil
	}
	node, err := m.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	mark, err := k8s.MarkOf(node)
	return len(mark.Holders) > 0, err
}

// Skipped is a Machine that Drydock has had left alone, and its node as far as it names one.
type Skipped struct{ Machine, Node string }

// Skipped are all Machines that carry Drydock's annotation; none where there is no Cluster API.
func (m Machines) Skipped(ctx context.Context) (all []Skipped, err error) {
	version, err := m.version(ctx)
	if version == "" || err != nil {
		return nil, err
	}
	for next := ""; ; {
		var page struct {
			Metadata metav1.ListMeta `json:"metadata"`
			Items    []object        `json:"items"`
		}
		request := m.rest().Get().AbsPath("apis", group, version, "machines").Param("limit", fmt.Sprint(pageOf))
		if next != "" {
			request = request.Param("continue", next)
		}
		if err := read(ctx, request, &page); err != nil {
			return nil, fmt.Errorf("listing the machines of Cluster API: %w", err)
		}
		for _, item := range page.Items {
			if strings.HasPrefix(item.Metadata.Annotations[SkipAnnotation], ours) {
				all = append(all, Skipped{item.Metadata.Namespace + "/" + item.Metadata.Name, item.Status.NodeRef.Name})
			}
		}
		if next = page.Metadata.Continue; next == "" {
			return all, nil
		}
	}
}

// object is what is read of a Machine.
type object struct {
	Metadata struct {
		Name            string            `json:"name"`
		Namespace       string            `json:"namespace"`
		ResourceVersion string            `json:"resourceVersion"`
		Annotations     map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		ProviderID string `json:"providerID"`
	} `json:"spec"`
	Status struct {
		NodeRef struct {
			Name string `json:"name"`
			UID  string `json:"uid"`
		} `json:"nodeRef"`
	} `json:"status"`
}

func (o object) nodeOf() NodeOf {
	return NodeOf{UID: o.Status.NodeRef.UID, Name: o.Status.NodeRef.Name, ProviderID: o.Spec.ProviderID}
}

// change sets the annotation of a Machine to what is wanted, nil being none, in the version that was read.
func (m Machines) change(ctx context.Context, machine string, wanted func(object) *string) error {
	namespace, name, _ := strings.Cut(machine, "/")
	version, err := m.version(ctx)
	if version == "" || err != nil {
		return err
	}
	path := []string{"apis", group, version, "namespaces", namespace, "machines", name}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var found object
		err := read(ctx, m.rest().Get().AbsPath(path...), &found)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		value := wanted(found)
		if now, there := found.Metadata.Annotations[SkipAnnotation]; there == (value != nil) && (value == nil || now == *value) {
			return nil
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"resourceVersion": found.Metadata.ResourceVersion, "annotations": map[string]*string{SkipAnnotation: value},
		}})
		if err != nil {
			return err
		}
		err = m.rest().Patch(types.MergePatchType).AbsPath(path...).SetHeader("Accept", "application/json").Body(patch).Do(ctx).Error()
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// version is the one of Cluster API that the API server prefers; empty if it serves none.
func (m Machines) version(ctx context.Context) (string, error) {
	var served metav1.APIGroup
	err := read(ctx, m.rest().Get().AbsPath("apis", group), &served)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("asking for Cluster API: %w", err)
	}
	return served.PreferredVersion.Version, nil
}

func (m Machines) rest() rest.Interface { return m.Client.CoreV1().RESTClient() }

// read gets an object as JSON, which custom resources are written in. DoRaw would lose what the API server says of an error.
func read(ctx context.Context, request *rest.Request, into any) error {
	result := request.SetHeader("Accept", "application/json").Do(ctx)
	if err := result.Error(); err != nil {
		return err
	}
	data, err := result.Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}
