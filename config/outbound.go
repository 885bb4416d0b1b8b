package config

import (
	"fmt"
	"strings"

	"drydock.dev/drydock/outbound"
)

// Outbound bounds where the worker calls.
type Outbound struct {
	// AllowNodeAddresses are ranges in which there are nodes although none should be (loopback, link-local, multicast, the metadata services of
	// clouds), such as `127.0.0.0/8`: see [URLs of nodes](#urls-of-nodes).
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
