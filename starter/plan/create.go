package plan

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
)

type createOptions struct {
	app        *invocation.App
	plan       planFlags
	output     terminal.Output
	dryRun     bool
	preflights int
	yes        bool
	wait       bool
	timeout    time.Duration
	skipCheck  bool
}

func newCreate(a *invocation.App) *cobra.Command {
	o := &createOptions{app: a}
	cmd := &cobra.Command{
		Use: "create NAME (-f FILE | NODE... | --selector S | --all)",
		// What other programs and other nouns here call it.
		SuggestFor: []string{"start", "apply", "run", "new"},
		Short:      "Start a plan: many nodes, in an order and at a pace",
		Long: `Start a plan over many nodes. It begins a maintenance for each node in its turn, at most --max-parallel at a time; the
cluster's limits hold besides. The first nodes may be a canary. If more than --max-failures fail, it pauses until
"drydock plan resume". Nodes that come to match a selector are taken in.

With --strategy all-at-once the nodes go together through the stages Idle, Cordon, Drain and Complete ("drydock plan
set-stage"), and their pods leave in the tiers of KEP-4212: no node goes on to the next tier before the others.

The plan is a file, flags, or both: flags override the file. The file may be what "drydock plan status -o kep" prints, which has the
plan's name in it. The flags of "drydock start" say what its maintenances share.
Each node waits Ready for somebody to do the work: with "drydock plan attach NAME -- COMMAND", or by hand and then "drydock done
NODE --requestor plan-NAME". With --work the worker does it.

With --dry-run nothing is started: it shows the waves, what would stop the drains of the first nodes, budgets that nodes
of a wave share, and about how long the plan would take, by the maintenances of the last 30 days.`,
		Example: `  drydock plan create kernel-6.12 --selector pool=gpu --max-parallel 10% --canary 3 --canary-soak 1h --reason "kernel 6.12"
  drydock plan create bios worker-01 worker-02 --on-blocked skip --blocked-after 20m --yes --wait
  drydock plan create firmware --selector rack=r12 --strategy all-at-once --stage Drain --tier 1000 --tier 2000:app=db
  drydock plan create kernel-6.12 --file plan.yaml --dry-run`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 0:
				return checkName(args[0])
			case o.plan.file == "":
				return fmt.Errorf("missing NAME: create NAME (-f FILE | NODE... | --selector S | --all)")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return o.run(cmd.Context(), cmd, "", nil)
			}
			return o.run(cmd.Context(), cmd, args[0], args[1:])
		},
	}
	o.plan.register(cmd)
	o.output.Register(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.dryRun, "dry-run", false, "show what the plan would do, and start nothing")
	f.IntVar(&o.preflights, "preflights", 20, "with --dry-run: look at what would stop the drains of so many nodes, the first of the order")
	f.BoolVar(&o.wait, "wait", false, "wait for the end of the plan")
	invocation.DurationVar(f, &o.timeout, "timeout", 0, "how long --wait waits; 0 is for ever. The plan goes on")
	f.BoolVar(&o.skipCheck, "skip-node-check", false, "do not look whether Kubernetes knows the named nodes")
	invocation.RegisterYes(f, &o.yes)
	return cmd
}

func (o *createOptions) run(ctx context.Context, cmd *cobra.Command, name string, nodes []string) error {
	a := o.app
	if err := o.check(); err != nil {
		return err
	}
	if o.plan.file == "-" && !o.yes && !o.dryRun {
		return exit.UsageError("standard input is the plan, and cannot answer: pass --yes")
	}
	raw, p, err := o.plan.build(a.Stdin, name, nodes)
	if err != nil {
		return err
	}
	name = o.plan.name
	if !o.dryRun {
		if err := a.CanConfirm(o.yes); err != nil {
			return err
		}
	}
	c, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	chosen, err := choose(ctx, a, p)
	if err != nil {
		return err
	}
	if missing := chosen.reach.Missing; len(nodes) > 0 && len(missing) > 0 && !o.skipCheck {
		if err := a.CheckNodes(ctx, missing[:1]); err != nil {
			return err
		}
	}
	if o.dryRun {
		return o.preview(ctx, c, name, p, chosen)
	}
	if err := chosen.has(p); err != nil {
		return err
	}
	if err := o.permitted(ctx, c, name, p); err != nil {
		return err
	}
	announce(a.Stderr, name, p, chosen)
	for _, warning := range aheadOf(ctx, c.Scheduler(), p, chosen, c.Clock()) {
		fmt.Fprintf(a.Stderr, "Warning: %s\n", warning)
	}
	if err := a.Confirm("Start this plan?", "nothing was started", o.yes); err != nil {
		return err
	}
	return o.start(ctx, c, client.PlanOf(c.Client, name), p, raw)
}

// permitted refuses a plan for whose maintenances the worker lacks a permission. They are alike in all that needs one.
func (o *createOptions) permitted(ctx context.Context, c *invocation.Connection, name string, p plan.Plan) error {
	input, err := p.InputOf("any", c.Clock())
	if err != nil {
		return err
	}
	return c.Permitted(ctx, o.app, "plan "+name, api.PermissionsInput{Maintenance: input})
}

func (o *createOptions) check() error {
	if o.dryRun && o.wait {
		return exit.UsageError("--dry-run starts nothing to --wait for")
	}
	if o.preflights < 0 {
		return exit.UsageError("--preflights %d: want 0 or more", o.preflights)
	}
	return invocation.CheckTimeout(o.timeout, o.wait)
}

func (o *createOptions) start(ctx context.Context, c *invocation.Connection, p *client.Plan, of plan.Plan, raw json.RawMessage) error {
	if _, err := p.Start(ctx, raw); err != nil {
		return Explain(c, p.Name, err)
	}
	out := o.app.Messages(&o.output)
	v, err := o.taken(ctx, c, p)
	if err == nil && v.Status != nil {
		err = o.begun(ctx, c, p, of)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: plan started\n", p.Name)
	if o.wait {
		waiting, cancel := exit.WithTimeout(ctx, o.timeout)
		defer cancel()
		if v, err = follow(waiting, c, p, terminal.NewDisplay(out, c.Clock)); err != nil {
			return stopped(waiting, c, p, v, err)
		}
	} else {
		fmt.Fprintln(out, next(c.Program, p.Name, of))
	}
	return cmp.Or(o.output.Write(o.app.Stdout, v.Summary()), endOf(v))
}

// next says how a plan that was started is followed, and who does the work on its nodes.
func next(program, name string, p plan.Plan) string {
	text := fmt.Sprintf("Follow it with \"%s plan status %s --watch\". ", program, name)
	if p.Together() {
		return text + fmt.Sprintf("Its nodes go together: \"%s plan set-stage %s STAGE\", and Complete gives them back.", program, name)
	}
	var shared struct {
		Work string `json:"work"`
	}
	if err := json.Unmarshal(p.Maintenance, &shared); err == nil && shared.Work != "" {
		return text + fmt.Sprintf("The worker does %s on each node that is Ready.", shared.Work)
	}
	return text + fmt.Sprintf("Each node that is Ready waits for its work: \"%s plan attach %s -- COMMAND\", or by hand and then \"%s done NODE --requestor %s\".",
		program, name, program, cmp.Or(p.Requestor, plan.RequestorOf(name)))
}

// takenWithin bounds the wait for a worker to read the plan, which takes it a moment.
const takenWithin = 10 * time.Second

// taken waits until a worker has read the plan. One that it refuses is an error; where there is no worker it warns.
func (o *createOptions) taken(ctx context.Context, c *invocation.Connection, p *client.Plan) (client.PlanView, error) {
	waiting, cancel := exit.WithTimeout(ctx, takenWithin)
	defer cancel()
	var last client.PlanView
	err := p.Watch(waiting, api.PlanStatusRequest{Limit: 1}, func(v client.PlanView, err error) bool {
		if err != nil {
			return false
		}
		last = v
		noWorker := v.Unanswered != nil && c.HasWorker(waiting) != nil
		return !v.Running() || noWorker || v.Status != nil && len(v.Status.Events) > 0
	})
	switch {
	case ctx.Err() != nil:
		return last, stopped(ctx, c, p, last, context.Cause(ctx))
	case last.Refused:
		return last, exit.UsageError("plan %s was refused: %s", p.Name, last.Failure)
	case err != nil:
		fmt.Fprintf(o.app.Stderr, "Warning: no worker has read the plan within %s: see the log of drydock-worker\n", takenWithin)
	case last.Running() && last.Unanswered != nil:
		fmt.Fprintf(o.app.Stderr, "Warning: %s\n", terminal.OneLine(last.Unanswered.Error()))
	}
	return last, nil
}

// answeredWithin bounds the wait for the lockstep of all plans to take the stage in which a plan begins.
const answeredWithin = 5 * time.Second

// begun waits until it is known what becomes of the stage in which a plan begins. One that is refused is an error: the plan is
// there, and has touched no node. An answer that does not come in time is waited for by the plan.
func (o *createOptions) begun(ctx context.Context, c *invocation.Connection, p *client.Plan, of plan.Plan) error {
	if !of.Together() || of.Stage == plan.Idle {
		return nil
	}
	waiting, cancel := exit.WithTimeout(ctx, answeredWithin)
	defer cancel()
	why := ""
	_ = p.Watch(waiting, api.PlanStatusRequest{Limit: 1}, func(v client.PlanView, err error) (settled bool) {
		if err != nil || v.Status == nil {
			return !v.Running()
		}
		why, settled = stageRefused(v.Status)
		return settled || !v.Running()
	})
	if why == "" {
		return nil
	}
	return exit.Hint(exit.WithCode(exit.Failed, fmt.Errorf("plan %s has not begun, and is in stage %s: %s", p.Name, plan.Idle, why)),
		`"%s plan set-stage %s %s" tries again, "%s plan cancel %s" ends it.`, c.Program, p.Name, of.Stage, c.Program, p.Name)
}

// stageRefused says why a plan is not in the stage in which it was to begin, once that is settled.
func stageRefused(s *api.PlanStatus) (why string, settled bool) {
	switch st := s.Stages; {
	case st == nil:
		return "", false
	case st.Stage == plan.Idle:
		return s.Failure, true
	default:
		return "", st.Answered >= st.Revision
	}
}

func endOf(v client.PlanView) error {
	if v.Running() {
		return nil
	}
	switch phase := v.Phase(); phase {
	case api.PlanCompleted:
		return nil
	case api.PlanCancelled:
		return exit.WithCode(exit.Cancelled, fmt.Errorf("plan %s ended %s%s", v.Name, phase, terminal.Colon(v.Message())))
	default:
		return exit.WithCode(exit.Failed, fmt.Errorf("plan %s ended %s%s", v.Name, phase, terminal.Colon(v.Message())))
	}
}

// waves are the names of a choice's nodes, in the groups in which they go if none of them fails.
func waves(p plan.Plan, c choice, now time.Time) [][]string {
	if p.Together() && len(c.nodes) > 0 {
		return [][]string{c.names()}
	}
	nodes, _, _ := plan.Match(p.Strategy.Order, nil, c.nodes, now)
	return plan.Waves(p.Strategy, nodes)
}
