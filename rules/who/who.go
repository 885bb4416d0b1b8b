// Package who says in words who sent a message, or started a maintenance.
package who

import "fmt"

// Sent is who sent a message: by is what the message claims, identity what the sender's client calls itself, and principal
// who the server verified. Each may be empty.
func Sent(by, identity, principal string) string {
	switch {
	case by == "" && identity == "" && principal == "":
		return "unknown"
	case by == "" && principal == "":
		return fmt.Sprintf("unknown (identity %s)", identity)
	case by == "":
		return fmt.Sprintf("unknown (verified: %s)", principal)
	case principal != "":
		return fmt.Sprintf("%s (verified: %s)", by, principal)
	case identity != "" && identity != by:
		return fmt.Sprintf("%s (identity %s)", by, identity)
	default:
		return by
	}
}

// Started is who started a maintenance. The command line's identity is its user's name, which nothing else says.
func Started(identity, principal string) string { return Sent(identity, identity, principal) }
