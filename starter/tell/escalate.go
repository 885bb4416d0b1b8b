package tell

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/show"
	"drydock.dev/drydock/starter/terminal"
)

type escalateOptions struct {
	messageCommand
	do  string
	yes bool
}

func newEscalate(a *invocation.App) *cobra.Command {
	o := &escalateOptions{messageCommand: messageCommand{app: a}}
	cmd := &cobra.Command{
		Use:   "escalate NODE --comment WHY",
		Short: "Take the next rung of a drain's escalation now, or another one",
		Long: `Take the next rung of the escalation of a Draining node now, without waiting for its time, or the rung that --do
names, which need not be in the maintenance's plan. "drydock status" shows which rungs were taken and which one is next.

  notify        say on the node that it does not empty
  bypassBudget  delete the pods that disruption budgets protect
  kill          delete pods without their grace period, whatever their budgets say
  giveBack      put the node back into service and try again later
  fail          end the maintenance as Failed

No rung consents to the loss of pods without a controller or of emptyDir data: that is "drydock consent", or
"drydock skip-pod" for a pod that is to stay.

bypassBudget, kill and fail are asked about first; --yes takes the place of the answer, and is needed where nobody is
there to give one.`,
		Example: `  drydock escalate worker-01 --comment "change window ends at 18:00"
  drydock escalate worker-01 --do bypassBudget --comment "team db agrees, INC-4711"
  drydock escalate worker-01 --do kill --yes --comment "the node is on fire"`,
		Args: invocation.OneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return o.run(cmd.Context(), args[0], func(client.Found) invocation.Message {
				return escalateMessage(a.Name, a.Clock, o.do, func(question string) error {
					return a.Confirm(question, "nothing was sent", o.yes)
				})
			})
		},
	}
	o.register(cmd, invocation.OfMaintenance)
	cmd.Flags().StringVar(&o.do, "do", "", "the rung to take: "+strings.Join(spec.Rungs, ", ")+" (default the next one)")
	invocation.RegisterYes(cmd.Flags(), &o.yes)
	return cmd
}

// check refuses what can be refused before anything is looked at.
func (o *escalateOptions) check() error {
	switch {
	case o.do != "" && !slices.Contains(spec.Rungs, o.do):
		return exit.UsageError("--do %q: want one of %s", o.do, strings.Join(spec.Rungs, ", "))
	case strings.TrimSpace(o.comment) == "":
		return exit.UsageError("missing --comment: it is recorded with the rung")
	case dangerOf(o.do) != "":
		return o.app.CanConfirm(o.yes)
	}
	return nil
}

// dangerOf says what a rung costs; it is empty for those that cost nothing.
func dangerOf(rung string) string {
	switch rung {
	case spec.BypassBudget:
		return "bypassBudget deletes the pods that disruption budgets protect. Do it"
	case spec.Kill:
		return "kill deletes the pods without their grace period, whatever their budgets say. Do it"
	case spec.Fail:
		return "fail gives up and ends the maintenance as Failed. Do it"
	}
	return ""
}

func escalated(s *api.Status, now time.Time) string {
	switch {
	case s.Phase == api.Pending && s.NextAttemptAt != nil:
		return "given back; next attempt at " + terminal.Clock(*s.NextAttemptAt, now)
	case s.Phase != api.Draining || len(s.Escalation) == 0:
		return "is " + string(s.Phase)
	}
	text := s.Escalation[len(s.Escalation)-1].Do + " is taken"
	if s.Force != "" {
		text += ": the drain " + show.ForceText(s.Force)
	}
	if next := show.NextRungText(s, now); next != "" {
		text += "; next is " + next
	}
	return text
}

func escalateMessage(program string, now func() time.Time, do string, agree func(question string) error) invocation.Message {
	return invocation.Message{Message: client.Escalate(do), Agree: agree, Words: escalateWords{program: program, do: do, now: now()}}
}

type escalateWords struct {
	invocation.Plain
	program string
	do      string
	now     time.Time
}

func (w escalateWords) Already(s *api.Status, _ string) string {
	return "the drain already " + show.ForceText(s.Force)
}

func (w escalateWords) Next(s *api.Status) string {
	_, left := client.RungToTake(s)
	switch {
	case s.Phase != api.Draining:
		return fmt.Sprintf(`"%s status %s" says what it waits for.`, w.program, s.Spec.Node)
	case w.do == "" && !left:
		return fmt.Sprintf("Name one with --do: %s.", strings.Join(spec.Rungs, ", "))
	default:
		return fmt.Sprintf("Take another rung with --do: %s, %s or %s.", spec.Notify, spec.GiveBack, spec.Fail)
	}
}

func (w escalateWords) Danger(s *api.Status) string {
	next, _ := client.RungToTake(s)
	if danger := dangerOf(cmp.Or(w.do, next.Do)); danger != "" {
		return fmt.Sprintf("%s: %s?", s.Spec.Node, danger)
	}
	return ""
}

func (w escalateWords) Said(s *api.Status) string { return escalated(s, w.now) }
