package checks

// Subject is what a check or hook is about. Requestor, Reason and Ticket are anybody's text: templates get them escaped.
type Subject struct {
	Node      string `json:"node"`
	Requestor string `json:"requestor,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Ticket    string `json:"ticket,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
	// InternalIP and ProviderID are the Node object's; empty if the node is not known. A URL's template gets an
	// IPv6 address in brackets.
	InternalIP string `json:"internalIP,omitempty"`
	ProviderID string `json:"providerID,omitempty"`
	WorkflowID string `json:"workflowID,omitempty"`
	RunID      string `json:"runID,omitempty"`
	// Captured is what the hook captured, for its cleanup.
	Captured string `json:"captured,omitempty"`
}

// Each changes every field.
func (s Subject) Each(change func(string) string) Subject {
	for _, field := range []*string{
		&s.Node, &s.Requestor, &s.Reason, &s.Ticket, &s.Cluster, &s.InternalIP, &s.ProviderID, &s.WorkflowID, &s.RunID, &s.Captured,
	} {
		*field = change(*field)
	}
	return s
}

// Sample is the subject with which templates are tried.
var Sample = Subject{
	Node: "worker-01", Requestor: "ops", Reason: "kernel", Ticket: "OPS-1", Cluster: "east", InternalIP: "192.0.2.1", ProviderID: "sample://1",
	WorkflowID: "node-maintenance/worker-01/ops", RunID: "run", Captured: "1",
}
