package starter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drydock/api"
	"drydock/client"
	"drydock/rules/period"
	"drydock/rules/spec"
)

type escalateOptions struct {
	tell
	do  string
	yes bool
}

func newEscalate(a *app) *cobra.Command {
	o := &escalateOptions{tell: tell{app: a}}
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

No rung consents to the loss of pods without a controller or of emptyDir data: that is --force and
--delete-emptydir-data of "drydock start", or "drydock skip-pod" for one pod.

bypassBudget, kill and fail are asked about first; --yes takes the place of the answer, and is needed where nobody is
there to give one.`,
		Example: `  drydock escalate worker-01 --comment "change window ends at 18:00"
  drydock escalate worker-01 --do bypassBudget --comment "team db agrees, INC-4711"
  drydock escalate worker-01 --do kill --yes --comment "the node is on fire"`,
		Args: oneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return o.run(cmd.Context(), args[0], func(client.Found) message {
				return escalateMessage(a.name, a.now, o.do, func(question string) error {
					return a.confirm(question, "nothing was sent", o.yes)
				})
			})
		},
	}
	o.register(cmd, ofMaintenance)
	cmd.Flags().StringVar(&o.do, "do", "", "the rung to take: "+strings.Join(spec.Rungs, ", ")+" (default the next one)")
	registerYes(cmd.Flags(), &o.yes)
	return cmd
}

// check refuses what can be refused before anything is looked at.
func (o *escalateOptions) check() error {
	switch {
	case o.do != "" && !slices.Contains(spec.Rungs, o.do):
		return usageError("--do %q: want one of %s", o.do, strings.Join(spec.Rungs, ", "))
	case strings.TrimSpace(o.comment) == "":
		return usageError("say why with --comment: it is recorded with the rung")
	case dangerOf(o.do) != "":
		return o.app.canConfirm(o.yes)
	}
	return nil
}

// forceText says what the rungs taken allow the drain to do; it is empty where that is nothing.
func forceText(force string) string {
	switch force {
	case spec.BypassBudget:
		return "deletes pods whatever their budgets say"
	case spec.Kill:
		return "deletes pods without their grace period, whatever their budgets say"
	}
	return force
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
		return "is given back; the next attempt is at " + clock(*s.NextAttemptAt, now)
	case s.Phase != api.Draining || len(s.Escalation) == 0:
		return "is " + string(s.Phase)
	}
	text := s.Escalation[len(s.Escalation)-1].Do + " is taken"
	if s.Force != "" {
		text += ": the drain " + forceText(s.Force)
	}
	if next := nextRungText(s, now); next != "" {
		text += "; next is " + next
	}
	return text
}

// rungDue is when the time of a rung comes. The clock runs from the cordon, or where pods were let complete first,
// from the end of that wait.
func rungDue(s *api.Status, rung spec.Rung) (due time.Time, known bool) {
	began := s.CordonedAt
	if s.Spec.WaitForPodCompletion != nil {
		began = &s.Since
	}
	if s.Phase != api.Draining || began == nil {
		return time.Time{}, false
	}
	return began.Add(rung.After.Std()), true
}

// nextRungText is the next rung with the time until it is due; it is empty where none is left.
func nextRungText(s *api.Status, now time.Time) string {
	rung, left := client.NextRung(s)
	due, known := rungDue(s, rung)
	switch {
	case !left || !known:
		return ""
	case !due.After(now):
		return "due now: " + rung.Do
	default:
		return fmt.Sprintf("in %s: %s", period.Age(due.Sub(now)), rung.Do)
	}
}

func escalateMessage(program string, now func() time.Time, do string, agree func(question string) error) message {
	return message{
		Message: client.Escalate(do),
		already: func(s *api.Status, _ string) string { return "the drain already " + forceText(s.Force) },
		next: func(s *api.Status) string {
			_, left := client.NextRung(s)
			switch {
			case s.Phase != api.Draining:
				return fmt.Sprintf(`"%s status %s" says what it waits for.`, program, s.Spec.Node)
			case do == "" && !left:
				return fmt.Sprintf("Name one with --do: %s.", strings.Join(spec.Rungs, ", "))
			default:
				return fmt.Sprintf("Take another rung with --do: %s, %s or %s.", spec.Notify, spec.GiveBack, spec.Fail)
			}
		},
		danger: func(s *api.Status) string {
			next, _ := client.NextRung(s)
			if danger := dangerOf(cmp.Or(do, next.Do)); danger != "" {
				return fmt.Sprintf("%s: %s?", s.Spec.Node, danger)
			}
			return ""
		},
		agree: agree,
		said:  func(s *api.Status) string { return escalated(s, now()) },
	}
}
