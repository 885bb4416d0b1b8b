package starter

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"drydock/api"
)

func newDone(a *app) *cobra.Command {
	t := &tell{app: a}
	cmd := &cobra.Command{
		Use:   "done NODE",
		Short: "Say that the work on a node is done, so that it is put back",
		Long: `Say that the work on a node is done.

The node has to be Ready, or RequestorFailed after its repair. Where several requestors share the maintenance, the
node is put back when all of them are done. Without --wait the command returns when the maintenance has taken note;
with --wait it waits for the end of the maintenance, when the node is back in service, and fails if it is not.`,
		Example: `  drydock done worker-01
  drydock done worker-01 --wait --timeout 10m
  drydock done worker-01 --requestor network-team`,
		Args: oneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.run(cmd.Context(), args[0], func(f found) message { return doneMessage(a.name, f.requestor) })
		},
	}
	t.register(cmd, "who is done (env "+envRequestor+", default you, or the only one)")
	t.registerWait(cmd)
	return cmd
}

// doneMessage says that requestor is done.
func doneMessage(program, requestor string) message {
	return message{
		name: api.MsgDone,
		payload: func(to addressee) any {
			return api.Done{Message: to.Message, Requestor: requestor, Run: to.run}
		},
		check: func(s *api.Status) (string, error) {
			switch s.Phase {
			case api.Ready, api.RequestorFailed:
			case api.Validating, api.Releasing:
				return fmt.Sprintf("was done already, and is %s", s.Phase), nil
			default:
				return "", notIn(s, "not Ready, so there is nothing to be done with yet", `Wait for it with "%s watch %s".`, program, s.Spec.Node)
			}
			if isDone(s, requestor) {
				return fmt.Sprintf("%s was done already%s", requestor, stillAtWork(s)), nil
			}
			return "", nil
		},
		effect: func(_, now *api.Status) bool {
			return now.Phase != api.Ready && now.Phase != api.RequestorFailed || isDone(now, requestor)
		},
		said: func(now *api.Status) string {
			return fmt.Sprintf("%s is done%s", requestor, stillAtWork(now))
		},
	}
}

func isDone(s *api.Status, requestor string) bool {
	for _, r := range s.Requestors {
		if r.Name == requestor {
			return r.DoneAt != nil
		}
	}
	return false
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
