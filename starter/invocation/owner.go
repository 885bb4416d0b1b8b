package invocation

import (
	"context"
	"fmt"
	"strings"

	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/terminal"
)

// Owned asks before a message ends what is somebody else's.
type Owned struct {
	// Says is what is about to be said, such as "done".
	Says string
	// Named: a flag names whose maintenance it is.
	Named bool
	// Shared: the message is about the one who speaks alone, and nobody is asked who shares the maintenance.
	Shared bool
	Yes    bool
}

// AgreeOnMaintenance asks before a message ends what is somebody else's: a maintenance neither the user's own nor started by the user.
func (a *App) AgreeOnMaintenance(ctx context.Context, c *Connection, f client.Found, o Owned) error {
	if f.Requestor == c.self || o.Shared && f.For == c.self {
		return nil
	}
	starter, err := c.Starter(ctx, f.Maintenance)
	if err != nil {
		return c.Explain(err)
	}
	// Who claims to be another than the user may share the account with many, and has to name whom they mean.
	if samePerson(starter, c.By()) && (o.Named || !c.claimed) {
		return nil
	}
	whose := fmt.Sprintf("%s is in maintenance for %s%s, and you are %s", f.Node, f.Requestor, startedBy(starter), c.self)
	if err := a.CanConfirm(o.Yes); err != nil {
		return fmt.Errorf("%s: %w", whose, err)
	}
	v, err := c.Observe(ctx, f.Maintenance)
	if err != nil {
		return c.Explain(err)
	}
	return a.Confirm(whose+terminal.Prefixed("; ", v.Status.PlansGoOn())+". Say "+o.Says+" all the same?", "nothing was sent", o.Yes)
}

func startedBy(starter string) string {
	if starter == "" {
		return ""
	}
	return ", started by " + starter
}

// samePerson compares identities of the form user@host by the user, who may sit at another machine today.
func samePerson(a, b string) bool {
	user := func(identity string) string {
		name, _, _ := strings.Cut(identity, "@")
		return name
	}
	name := user(a)
	return name != "" && name != unknownUser && name == user(b)
}

// AgreeOnPlan asks before a message ends a plan that is somebody else's: neither for the user nor started by the user.
func (a *App) AgreeOnPlan(c *Connection, name, requestor, starter string, o Owned) error {
	if requestor == c.self || samePerson(starter, c.By()) {
		return nil
	}
	whose := fmt.Sprintf("plan %s is for %s%s, and you are %s", name, requestor, startedBy(starter), c.self)
	if err := a.CanConfirm(o.Yes); err != nil {
		return fmt.Errorf("%s: %w", whose, err)
	}
	return a.Confirm(whose+". Say "+o.Says+" all the same?", "nothing was sent", o.Yes)
}
