package config

import (
	"fmt"
	"strings"

	"drydock.dev/drydock/outbound"
)

// Outbound bounds where the worker calls.
type Outbound struct {
	// AllowNodeAddresses are ranges in which nodes are although none should be: loopback, link-local, multicast and the metadata
	// services of clouds. They hold for checks, hooks and work whose URL's host a node decides.
	AllowNodeAddresses []string `json:"allowNodeAddresses,omitempty"`
}

// nodeAddresses are the ranges; the error names the field.
func (o Outbound) nodeAddresses() (outbound.NodeAddresses, error) {
	allowed, err := outbound.ParseNodeAddresses(o.AllowNodeAddresses)
	if err != nil {
		separator := ": "
		if strings.HasPrefix(err.Error(), "[") {
			separator = ""
		}
		return allowed, fmt.Errorf("outbound.allowNodeAddresses%s%w", separator, err)
	}
	return allowed, nil
}
