package tell

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/show"
	"drydock.dev/drydock/starter/terminal"
)

func newCancel(a *invocation.App) *cobra.Command {
	t := &messageCommand{app: a, end: api.Cancelled}
	var release bool
	cmd := &cobra.Command{
		Use:   "cancel NODE",
		Short: "Cancel a maintenance, and undo it while the node is not Ready yet",
		Long: `Cancel a maintenance.

Before the node is Ready everything is undone and the maintenance ends Cancelled. From Ready on the node may be half
worked on, so it becomes RequestorFailed and stays out of service; with --release it is given back as it is, and the
maintenance ends Cancelled. With --wait the command waits for the end.

With --release it asks first where the maintenance is neither for you nor started by you; --yes takes the place of the
answer, and is needed where nobody is there to give one.`,
		Example: `  drydock cancel worker-01 --comment "change postponed"
  drydock cancel worker-01 --release --wait`,
		Args: invocation.OneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !release {
				t.owned = nil // the node stays out of service, or was not touched
			}
			return t.run(cmd.Context(), args[0], func(client.Found) invocation.Message { return CancelMessage(a.Name, release, t.wait) })
		},
	}
	t.register(cmd, invocation.OfMaintenance)
	t.registerOwned(cmd, "cancel --release", false)
	t.registerWait(cmd)
	cmd.Flags().BoolVar(&release, "release", false, "give the node back even if it was Ready already")
	return cmd
}

// CancelMessage cancels a maintenance.
func CancelMessage(program string, release, wait bool) invocation.Message {
	return invocation.Message{Message: client.Cancel(release), Words: cancelWords{release: release, wait: wait, program: program}}
}

type cancelWords struct {
	invocation.Plain
	release bool
	wait    bool
	program string
}

func (w cancelWords) Refuse(s *api.Status) error {
	if s.Phase == api.Ready && w.wait && !w.release {
		return exit.Hint(fmt.Errorf("%s is %s: cancelling it would leave it RequestorFailed, which has no end to wait for", s.Spec.Node, s.Phase),
			"Add --release to give the node back.")
	}
	return nil
}

func (w cancelWords) Next(s *api.Status) string {
	return fmt.Sprintf(`"%s cancel %s --release" gives the node back as it is.`, w.program, s.Spec.Node)
}

func (w cancelWords) Said(now *api.Status) string {
	if now.Phase == api.RequestorFailed {
		return fmt.Sprintf(`was Ready, is RequestorFailed now and stays out of service; "%s cancel %s --release" gives it back`, w.program, now.Spec.Node)
	}
	if !touched(now.Transitions) {
		return "cancelled; the node was not touched"
	}
	return "cancelled; the node is being put back" + terminal.Prefixed(", and ", show.PlansGoOn(now))
}

func (cancelWords) Ended(v client.View) string {
	switch {
	case v.Phase() != api.Cancelled:
		return ""
	case touched(v.Transitions()):
		return "cancelled; the node is back"
	}
	return "cancelled; the node was not touched"
}

// touched reports whether anything was done to the node.
func touched(transitions []api.Transition) bool {
	return slices.ContainsFunc(transitions, func(t api.Transition) bool { return t.Phase == api.Cordoning })
}
