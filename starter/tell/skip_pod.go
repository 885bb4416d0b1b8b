package tell

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/terminal"
)

type skipPod struct{ simple }

// check refuses what cannot be the name of a pod, with or without its namespace.
func (skipPod) check(o *order) error {
	pod := o.args[1]
	full := pod
	if !strings.Contains(pod, "/") {
		full = "default/" + pod
	}
	if spec.PodName(full) != nil {
		return exit.UsageError("%q is not a pod: want NAMESPACE/NAME, or the name of a pod that blocks the drain", pod)
	}
	return nil
}

// payload looks for the namespace of a bare name among the pods that block the drain.
func (skipPod) payload(ctx context.Context, o *order) (any, string, error) {
	pod := o.args[1]
	if !strings.Contains(pod, "/") {
		s, err := o.status(ctx)
		if err == nil && s != nil && s.Phase == api.Draining {
			pod, err = fullName(s, pod, o.app.Name)
		}
		if err != nil {
			return nil, "", err
		}
	}
	return api.SkipPod{Pod: pod}, "", nil
}

// fullName completes a bare name with the namespace of the one pod of that name that is known of the drain.
func fullName(s *api.Status, pod, program string) (string, error) {
	known := slices.Clone(s.SkippedPods)
	if s.Drain != nil {
		for _, b := range s.Drain.Blockers {
			if b.Reason != api.ReasonVolumeAttached { // else it is no pod
				known = append(known, b.Pod)
			}
		}
	}
	slices.Sort(known)
	known = slices.Compact(known)
	named := slices.DeleteFunc(slices.Clone(known), func(full string) bool { return !strings.HasSuffix(full, "/"+pod) })
	node := s.Spec.Node
	switch {
	case len(named) == 1:
		return named[0], nil
	case len(named) > 1:
		return "", exit.Hint(fmt.Errorf("%s has several pods named %s that block its drain", node, pod), "Pass %s.", terminal.OrList(named))
	case len(known) == 0:
		return "", exit.Hint(fmt.Errorf("no pod that blocks the drain of %s is known, so not the namespace of %s either", node, pod),
			"Name it as NAMESPACE/%s.", pod)
	}
	return "", exit.Hint(fmt.Errorf("%s is not one of the pods that \"%s status %s\" lists as blockers", pod, program, node),
		"Name it as NAMESPACE/%s, or one of these: %s.", pod, terminal.SomeOf(known, 10))
}
