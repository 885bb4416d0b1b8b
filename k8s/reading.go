package k8s

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/k8s/kube"
)

// Reading is a node that is being read.
type Reading struct {
	done chan struct{}
	node *corev1.Node
	err  error
}

// ReadAhead begins to read a node, for a Hold that follows.
func ReadAhead(ctx context.Context, client kube.Interface, name string) *Reading {
	r := &Reading{done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.node, r.err = client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	}()
	return r
}

// wait returns the node once it is read.
func (r *Reading) wait() (*corev1.Node, error) {
	<-r.done
	return r.node, r.err
}
