package starter

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"drydock/api"
	"drydock/rules/spec"
)

func newSkipPod(a *app) *cobra.Command {
	t := &tell{app: a}
	cmd := &cobra.Command{
		Use:   "skip-pod NODE POD",
		Short: "Leave a pod on a Draining node: neither evict it nor wait for it",
		Long: `Leave a pod on a Draining node. The drain neither evicts it nor waits for it, so that the node becomes Ready with the
pod still on it: whatever is then done to the node is done to the pod too. It cannot be taken back.

POD is NAMESPACE/NAME. The name alone is enough for a pod that "drydock status" lists as a blocker.`,
		Example: `  drydock skip-pod worker-01 batch/crawler-0 --comment "may be lost, says team search"
  drydock skip-pod worker-01 crawler-0`,
		Args: nodeAndPod,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkPod(args[1]); err != nil {
				return err
			}
			return t.run(cmd.Context(), args[0], func(found) message { return skipPodMessage(a.name, args[1]) })
		},
	}
	t.register(cmd, ofMaintenance)
	return cmd
}

func nodeAndPod(_ *cobra.Command, args []string) error {
	switch len(args) {
	case 2:
		return nil
	case 0:
		return errors.New("which node, and which pod on it? Name both")
	case 1:
		return fmt.Errorf("which pod on %s? Name it as NAMESPACE/NAME", args[0])
	default:
		return fmt.Errorf("one pod of one node at a time, not %s", strings.Join(args, ", "))
	}
}

// checkPod refuses what cannot be the name of a pod, with or without its namespace.
func checkPod(pod string) error {
	full := pod
	if !strings.Contains(pod, "/") {
		full = "default/" + pod
	}
	if spec.PodName(full) != nil {
		return usageError("%q is not a pod: want NAMESPACE/NAME, or the name of a pod that blocks the drain", pod)
	}
	return nil
}

func skipPodMessage(program, pod string) message {
	return message{
		name: api.MsgSkipPod,
		payload: func(to addressee) any {
			// The check has found it.
			full, _ := podOf(program, to.status, pod)
			return api.SkipPod{Message: to.Message, Pod: full, Run: to.run}
		},
		check: func(s *api.Status) (string, error) {
			if s.Phase != api.Draining {
				return "", notIn(s, "pods can be skipped only while it is Draining", `"%s status %s" says what it waits for.`, program, s.Spec.Node)
			}
			if s.Spec.Drain.Mode == spec.ModeExternal {
				return "", notIn(s, "it is emptied by somebody else, and Drydock does not look at its pods", `When it is empty, say "%s drained %s".`, program, s.Spec.Node)
			}
			full, err := podOf(program, s, pod)
			if err == nil && slices.Contains(s.SkippedPods, full) {
				return full + " is skipped already", nil
			}
			return "", err
		},
		effect: func(before, now *api.Status) bool {
			full, err := podOf(program, before, pod)
			return now.Phase != api.Draining || err == nil && slices.Contains(now.SkippedPods, full)
		},
		said: func(now *api.Status) string {
			if now.Phase != api.Draining {
				return "is " + string(now.Phase)
			}
			return pod + " stays: the drain neither evicts it nor waits for it"
		},
	}
}

// podOf completes a bare name with the namespace of the one pod of that name that is known of the drain.
func podOf(program string, s *api.Status, pod string) (string, error) {
	if strings.Contains(pod, "/") {
		return pod, nil
	}
	known := slices.Clone(s.SkippedPods)
	if s.Drain != nil {
		for _, b := range s.Drain.Blockers {
			// A volume that is still attached is listed too, and is no pod.
			if b.Reason != "VolumeAttached" {
				known = append(known, b.Pod)
			}
		}
	}
	var named []string
	for _, full := range unique(known) {
		if _, name, ok := strings.Cut(full, "/"); ok && name == pod {
			named = append(named, full)
		}
	}
	switch {
	case len(named) == 1:
		return named[0], nil
	case len(named) > 1:
		return "", hint(fmt.Errorf("%s has several pods named %s that block its drain", s.Spec.Node, pod), "Say which: %s.", orList(named))
	case len(known) == 0:
		return "", hint(fmt.Errorf("no pod that blocks the drain of %s is known, so not the namespace of %s either", s.Spec.Node, pod), "Name it as NAMESPACE/%s.", pod)
	default:
		return "", hint(fmt.Errorf("%s is not one of the pods that \"%s status %s\" lists as blockers", pod, program, s.Spec.Node),
			"Name it as NAMESPACE/%s, or one of these: %s.", pod, someOf(unique(known), 10))
	}
}
