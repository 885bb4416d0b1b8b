package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/world"
)

// ours begins the name of every annotation that Drydock sets on a node.
const ours = "drydock.dev/"

// stripMarks takes the mark, and whatever else Drydock has noted on them, off the lane's nodes, as an operator's cleaning
// script may. Their cordons stay.
func (l *lane) stripMarks(ctx context.Context) error {
	return l.patchHeld(ctx, func(node *corev1.Node) map[string]any {
		none := map[string]any{}
		for name := range node.Annotations {
			if strings.HasPrefix(name, ours) {
				none[name] = nil
			}
		}
		return map[string]any{"metadata": map[string]any{"annotations": none}}
	})
}

// liftCordons makes the lane's nodes schedulable that are held.
func (l *lane) liftCordons(ctx context.Context) error {
	return l.patchHeld(ctx, func(*corev1.Node) map[string]any {
		return map[string]any{"spec": map[string]any{"unschedulable": nil}}
	})
}

// patchHeld changes every node of the lane that carries a mark.
func (l *lane) patchHeld(ctx context.Context, change func(*corev1.Node) map[string]any) error {
	for _, name := range l.nodes {
		node, err := l.kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if node.Annotations[api.HoldersAnnotation] == "" {
			continue
		}
		patch, err := json.Marshal(change(node))
		if err != nil {
			return err
		}
		if err := world.PatchNode(ctx, l.kube, name, "%s", patch); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// forgetWindows has the scheduler compute anew when windows are open, with its next decision about one.
func (a *attempt) forgetWindows(ctx context.Context) error {
	changed := api.WindowsChanged{Digest: fmt.Sprintf("none, before run %d", a.runs)}
	return a.temporal.Client.SignalWorkflow(ctx, api.SchedulerID(a.cluster), "", api.SignalWindowsChanged, changed)
}
