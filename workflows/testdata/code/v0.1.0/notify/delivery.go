package notify

import ()

// Receipt is what is known of a delivered message.
type Receipt struct {
	// Thread is what later messages of the same thread give; empty where the channel has no threads.
	Thread string `json:"thread,omitempty"`
	// Refused says which of several recipients are not to be reached, and why; the others have got the message.
	Refused []string `json:"refused,omitempty"`
}
