package starter

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// registerYes adds the flag that takes the place of an answer.
func registerYes(flags *pflag.FlagSet, yes *bool) {
	flags.BoolVarP(yes, "yes", "y", false, "do not ask")
}

// canConfirm tells whether a question would be answered: by --yes, or by somebody at the terminal.
func (a *app) canConfirm(yes bool) error {
	if _, ok := terminal(a.Stdin); !ok && !yes {
		return usageError("nobody is there to confirm it: say --yes")
	}
	return nil
}

// confirm asks before what is not easily undone. It is an error unless the answer is yes; untouched says what has not
// happened then.
func (a *app) confirm(question, untouched string, yes bool) error {
	if err := a.canConfirm(yes); err != nil || yes {
		return err
	}
	fmt.Fprintf(a.Stderr, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(a.Stdin).ReadString('\n')
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return withCode(exitCancelled, fmt.Errorf("not confirmed; %s", untouched))
	}
	return nil
}
