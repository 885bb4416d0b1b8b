package starter

import (
	"cmp"

	"github.com/spf13/cobra"

	auditfile "drydock.dev/drydock/audit/file"
	"drydock.dev/drydock/rules/record"
	"drydock.dev/drydock/secret"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
)

func newAudit(a *invocation.App) *cobra.Command {
	return invocation.Noun(&cobra.Command{
		Use:   "audit",
		Short: "Check the audit records that workers wrote",
		Long: `Workers write one audit record of every maintenance to the sinks that their configuration names (audit). These commands
are for the files of such a sink; drydock report makes a report of records.`,
		Example: "  drydock audit verify /var/lib/drydock/audit.jsonl",
	}, newAuditVerify(a))
}

type verifyOptions struct {
	app      *invocation.App
	output   terminal.Output
	keyFiles []string
	expected []string
}

func newAuditVerify(a *invocation.App) *cobra.Command {
	o := &verifyOptions{app: a}
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Check that no audit record is missing, changed, repeated or out of order",
		Long: `Check the file of a worker's audit sink, with its rotated ones next to it. Every record has a number and the hash of the
record before it, so that one which is missing, changed, repeated or out of order shows; so does a line that is no record.

The records cannot tell how many there were: that the last ones were cut off shows only to somebody who has noted the
number of the last record, or its hash, and gives it as --expect-last. That the first ones are not there is no finding,
since old files are removed; the first number is shown.

Whoever can write to the file can write a whole chain anew. With a key (audit.key in the worker's configuration) every
record proves that its writer had the key, and --key-file checks that. After a change of the key name both.

Exit code 0: nothing is wrong; 1: something is, or the file cannot be read; 2: usage.`,
		Example: `  drydock audit verify /var/lib/drydock/audit.jsonl
  drydock audit verify audit.jsonl --key-file audit.key --expect-last 1207
  drydock audit verify audit.jsonl -o json | jq '.chains[].hash'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.UsageError("one FILE is wanted: audit verify FILE")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return o.run(args[0]) },
	}
	o.output.Register(cmd)
	cmd.Flags().StringArrayVar(&o.keyFiles, "key-file", nil, "a file with the key that records are to be proven by (repeatable)")
	cmd.Flags().StringArrayVar(&o.expected, "expect-last", nil, "the number or the hash of a record that has to be there: the last one that is known (repeatable)")
	return cmd
}

func (o *verifyOptions) run(path string) error {
	var expected []record.Expected
	for _, text := range o.expected {
		e, err := record.ParseExpected(text)
		if err != nil {
			return exit.UsageError("--expect-last: %w", err)
		}
		expected = append(expected, e)
	}
	var keys [][]byte
	for _, file := range o.keyFiles {
		key, err := (secret.Value{File: file}).Read()
		if err == nil {
			err = record.CheckKey([]byte(key))
		}
		if err != nil {
			return exit.UsageError("--key-file: %w", err)
		}
		keys = append(keys, []byte(key))
	}
	verdict, err := auditfile.Verify(path, keys, expected...)
	if err != nil {
		return err
	}
	return cmp.Or(o.output.Write(o.app.Stdout, verdict, verdict.View()), exit.Unless(verdict.Intact, exit.Failed))
}
