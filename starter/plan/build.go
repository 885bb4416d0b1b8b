package plan

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"drydock/rules/plan"
	"drydock/starter/exit"
	"drydock/starter/input"
)

// planFlags describe a plan: its file, which nodes it chooses, its strategy, and what its maintenances share.
type planFlags struct {
	file string
	// name is that of the plan which was built: as it was given, or as KEP-4212's object in the file has it.
	name     string
	selector string
	all      bool
	exclude  []string
	strategy strategyFlags
	shared   input.Flags
}

// planFields are the fields of a maintenance's input that a plan has itself, by their flags.
var planFields = map[string]string{
	"requestor": "requestor", "reason": "reason", "ticket": "ticket", "owner": "owner", "notify": "notify", "window": "windows",
}

func (p *planFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&p.file, "file", "f", "", "YAML or JSON file with the plan, or with KEP-4212's NodeMaintenance, - for standard input; flags go over it")
	p.registerNodes(cmd)
	p.strategy.register(cmd)
	p.shared.RegisterFields(cmd)
	f.Lookup("requestor").Usage = "who asks in the plan's maintenances (default plan-NAME)"
	f.Lookup("requestor").DefValue = ""
}

// registerNodes adds the flags that choose nodes.
func (p *planFlags) registerNodes(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&p.selector, "selector", "l", "", "label selector of the nodes; those that come to match are taken in")
	f.BoolVar(&p.all, "all", false, "all nodes of the cluster, control-plane nodes included")
	f.StringSliceVar(&p.exclude, "exclude", nil, "leave this node alone, whatever chooses it (repeatable)")
}

// build makes the plan's input of the file and the flags over it, and reads it as the workflow will.
func (p *planFlags) build(flags *pflag.FlagSet, stdin io.Reader, name string, nodes []string) (json.RawMessage, plan.Plan, error) {
	fields := map[string]any{}
	if p.file != "" {
		var err error
		if fields, err = input.ReadObject(p.file, stdin); err != nil {
			return nil, plan.Plan{}, err
		}
		if plan.IsKEP(fields) {
			named, converted, err := plan.FromKEP(fields)
			if err != nil {
				return nil, plan.Plan{}, exit.UsageError("%s: %w", p.file, err)
			}
			name, fields = cmp.Or(name, named), converted
		}
	}
	if p.name = name; name == "" {
		return nil, plan.Plan{}, exit.UsageError("missing NAME: only a file with KEP-4212's NodeMaintenance names its plan itself")
	}
	if err := p.putNodes(flags, fields, nodes); err != nil {
		return nil, plan.Plan{}, err
	}
	if err := p.strategy.put(flags, fields); err != nil {
		return nil, plan.Plan{}, err
	}
	if err := p.putShared(flags, fields); err != nil {
		return nil, plan.Plan{}, err
	}
	encoded, err := json.Marshal(fields)
	if err != nil {
		return nil, plan.Plan{}, exit.UsageError("%w", err)
	}
	decoded, err := plan.Decode(name, encoded)
	if err = errors.Join(err, decoded.Reserved()); err != nil {
		return nil, decoded, exit.UsageError("%w", err)
	}
	return encoded, decoded, nil
}

// putNodes chooses the nodes; what the command line chooses takes the place of what the file does.
func (p *planFlags) putNodes(flags *pflag.FlagSet, fields map[string]any, nodes []string) error {
	ways := 0
	for _, given := range []bool{len(nodes) > 0, flags.Changed("selector"), p.all} {
		if given {
			ways++
		}
	}
	inFile := slices.ContainsFunc([]string{"nodes", "selector", "nodeSelector", "all"}, func(field string) bool { return fields[field] != nil })
	switch {
	case ways > 1:
		return exit.UsageError("pass one of --selector, --all and names")
	case ways == 0 && !inFile:
		return exit.UsageError("missing nodes: pass --selector, --all, names, or a file that chooses them")
	case ways == 1:
		for _, field := range []string{"nodes", "selector", "nodeSelector", "all"} {
			delete(fields, field)
		}
	}
	switch {
	case len(nodes) > 0:
		fields["nodes"] = input.Unique(nodes)
	case flags.Changed("selector"):
		fields["selector"] = p.selector
	case p.all:
		fields["all"] = true
	}
	if flags.Changed("exclude") {
		fields["exclude"] = p.exclude
	}
	return nil
}

// putShared puts what the maintenances share into the plan: what it has a field for itself there, the rest into maintenance.
func (p *planFlags) putShared(flags *pflag.FlagSet, fields map[string]any) error {
	maintenance, ok := fields["maintenance"].(map[string]any)
	if !ok && fields["maintenance"] != nil {
		return nil // its decoder says what is wrong with it
	}
	if !ok {
		maintenance = map[string]any{}
	}
	before := map[string]any{}
	for _, field := range planFields {
		if value, given := maintenance[field]; given {
			before[field] = value
		}
	}
	if err := p.shared.Put(flags, maintenance); err != nil {
		return err
	}
	for flag, field := range planFields {
		value, given := maintenance[field]
		if !given || !flags.Changed(flag) {
			continue
		}
		fields[field] = value
		if delete(maintenance, field); before[field] != nil {
			maintenance[field] = before[field]
		}
	}
	if len(maintenance) > 0 {
		fields["maintenance"] = maintenance
	}
	return nil
}
