package api

// Versions are those of the program and of the Temporal server that it talks to.
type Versions struct {
	Client string `json:"client"`
	Go     string `json:"go"`
	// Server and Address are those of the Temporal server, where it was asked.
	Server  string `json:"temporalServer,omitempty"`
	Address string `json:"temporalAddress,omitempty"`
}
