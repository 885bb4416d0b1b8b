package checks

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"text/template"
	"time"
	"unicode"

	"drydock/rules/period"
)

// Subject is what a check or hook is about. Requestor, Reason and Ticket are anybody's text: templates get them escaped.
type Subject struct {
	Node      string `json:"node"`
	Requestor string `json:"requestor,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Ticket    string `json:"ticket,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
	// InternalIP and ProviderID are the Node object's; empty where the node is not known. A URL's template gets an
	// IPv6 address in brackets.
	InternalIP string `json:"internalIP,omitempty"`
	ProviderID string `json:"providerID,omitempty"`
	WorkflowID string `json:"workflowID,omitempty"`
	RunID      string `json:"runID,omitempty"`
	// Captured is what the hook captured whose closing is called.
	Captured string `json:"captured,omitempty"`
}

// each changes every field.
func (s Subject) each(change func(string) string) Subject {
	for _, field := range []*string{
		&s.Node, &s.Requestor, &s.Reason, &s.Ticket, &s.Cluster, &s.InternalIP, &s.ProviderID, &s.WorkflowID, &s.RunID, &s.Captured,
	} {
		*field = change(*field)
	}
	return s
}

// neutral replaces everything that must not decide which host is called. The name of a node that was not found is
// anybody's text.
func (s Subject) neutral(text string) Subject {
	node, cluster, ip := s.Node, s.Cluster, s.InternalIP
	s = s.each(func(string) string { return text })
	s.Cluster, s.InternalIP = cluster, ip
	if ip != "" {
		s.Node = node
	}
	return s
}

// sample is the subject with which templates are tried.
var sample = Subject{
	Node: "worker-01", Requestor: "ops", Reason: "kernel", Ticket: "OPS-1", Cluster: "east", InternalIP: "192.0.2.1", ProviderID: "sample://1",
	WorkflowID: "node-maintenance/worker-01/ops", RunID: "run", Captured: "1",
}

// functions are what templates may call: "after" is a time, in RFC 3339, that far from now.
var functions = template.FuncMap{
	"after": func(text string) (string, error) {
		d, err := period.ParseDuration(text)
		if err != nil {
			return "", err
		}
		return time.Now().Add(d.Std()).UTC().Format(time.RFC3339), nil
	},
}

// parse parses a template and tries it.
func parse(text string) (*template.Template, error) {
	t, err := template.New("template").Funcs(functions).Parse(text)
	if err != nil {
		return nil, err
	}
	_, err = render(t, sample)
	return t, err
}

func render(t *template.Template, s Subject) (string, error) {
	var out strings.Builder
	if err := t.Execute(&out, s); err != nil {
		return "", err
	}
	return out.String(), nil
}

// escapeURL encodes all but RFC 3986's unreserved characters, so that a value ends neither a path's segment nor a query's
// parameter.
func escapeURL(value string) string { return strings.ReplaceAll(url.QueryEscape(value), "+", "%20") }

// escapeJSON writes a value as the inside of a JSON string.
func escapeJSON(value string) string {
	quoted, _ := json.Marshal(value) // a string is always JSON
	return string(quoted[1 : len(quoted)-1])
}

// escapePromQL writes a value as the inside of a string literal, whichever of the three quotes stand around it.
func escapePromQL(value string) string {
	var out strings.Builder
	for _, r := range strings.ToValidUTF8(value, "�") {
		if r < ' ' || strings.ContainsRune("\"'`\\\x7f", r) {
			fmt.Fprintf(&out, `\x%02x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// escapeText keeps a value on its line.
func escapeText(value string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, value)
}

// renderURL fills in a URL and refuses one that leads elsewhere because of what a maintenance's text says.
func renderURL(t *template.Template, s Subject) (*url.URL, error) {
	u, err := parseURL(t, s)
	if err != nil {
		return nil, err
	}
	if err := checkURL(u); err != nil {
		return nil, err
	}
	if err := checkPath(u); err != nil {
		return nil, err
	}
	// Two texts, so that a value that equals one of them is found by the other.
	for _, text := range []string{"neutral-a", "neutral-b"} {
		other, err := parseURL(t, s.neutral(text))
		if err != nil || other.Scheme != u.Scheme || other.Host != u.Host {
			return nil, errors.New("its scheme or host depends on the maintenance: only Cluster, and of a node that exists Node and InternalIP, may stand there")
		}
	}
	return u, nil
}

func parseURL(t *template.Template, s Subject) (*url.URL, error) {
	ip := escapeURL(s.InternalIP)
	if address, err := netip.ParseAddr(s.InternalIP); err == nil && address.Is6() && address.Zone() == "" {
		ip = "[" + address.String() + "]"
	}
	s = s.each(escapeURL)
	s.InternalIP = ip
	text, err := render(t, s)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("is not a URL once its values are filled in: want http:// or https:// and a host")
	}
	return u, nil
}

// checkPath refuses a path that a server may read as another one: ".." by itself, or in a segment that hides a slash.
func checkPath(u *url.URL) error {
	text := strings.ReplaceAll(u.Path, `\`, "/") // decoded
	parts := strings.Split(text, "/")
	if slices.Contains(parts, "..") || slices.Contains(parts, ".") {
		return fmt.Errorf("its path has a segment that leads elsewhere (%s)", path.Clean("/"+escapeText(text)))
	}
	return nil
}
