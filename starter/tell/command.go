// Package tell has the commands that tell a maintenance something: one for each message.
package tell

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/heldby"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
)

// row declares the command of a message.
type row struct {
	// use begins with the verb, which stands below a noun where there is one; the words in capitals that follow are its arguments.
	noun, use string
	// message is the name of the message; empty if that is the verb.
	message              string
	short, long, example string
	// form makes the payload.
	form form
	// why is the error of a missing comment; empty if there need be none.
	why string
	// next says what to do where the maintenance refuses the message. PROGRAM and NODE stand for those.
	next string
	// ends is what the message says that ends what may be somebody else's, so that it asks first; shared: for one of several requestors.
	ends   string
	shared bool
	// asks: the form asks before what is not easily undone.
	asks bool
	// awaits is the end that --wait waits for; empty if the command has no such flag.
	awaits api.Phase
	// whose is the help of --requestor, where that is not whose maintenance it is.
	whose string
}

// form makes a payload of flags and arguments. A command has a form of its own, in which its flags are.
type form interface {
	register(f *pflag.FlagSet)
	// check refuses what can be refused before anything is looked at.
	check(o *order) error
	// payload may look at the maintenance. If the question is not empty, the message is sent once somebody has agreed to it.
	payload(ctx context.Context, o *order) (payload any, question string, err error)
}

// Commands are a command for each message to a maintenance, below its noun where it has one.
func Commands(a *invocation.App) []*cobra.Command {
	var all []*cobra.Command
	below := map[string][]*cobra.Command{}
	for _, r := range rows() {
		below[r.noun] = append(below[r.noun], (&order{row: r, app: a}).command())
	}
	for _, noun := range nouns {
		verbs := below[noun.name]
		all = append(all, invocation.Noun(&cobra.Command{Use: noun.name, Short: noun.short, Long: noun.long, Example: verbs[0].Example}, verbs...))
	}
	return append(below[""], all...)
}

func (r row) verb() string {
	verb, _, _ := strings.Cut(r.use, " ")
	return verb
}

func (r row) name() string { return cmp.Or(r.message, r.verb()) }

// order is a command under way: what its flags say, and the maintenance that it is about.
type order struct {
	row
	app                *invocation.App
	args               []string
	output             terminal.Output
	requestor, comment string
	yes, wait          bool
	timeout            time.Duration
	// of is the flag that says whose maintenance it is, where that is not --requestor.
	of    string
	conn  *invocation.Connection
	found client.Found
	flags *pflag.FlagSet
}

func (o *order) command() *cobra.Command {
	cmd := &cobra.Command{
		Use: o.use, Short: o.short, Long: o.long, Example: o.example, Args: arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.args = args
			return o.run(cmd.Context())
		},
	}
	if slices.Contains(v1alpha1.Messages(), o.name()) {
		cmd.Long += "\n\n" + aboutObjects
	}
	f := cmd.Flags()
	o.flags = f
	o.output.Register(cmd)
	f.StringVarP(&o.requestor, "requestor", "r", "", cmp.Or(o.whose, invocation.OfMaintenance))
	f.StringVar(&o.comment, "comment", "", "why, recorded with the message")
	if o.asks {
		invocation.RegisterYes(f, &o.yes)
	} else if o.ends != "" {
		f.BoolVarP(&o.yes, "yes", "y", false, "do not ask where the maintenance is somebody else's")
	}
	if o.awaits != "" {
		f.BoolVar(&o.wait, "wait", false, "wait for the end of the maintenance: the node is back in service")
		invocation.DurationVar(f, &o.timeout, "timeout", 0, "how long --wait waits; 0 is for ever")
	}
	o.form.register(f)
	return cmd
}

func arguments(cmd *cobra.Command, args []string) error {
	use, _, _ := strings.Cut(cmd.Use, " --")
	use, _, _ = strings.Cut(use, " (")
	wanted := strings.Fields(use)[1:]
	switch {
	case len(args) < len(wanted):
		missing := strings.Join(wanted[len(args):], " and ")
		return fmt.Errorf("missing %s: %s", strings.Replace(missing, "POD", "POD (NAMESPACE/NAME)", 1), use)
	case len(args) > len(wanted) && len(wanted) == 1:
		return fmt.Errorf("one node at a time, not %s", strings.Join(args, ", "))
	case len(args) > len(wanted):
		return fmt.Errorf("one %s of one node at a time, not %s", strings.ToLower(wanted[1]), strings.Join(args, ", "))
	}
	return nil
}

func (o *order) node() string { return o.args[0] }

// status looks at the maintenance. It is nil if nobody answers: sending the message says why.
func (o *order) status(ctx context.Context) (*api.Status, error) {
	v, err := o.conn.Observe(ctx, o.found.Maintenance)
	if err != nil || v.Unanswered != nil {
		return nil, o.conn.Explain(err)
	}
	return v.Status, nil
}

func (o *order) check() error {
	if err := invocation.CheckTimeout(o.timeout, o.wait); err != nil {
		return err
	}
	if err := o.form.check(o); err != nil {
		return err
	}
	if o.why != "" && strings.TrimSpace(o.comment) == "" {
		return exit.UsageError("%s", o.why)
	}
	return nil
}

// run finds the maintenance of a node, sends the message, and reports what it answers.
func (o *order) run(ctx context.Context) (err error) {
	if object, is := objectOf(o.node()); is {
		return o.annotate(ctx, object)
	}
	if err := o.check(); err != nil {
		return err
	}
	if o.conn, err = o.app.Connect(ctx); err != nil {
		return err
	}
	defer o.conn.Close()
	var note string
	if o.found, note, err = o.conn.FindByFlag(ctx, o.node(), o.requestor, cmp.Or(o.of, "--requestor")); err != nil {
		return heldby.WhyNone(ctx, o.conn, o.app.Name, err)
	}
	m, err := o.message(ctx)
	if err != nil {
		return err
	}
	out := o.app.Messages(&o.output)
	if note != "" {
		fmt.Fprintln(out, terminal.OneLine(note))
	}
	said, err := o.conn.SendMessage(ctx, o.found.Maintenance, m)
	if err != nil {
		return o.conn.Stopped(exit.OrStopped(ctx, err), client.View{Maintenance: o.found.Maintenance}, "the effect")
	}
	fmt.Fprintf(out, "%s: %s\n", o.node(), terminal.OneLine(terminal.Words(said, o.conn.Clock())))
	return o.report(ctx)
}

// message is what is sent, once everybody has agreed whom it concerns.
func (o *order) message(ctx context.Context) (m invocation.Message, err error) {
	payload, question, err := o.form.payload(ctx, o)
	if err != nil {
		return m, err
	}
	if question != "" {
		if err := o.app.Confirm(o.node()+": "+question, "nothing was sent", o.yes); err != nil {
			return m, err
		}
	}
	if o.ends != "" {
		owned := invocation.Owned{Says: o.ends, Named: o.requestor != "", Shared: o.shared, Yes: o.yes}
		if err := o.app.AgreeOnMaintenance(ctx, o.conn, o.found, owned); err != nil {
			return m, err
		}
	}
	next := strings.NewReplacer("PROGRAM", o.app.Name, "NODE", o.node()).Replace(o.next)
	return invocation.Message{Name: o.name(), Payload: payload, Comment: o.comment, Next: next}, nil
}

// report waits for the end where that is asked for, and shows the maintenance to programs.
func (o *order) report(ctx context.Context) (err error) {
	var v client.View
	switch {
	case o.wait:
		if v, err = o.awaitEnd(ctx); err != nil {
			return o.conn.Stopped(err, v, "the end of the maintenance of "+o.node())
		}
	case !o.output.Table():
		if v, err = o.conn.Observe(ctx, o.found.Maintenance); err != nil {
			return o.conn.Explain(err)
		}
	}
	return o.output.Write(o.app.Stdout, v.Summary())
}

// awaitEnd waits for the end. It is an error only if the wait is cut short.
func (o *order) awaitEnd(ctx context.Context) (client.View, error) {
	ctx, cancel := exit.WithTimeout(ctx, o.timeout)
	defer cancel()
	m := o.found.Maintenance
	w := &invocation.Waiter{Conn: o.conn, Show: o.app.Waiting(o.app.Messages(&o.output))}
	w.Show.Say("Waiting for the end of the maintenance of %s.", m.Node)
	defer w.Show.Settle(m.WorkflowID)
	return w.Await(ctx, m, client.Ends(o.awaits))
}
