package profile

import (
	"hash/fnv"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// changes filters the changes of nodes that are worth an evaluation: a kubelet's repeated reports are not.
type changes struct {
	mu      sync.Mutex
	digests map[string]uint64
	changed bool
}

func newChanges() *changes { return &changes{digests: map[string]uint64{}} }

// note takes a change, and reports whether it is worth it.
func (c *changes) note(node *corev1.Node, gone bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if gone {
		delete(c.digests, node.Name)
		c.changed = true
		return true
	}
	digest := digestOf(node)
	if before, known := c.digests[node.Name]; known && before == digest {
		return false
	}
	c.digests[node.Name] = digest
	c.changed = true
	return true
}

func (c *changes) any() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

func (c *changes) take() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = false
}

// digestOf is of all that people and controllers change on a node, and of its conditions but their words.
func digestOf(node *corev1.Node) uint64 {
	sum := fnv.New64a()
	add := func(texts ...string) {
		for _, text := range texts {
			sum.Write([]byte(text))
			sum.Write([]byte{0})
		}
	}
	add(string(node.UID), node.Status.NodeInfo.BootID, node.Status.NodeInfo.KubeletVersion)
	if node.DeletionTimestamp != nil {
		add("deleted")
	}
	add(node.Finalizers...)
	for _, texts := range []map[string]string{node.Labels, node.Annotations} {
		keys := make([]string, 0, len(texts))
		for key := range texts {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			add(key, texts[key])
		}
		add("")
	}
	if node.Spec.Unschedulable {
		add("unschedulable")
	}
	for _, t := range node.Spec.Taints {
		add(t.Key, t.Value, string(t.Effect))
	}
	for _, c := range node.Status.Conditions {
		add(string(c.Type), string(c.Status), c.LastTransitionTime.String())
	}
	return sum.Sum64()
}
