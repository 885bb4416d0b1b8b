package drain

import (
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/k8s"
)

// consents are what may be lost: of all pods, and of single ones.
type consents struct {
	all Consent
	of  map[string]Consent
}

// consentsOf are those of a drain. Everything gives those to every pod, which a node that empties by itself does not ask for.
func consentsOf(in Input, everything bool) consents {
	c := consents{
		all: Consent{Force: everything || in.Drain.Force, DeleteEmptyDir: everything || in.Drain.DeleteEmptyDir},
		of:  map[string]Consent{},
	}
	for _, given := range in.Consents {
		before := c.of[given.Pod]
		given.Force, given.DeleteEmptyDir = given.Force || before.Force, given.DeleteEmptyDir || before.DeleteEmptyDir
		c.of[given.Pod] = given
	}
	return c
}

// to is what may be lost of a pod.
func (c consents) to(pod *corev1.Pod) (force, deleteEmptyDir bool) {
	own := c.of[k8s.PodName(pod)]
	return c.all.Force || own.Force, c.all.DeleteEmptyDir || own.DeleteEmptyDir
}
