package tell

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/show"
	"drydock.dev/drydock/starter/terminal"
)

func newDone(a *invocation.App) *cobra.Command {
	t := &messageCommand{app: a}
	cmd := &cobra.Command{
		Use:   "done NODE",
		Short: "Mark the work on a node done, so that it is put back",
		Long: `Say that the work on a node is done.

The node has to be Ready, or RequestorFailed after its repair. Where several requestors share the maintenance, the
node is put back when all of them are done. Without --wait the command returns when the maintenance has taken note;
with --wait it waits for the end of the maintenance, when the node is back in service, and fails if it is not.

With --requestor plans it puts one node back before the plans of strategy all-at-once that share its maintenance are
completed: they go on without it.

` + asksFirst,
		Example: `  drydock done worker-01
  drydock done worker-01 --wait --timeout 10m
  drydock done worker-01 --requestor network-team`,
		Args: invocation.OneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.run(cmd.Context(), args[0], func(f client.Found) invocation.Message { return DoneMessage(a.Name, f.For) })
		},
	}
	t.register(cmd, "who is done (env "+invocation.EnvRequestor+", default you, or the only one)")
	t.registerOwned(cmd, api.MsgDone, true)
	t.registerWait(cmd)
	return cmd
}

// stillAtWork names the requestors that keep the node out of service.
func stillAtWork(s *api.Status) string {
	var names []string
	if s != nil {
		for _, r := range s.Requestors {
			if r.DoneAt == nil {
				names = append(names, r.Name)
			}
		}
	}
	if len(names) == 0 || s.Phase != api.Ready && s.Phase != api.RequestorFailed {
		return ""
	}
	return "; the node is put back when " + strings.Join(names, " and ") + " is done too"
}

// DoneMessage says that requestor is done.
func DoneMessage(program, requestor string) invocation.Message {
	return invocation.Message{Message: client.Done(requestor), Words: doneWords{program: program, requestor: requestor}}
}

type doneWords struct {
	invocation.Plain
	program   string
	requestor string
}

func (doneWords) Already(s *api.Status, text string) string { return text + stillAtWork(s) }

func (w doneWords) Next(s *api.Status) string {
	return fmt.Sprintf(`Wait for it with "%s watch %s".`, w.program, s.Spec.Node)
}

func (w doneWords) Said(now *api.Status) string {
	if plans := show.PlansGoOn(now); w.requestor == api.PlansRequestor && plans != "" {
		return "done; " + plans + stillAtWork(now)
	}
	return fmt.Sprintf("%s is done%s", w.requestor, stillAtWork(now))
}

func (w doneWords) Ended(v client.View) string {
	if v.Phase() != api.Completed {
		return ""
	}
	return terminal.Prefixed("done, and the node is back; ", show.PlansGoOn(v.Status))
}
