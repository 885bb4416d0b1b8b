package tell

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
)

func newSkipPod(a *invocation.App) *cobra.Command {
	t := &messageCommand{app: a}
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
			return t.run(cmd.Context(), args[0], func(client.Found) invocation.Message { return skipPodMessage(a.Name, args[1]) })
		},
	}
	t.register(cmd, invocation.OfMaintenance)
	return cmd
}

func nodeAndPod(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 2:
		return nil
	case 0:
		return missing(cmd, "NODE and POD")
	case 1:
		return missing(cmd, "POD (NAMESPACE/NAME)")
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
		return exit.UsageError("%q is not a pod: want NAMESPACE/NAME, or the name of a pod that blocks the drain", pod)
	}
	return nil
}

func skipPodMessage(program, pod string) invocation.Message {
	return invocation.Message{Message: client.SkipPod(pod), Words: skipPodWords{program: program, pod: pod}}
}

type skipPodWords struct {
	invocation.Plain
	program string
	pod     string
}

func (w skipPodWords) Next(s *api.Status) string {
	if s.Phase == api.Draining && s.Spec.Drain.Mode == spec.ModeExternal {
		return fmt.Sprintf(`When it is empty, run "%s drained %s".`, w.program, s.Spec.Node)
	}
	return fmt.Sprintf(`"%s status %s" says what it waits for.`, w.program, s.Spec.Node)
}

func (w skipPodWords) UnknownPod(unknown *client.UnknownPodError) error {
	return errUnknownPod(w.program, unknown)
}

func (w skipPodWords) Said(now *api.Status) string {
	if now.Phase != api.Draining {
		return "is " + string(now.Phase)
	}
	return w.pod + " stays: the drain neither evicts it nor waits for it"
}

// errUnknownPod says how to name the pod.
func errUnknownPod(program string, unknown *client.UnknownPodError) error {
	switch {
	case len(unknown.Named) > 1:
		return exit.Hint(unknown, "Pass %s.", terminal.OrList(unknown.Named))
	case len(unknown.Known) == 0:
		return exit.Hint(unknown, "Name it as NAMESPACE/%s.", unknown.Pod)
	default:
		text := fmt.Sprintf("%s is not one of the pods that \"%s status %s\" lists as blockers", unknown.Pod, program, unknown.Node)
		return exit.Hint(exit.InWords(text, unknown), "Name it as NAMESPACE/%s, or one of these: %s.", unknown.Pod, terminal.SomeOf(unknown.Known, 10))
	}
}
