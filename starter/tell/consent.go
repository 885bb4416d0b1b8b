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
)

type consentOptions struct {
	messageCommand
	force, deleteData bool
	pods              []string
	yes               bool
}

func newConsent(a *invocation.App) *cobra.Command {
	o := &consentOptions{messageCommand: messageCommand{app: a}}
	cmd := &cobra.Command{
		Use:   "consent NODE (--force | --delete-emptydir-data) --comment WHY",
		Short: "Let a drain under way lose pods or data that it was not allowed to",
		Long: `Let the drain of a Draining node lose what "drydock start" was not told that it may: pods that no controller re-creates
(--force), the data in emptyDir volumes (--delete-emptydir-data), or both. "drydock status" shows which consent a blocked
pod lacks.

It holds for the pods of --pod, or for all pods of the node. Budgets are obeyed all the same. It is asked about first;
--yes takes the place of the answer. It cannot be taken back.`,
		Example: `  drydock consent worker-01 --pod batch/crawler-0 --force --comment "may be lost, says team search"
  drydock consent worker-01 --delete-emptydir-data --comment "caches only, INC-4711" --yes`,
		Args: invocation.OneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return o.run(cmd.Context(), args[0], func(client.Found) invocation.Message {
				return o.message(func(question string) error { return a.Confirm(question, "nothing was sent", o.yes) })
			})
		},
	}
	o.register(cmd, invocation.OfMaintenance)
	f := cmd.Flags()
	f.BoolVar(&o.force, "force", false, "consent to losing pods that no controller re-creates")
	f.BoolVar(&o.deleteData, "delete-emptydir-data", false, "consent to losing the data in emptyDir volumes")
	f.StringSliceVar(&o.pods, "pod", nil, "NAMESPACE/NAME of a pod that it holds for (repeatable, default all pods)")
	invocation.RegisterYes(f, &o.yes)
	return cmd
}

// check refuses what can be refused before anything is looked at.
func (o *consentOptions) check() error {
	if !o.force && !o.deleteData {
		return exit.UsageError("missing what to consent to: --force, --delete-emptydir-data or both")
	}
	for _, pod := range o.pods {
		if spec.PodName(pod) != nil {
			return exit.UsageError("--pod %q: want NAMESPACE/NAME", pod)
		}
	}
	if strings.TrimSpace(o.comment) == "" {
		return exit.UsageError("missing --comment: it is recorded with the consent")
	}
	return o.app.CanConfirm(o.yes)
}

func (o *consentOptions) message(agree func(question string) error) invocation.Message {
	return invocation.Message{Message: client.Consent(o.force, o.deleteData, o.pods), Agree: agree, Words: consentWords{o: o}}
}

type consentWords struct {
	invocation.Plain
	o *consentOptions
}

func (w consentWords) Next(s *api.Status) string {
	return fmt.Sprintf(`"%s status %s" says what it waits for.`, w.o.app.Name, s.Spec.Node)
}

func (w consentWords) Danger(s *api.Status) string {
	return fmt.Sprintf("%s: %s will be lost for good. Consent?", s.Spec.Node, w.o.lost())
}

func (w consentWords) Said(now *api.Status) string {
	if now.Phase != api.Draining {
		return "is " + string(now.Phase)
	}
	return "the drain may lose " + w.o.lost()
}

// lost is what the consent gives up.
func (o *consentOptions) lost() string {
	var what []string
	if o.force {
		what = append(what, "pods that nobody re-creates")
	}
	if o.deleteData {
		what = append(what, "emptyDir data")
	}
	text := strings.Join(what, " and ")
	if len(o.pods) > 0 {
		return text + " (" + strings.Join(o.pods, ", ") + ")"
	}
	return text
}
