package invocation

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/terminal"
)

// RegisterYes adds the flag that takes the place of an answer.
func RegisterYes(flags *pflag.FlagSet, yes *bool) {
	flags.BoolVarP(yes, "yes", "y", false, "do not ask")
}

// CanConfirm reports whether a question would be answered: by --yes, or by somebody at the terminal.
func (a *App) CanConfirm(yes bool) error {
	if _, ok := terminal.Detect(a.Stdin); !ok && !yes {
		return exit.UsageError("no terminal to confirm on: pass --yes")
	}
	return nil
}

// Confirm asks before what is not easily undone. It is an error unless the answer is yes; untouched says what has not
// happened then.
func (a *App) Confirm(question, untouched string, yes bool) error {
	if err := a.CanConfirm(yes); err != nil || yes {
		return err
	}
	fmt.Fprintf(a.Stderr, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(a.Stdin).ReadString('\n')
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return exit.WithCode(exit.Cancelled, fmt.Errorf("not confirmed; %s", untouched))
	}
	return nil
}
