package api_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drydock.dev/drydock/api"
)

// published compares a file with what is made of the declarations; UPDATE_GOLDEN=1 writes it instead.
func published(t *testing.T, path, want string) {
	t.Helper()
	have, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if string(have) == want {
		return
	}
	if os.Getenv("UPDATE_GOLDEN") == "" {
		t.Fatalf("%s is not what the declarations say: make it anew with UPDATE_GOLDEN=1 go test ./api/", path)
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestTheReferenceListsTheMessages keeps the reference's tables of messages what MessageTypes says.
func TestTheReferenceListsTheMessages(t *testing.T) {
	for to, page := range map[string]string{
		api.NodeMaintenanceType: "maintenance", api.MaintenancePlanType: "plans", api.HealthCheckType: "health", api.SchedulerType: "scheduler",
	} {
		table := "| message | fields | effect |\n| --- | --- | --- |\n"
		for _, m := range api.MessageTypes {
			if m.To != to || !m.OfPeople() {
				continue
			}
			var fields string
			if names := m.Fields(); len(names) > 0 {
				fields = "`" + strings.Join(names, "`, `") + "` "
			}
			table += fmt.Sprintf("| `%s` | %s| %s |\n", m.Name, fields, m.Effect)
		}
		listed(t, page, "messages to a "+to, table)
	}
}

// TestTheAuthorizerKnowsTheMessages keeps the authorizer's table, which is in a module of its own, what MessageTypes says.
func TestTheAuthorizerKnowsTheMessages(t *testing.T) {
	var source strings.Builder
	source.WriteString("package roles\n\n// Code generated from package api by UPDATE_GOLDEN=1 go test ./api/; DO NOT EDIT.\n\n" +
		"// messages has, for each signal and update, the roles that may send it. A worker may send all but approvals, and those that this\n" +
		"// table does not know too: a newer worker must not hang on an older table, and anyone who polls the task queue can send them anyway.\n" +
		"var messages = map[string]Roles{\n")
	rows := map[string][]api.Role{}
	longest := 0
	for _, m := range api.MessageTypes {
		if known, ok := rows[m.Name]; ok && !slices.Equal(known, m.From) {
			t.Errorf("%s is sent by %v and by %v: an authorizer knows a message by its name alone", m.Name, known, m.From)
		}
		rows[m.Name] = m.From
		longest = max(longest, len(m.Name))
	}
	for _, m := range api.MessageTypes {
		from, ok := rows[m.Name]
		if !ok {
			continue // it is written
		}
		delete(rows, m.Name)
		texts := make([]string, len(from))
		for i, role := range from {
			texts[i] = string(role)
		}
		fmt.Fprintf(&source, "\t%-*s %s,\n", longest+3, `"`+m.Name+`":`, strings.Join(texts, " | "))
	}
	source.WriteString("}\n")
	published(t, filepath.Join("..", "deploy", "devtemporal", "roles", "messages.go"), source.String())
}

func TestEveryMessageIsDeclared(t *testing.T) {
	declared := map[string]bool{}
	for _, m := range api.MessageTypes {
		declared[m.Name] = true
		if m.OfPeople() == (m.Effect == "") {
			t.Errorf("%s to %s: the effect is for people to read: %q", m.Name, m.To, m.Effect)
		}
	}
	for name := range constants(t, func(name string) bool {
		return strings.HasPrefix(name, "Msg") || strings.HasPrefix(name, "Signal") || strings.HasPrefix(name, "Update")
	}) {
		if !declared[name] {
			t.Errorf("message %q is not in MessageTypes", name)
		}
	}
}
