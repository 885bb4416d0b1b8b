package profile

import (
	"context"
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/kube"
	rules "drydock.dev/drydock/rules/profile"
	"drydock.dev/drydock/rules/profile/state"
)

// show writes the state of a node's profiles into the object.
func show(config *rules.Config, node *corev1.Node, data state.Data) error {
	text, err := data.Write()
	if err != nil {
		return fmt.Errorf("writing annotation %s: %w", state.DataAnnotation, err)
	}
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	node.Annotations[state.DataAnnotation] = text
	node.Labels[state.StateLabel] = string(config.Label(node.Labels, data))
	return nil
}

// write brings a node to what it should be, if it is still as it was read. It returns the node as it is then, as the watch has it.
func write(ctx context.Context, client kube.Interface, was, should *corev1.Node) (*corev1.Node, error) {
	before, err := json.Marshal(was)
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(should)
	if err != nil {
		return nil, err
	}
	difference, err := jsonpatch.CreateMergePatch(before, after)
	if err != nil {
		return nil, err
	}
	patch := map[string]any{}
	if err := json.Unmarshal(difference, &patch); err != nil {
		return nil, err
	}
	if len(patch) == 0 {
		return was, nil
	}
	metadata, _ := patch["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["resourceVersion"], metadata["uid"] = was.ResourceVersion, was.UID
	patch["metadata"] = metadata
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	written, err := client.CoreV1().Nodes().Patch(ctx, was.Name, types.MergePatchType, body, metav1.PatchOptions{})
	if err == nil {
		k8s.DropBulk(written)
	}
	return written, err
}
