package checks

import ()

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
	// Captured is what the hook captured, for its cleanup.
	Captured string `json:"captured,omitempty"`
}
