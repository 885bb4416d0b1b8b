package api_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"drydock.dev/drydock/api"
)

// rolesTable is the table of who may do what of a Temporal authorizer; its module is not this one.
const rolesTable = "../deploy/devtemporal/roles/table.go"

// tableOf reads a map of the table: the source of each value by its key.
func tableOf(t *testing.T, name string) map[string][]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), rolesTable, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Names[0].Name != name {
			return true
		}
		for _, element := range spec.Values[0].(*ast.CompositeLit).Elts {
			pair := element.(*ast.KeyValueExpr)
			rows[textOf(pair.Key)] = textsIn(pair.Value)
		}
		return false
	})
	if len(rows) == 0 {
		t.Fatalf("%s has no table %s", rolesTable, name)
	}
	return rows
}

func textOf(e ast.Expr) string {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	text, _ := strconv.Unquote(literal.Value)
	return text
}

func textsIn(e ast.Expr) (texts []string) {
	ast.Inspect(e, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok {
			texts = append(texts, textOf(literal))
		}
		return true
	})
	return texts
}

// constants are the texts of this package's constants whose names are of a kind.
func constants(t *testing.T, is func(name string) bool) map[string]bool {
	t.Helper()
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]bool{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range file.Decls {
			group, ok := declared.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, s := range group.Specs {
				spec := s.(*ast.ValueSpec)
				for i, name := range spec.Names {
					if is(name.Name) && i < len(spec.Values) && textOf(spec.Values[i]) != "" {
						texts[textOf(spec.Values[i])] = true
					}
				}
			}
		}
	}
	return texts
}

func sameNames(t *testing.T, what string, rows map[string][]string, names map[string]bool) {
	t.Helper()
	for name := range names {
		if _, ok := rows[name]; !ok {
			t.Errorf("%s %q has no row in %s: which role may send or start it?", what, name, rolesTable)
		}
	}
	for name := range rows {
		if !names[name] {
			t.Errorf("%s has a row of %s %q, which there is not", rolesTable, what, name)
		}
	}
}

func TestEveryWorkflowTypeHasARole(t *testing.T) {
	rows := tableOf(t, "types")
	sameNames(t, "workflow type", rows, constants(t, func(name string) bool { return strings.HasSuffix(name, "Type") }))
	ids := map[string]string{
		api.NodeMaintenanceType: api.MaintenanceID("", "n", "r"), api.MaintenancePlanType: api.PlanID("", "p"), api.PlanRunType: api.PlanRunID("", "p"),
		api.PreflightType: api.PreflightID("", "n", "x"), api.PermissionsType: api.PermissionsID("", "x"), api.WindowsType: api.WindowsID("", "x"),
		api.ProfileReportType: api.ProfileReportID("", "x"), api.HealthCheckType: api.HealthCheckID("", "h"), api.DoctorType: api.DoctorID(""),
		api.SchedulerType: api.SchedulerID(""), api.NotificationType: api.NotificationID("", "c", "n", "r", "x"),
		api.AuditRecordType: api.AuditRecordID("", "n", "r", "x"), api.LockstepType: api.LockstepID(""),
		api.NodeRemediationType: api.RemediationID("", "h", "n"), api.ProfilesType: api.ProfilesID(""),
		api.ProfileTransitionType: api.ProfileTransitionID("", "p", "n"), api.NexusOperationType: api.NexusOperationID("", "n", "r"),
	}
	for name, row := range rows {
		first, _, _ := strings.Cut(ids[name], "/")
		if len(row) != 1 || first == "" || row[0] != first {
			t.Errorf("the IDs of %s begin with %q, and its row has %q", name, first, row)
		}
	}
}
