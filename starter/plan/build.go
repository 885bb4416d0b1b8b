package plan

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/docs/schemas"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/input"
)

// planFlags describe a plan: its file, its own fields, and what its maintenances share.
type planFlags struct {
	file string
	// name is that of the plan which was built: as it was given, or as KEP-4212's object in the file has it.
	name   string
	own    input.FieldFlags
	shared input.Flags
}

func (p *planFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&p.file, "file", "f", "", "YAML or JSON file with the plan, or with KEP-4212's NodeMaintenance, - for standard input; flags override it")
	p.own.Register(cmd, input.WithFlags("plan"), forms)
	p.shared.RegisterFields(cmd)
	own := schemas.InputOf("plan")
	for _, field := range input.WithFlags("maintenance") {
		if !slices.ContainsFunc(own.Fields, func(of schemas.Field) bool { return of.Name == field.Name }) {
			f.Lookup(field.Flag).Usage = "each node: " + f.Lookup(field.Flag).Usage
		}
	}
	f.Lookup("requestor").Usage = "who asks in the plan's maintenances (default plan-NAME, with all-at-once plans)"
}

// build makes the plan's input of the file and the flags over it, and reads it as the workflow will.
func (p *planFlags) build(stdin io.Reader, name string, nodes []string) (json.RawMessage, plan.Plan, error) {
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
		p.own.ReadFile(fields)
		p.shared.ReadFile(fields) // for what the plan has a field for itself
	}
	if p.name = name; name == "" {
		return nil, plan.Plan{}, exit.UsageError("missing NAME: only a file with KEP-4212's NodeMaintenance names its plan itself")
	}
	inFile := maps.Clone(fields)
	if err := p.own.Put(fields); err != nil {
		return nil, plan.Plan{}, err
	}
	if err := cmp.Or(putNodes(&p.own, fields, inFile, nodes), checkCanary(fields), p.putShared(fields)); err != nil {
		return nil, plan.Plan{}, err
	}
	encoded, err := json.Marshal(fields)
	if err != nil {
		return nil, plan.Plan{}, exit.UsageError("%w", err)
	}
	decoded, err := plan.Decode(name, encoded)
	if err = errors.Join(err, decoded.Reserved(), api.CheckReportToOf(decoded.ReportTo)); err != nil {
		return nil, decoded, p.own.InFlags(exit.UsageError("%w", err))
	}
	return encoded, decoded, nil
}

// waysToChoose are the fields that choose nodes, of which a plan has one.
var waysToChoose = []string{"nodes", "selector", "nodeSelector", "all"}

// putNodes chooses the nodes; what the command line chooses takes the place of what the file does.
func putNodes(given *input.FieldFlags, fields, inFile map[string]any, names []string) error {
	ways := 0
	for _, field := range waysToChoose {
		if given.Given(field) != "" && fields[field] != false {
			ways++
		}
	}
	if len(names) > 0 {
		fields["nodes"] = input.Unique(names)
		ways++
	}
	switch {
	case ways > 1:
		return exit.UsageError("pass one of --selector, --all and names")
	case ways == 0 && !slices.ContainsFunc(waysToChoose, func(field string) bool { return inFile[field] != nil }):
		return exit.UsageError("missing nodes: pass --selector, --all, names, or a file that chooses them")
	case ways == 0:
		return nil
	}
	for _, field := range waysToChoose {
		if given.Given(field) == "" && (field != "nodes" || len(names) == 0) {
			delete(fields, field)
		}
	}
	return nil
}

// putShared puts what the maintenances share into the plan: what it has a field for itself there, the rest into maintenance.
func (p *planFlags) putShared(fields map[string]any) error {
	maintenance, ok := fields["maintenance"].(map[string]any)
	if !ok && fields["maintenance"] != nil {
		return nil // its decoder says what is wrong with it
	}
	if !ok {
		maintenance = map[string]any{}
	}
	p.shared.ReadFile(maintenance)
	before := maps.Clone(maintenance)
	if err := p.shared.Put(maintenance); err != nil {
		return err
	}
	for _, field := range schemas.InputOf("plan").Fields {
		if p.shared.Given(field.Path) == "" {
			continue
		}
		fields[field.Path] = maintenance[field.Path]
		if was, ok := before[field.Path]; ok {
			maintenance[field.Path] = was
		} else {
			delete(maintenance, field.Path)
		}
	}
	if len(maintenance) > 0 {
		fields["maintenance"] = maintenance
	}
	return nil
}
