package profile

import (
	"encoding/json"
	"fmt"
	"strings"

	"drydock.dev/drydock/rules/profile/state"
)

// Mermaid is a profile as the text of a Mermaid diagram.
func (p Profile) Mermaid() string {
	var text strings.Builder
	title, err := json.Marshal(p.Name)
	if err == nil {
		fmt.Fprintf(&text, "---\ntitle: %s\n---\n", title)
	}
	text.WriteString("stateDiagram-v2\n    [*] --> operational\n")
	for _, s := range state.All() {
		fmt.Fprintf(&text, "    state \"%s\" as %s\n", s, mermaidID(s))
	}
	for _, s := range state.All() {
		stage := p.stages[s]
		for _, t := range stage.Transitions {
			label := t.Check.String()
			if len(t.Triggers) > 0 {
				label += " / " + strings.Join(t.Triggers, ", ")
			}
			fmt.Fprintf(&text, "    %s --> %s: %s\n", mermaidID(s), mermaidID(t.Next), mermaidText(label))
		}
		for _, of := range []struct {
			what  string
			names []string
		}{{"enter", stage.Enter}, {"notify", stage.Notify}} {
			if len(of.names) > 0 {
				fmt.Fprintf(&text, "    %s: %s\n", mermaidID(s), mermaidText(of.what+" / "+strings.Join(of.names, ", ")))
			}
		}
	}
	return text.String()
}

func mermaidID(s state.State) string { return strings.ReplaceAll(string(s), "-", "_") }

// mermaidText writes what could mean something to Mermaid, or to the page it is on, as the number of the character.
func mermaidText(label string) string {
	var text strings.Builder
	for _, r := range label {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune(" _-.,/", r):
			text.WriteRune(r)
		default:
			fmt.Fprintf(&text, "#%d;", r)
		}
	}
	return text.String()
}
